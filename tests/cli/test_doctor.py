"""``tracescope doctor``: it names what is missing, and works where Qt does not."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tracescope.cli import doctor, system_packages
from tracescope.cli.app import run

FINE = doctor.Findings("3.11.7", "6.11.3", "", "none", (), ())


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A Debian machine on which nothing is missing, to take things away from."""
    monkeypatch.setattr(doctor, "missing_libraries", lambda names: [])
    monkeypatch.setattr(doctor, "try_qt", lambda: ("6.11.3", ""))
    monkeypatch.setattr(system_packages.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(doctor, "_has_fonts", lambda: True)
    monkeypatch.setattr(doctor, "_installed", lambda name: "6.11.3" if name == "PySide6-Essentials" else "1.0")
    monkeypatch.setattr(doctor.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(doctor.sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def answer(capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = run(["doctor", "--json"])
    said = capsys.readouterr()
    assert said.err == ""
    return code, msgspec.json.decode(said.out)


@pytest.mark.usefixtures("machine")
def test_nothing_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = answer(capsys)
    assert code == 0
    assert (found["ok"], found["missing"], found["paste"]) == (True, [], None)
    assert run(["doctor"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "Nothing is missing."


def test_a_library_is_missing(machine: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lost = ["libEGL.so.1", "libglib-2.0.so.0", "libgthread-2.0.so.0"]
    machine.setattr(doctor, "missing_libraries", lambda names: [name for name in names if name in lost])
    code, found = answer(capsys)
    assert code == 1
    assert [lack["what"] for lack in found["missing"]] == lost
    assert found["paste"] == "sudo sh -c 'apt-get update && apt-get install -y libegl1 libglib2.0-0'"
    assert run(["doctor"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == found["paste"]


@pytest.mark.parametrize(("display", "where", "code"), [(":0", "missing", 1), ("", "optional", 0)])
def test_what_only_a_window_needs(
    machine: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], display: str, where: str, code: int
) -> None:
    machine.setenv("DISPLAY", display)
    machine.setattr(doctor, "missing_libraries", lambda names: [n for n in names if n == "libxcb-cursor.so.0"])
    got, found = answer(capsys)
    assert got == code
    assert [lack["package"] for lack in found[where]] == ["libxcb-cursor0"]
    paste = found["paste"] if where == "missing" else found["paste_optional"]
    assert paste == "sudo sh -c 'apt-get update && apt-get install -y libxcb-cursor0'"


def test_a_python_package_is_missing(machine: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    machine.setattr(doctor, "_installed", lambda name: None if name == "font-source-sans-pro" else "1.0")
    code, found = answer(capsys)
    assert code == 1
    assert found["paste"] == f"{sys.executable} -m pip install font-source-sans-pro"


@pytest.mark.parametrize(
    ("qt", "python", "broken"),
    [
        ("6.11.0", (3, 13), True),
        ("6.11.1", (3, 11), True),
        ("6.11.3", (3, 11), False),
        ("6.12.0", (3, 11), True),
        ("6.12.0", (3, 12), False),
        ("6.8", (3, 11), False),
    ],
)
def test_versions_of_qt_that_fail(machine: pytest.MonkeyPatch, qt: str, python: tuple[int, int], broken: bool) -> None:
    machine.setattr(doctor.sys, "version_info", (*python, 0))
    assert doctor._is_broken_qt(qt) is broken


@pytest.mark.parametrize(
    ("there", "root", "line"),
    [
        (["apt-get"], True, "apt-get update && apt-get install -y libgl1 libxcb-cursor0"),
        (["apt-get", "sudo"], False, "sudo sh -c 'apt-get update && apt-get install -y libgl1 libxcb-cursor0'"),
        (["apt-get"], False, "su - -c 'apt-get update && apt-get install -y libgl1 libxcb-cursor0'"),
        (["dnf", "sudo"], False, "sudo dnf install -y mesa-libGL xcb-util-cursor"),
        (["pacman", "sudo"], False, "sudo pacman -S --needed libglvnd xcb-util-cursor"),
        (["apk"], True, "apk add mesa-gl xcb-util-cursor"),
        (["apk"], False, "su - -c 'apk add mesa-gl xcb-util-cursor'"),
    ],
)
def test_one_line_for_everything_with_the_manager_that_is_there(
    machine: pytest.MonkeyPatch, there: list[str], line: str, *, root: bool
) -> None:
    machine.setattr(system_packages.shutil, "which", lambda name: name if name in there else None)
    machine.setattr(system_packages.os, "geteuid", lambda: 0 if root else 1000)
    machine.setenv("DISPLAY", ":0")
    lost = {"libGL.so.1", "libxcb-cursor.so.0"}
    machine.setattr(doctor, "missing_libraries", lambda names: [name for name in names if name in lost])
    found = doctor.examine()
    assert found.paste == line
    assert doctor.page(found)[-1] == line


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_on_another_system_what_is_missing_is_a_plain_list(machine: pytest.MonkeyPatch, platform: str) -> None:
    machine.setattr(system_packages.shutil, "which", lambda name: None if platform == "linux" else f"/usr/bin/{name}")
    machine.setattr(doctor.sys, "platform", platform)
    machine.setattr(doctor, "missing_libraries", lambda names: [n for n in names if n in ("libGL.so.1", "libEGL.so.1")])
    found = doctor.examine()
    assert found.paste is None
    if platform == "darwin":  # Qt brings there what it needs
        assert found.missing == ()
    else:
        assert doctor.page(found)[-1] == "Install with your system's package manager: libGL.so.1 libEGL.so.1"


def test_every_thing_has_a_package_with_every_manager() -> None:
    assert {row["use"] for row in system_packages._table()} == {
        "python", "draw", "x11", "wayland", "fonts", "test",
    }  # fmt: skip
    for row in system_packages._table():
        assert all(row[name] for name in system_packages.MANAGERS)


def test_qt_that_does_not_start_without_a_known_reason(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(doctor, "try_qt", lambda: (None, "strange"))
    found = doctor.examine()
    assert [lack.what for lack in found.missing] == ["Qt"]
    assert "strange" in "\n".join(doctor.page(found))


def test_the_loader_is_really_asked() -> None:
    assert doctor.missing_libraries(["libc.so.6", "libno-such-thing.so.99"]) == ["libno-such-thing.so.99"]


def test_a_library_that_ends_the_process_is_of_no_use(monkeypatch: pytest.MonkeyPatch) -> None:
    killer = "import os, sys\nif 'bad' in sys.argv: os.abort()\n"
    monkeypatch.setattr(doctor, "_TRY_LIBRARIES", killer)
    assert doctor.missing_libraries(["good", "bad"]) == ["bad"]


def test_it_works_where_qt_cannot_be_imported(tmp_path: Path) -> None:
    package = tmp_path / "PySide6"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('libEGL.so.1: cannot open shared object file')")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "tracescope", "doctor", "--json"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    found = msgspec.json.decode(done.stdout)
    assert done.returncode == 1
    assert found["qt"] is None
    assert "libEGL.so.1: cannot open shared object file" in found["qt_error"]
    assert found["missing"]


def test_development_tools_are_not_optional_extras() -> None:
    assert "pytest" not in doctor._requirements(extra=None)
    assert "pytest" in doctor._requirements(extra="dev")
    assert "pyside6-essentials" in [name.lower() for name in doctor._requirements(extra=None)]
    assert "ruff" not in [lack.what for lack in doctor._extras()]
