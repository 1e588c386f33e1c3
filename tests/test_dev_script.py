"""``packaging/dev.sh``: one line for all that is missing, files relative to where the user stands, a dead display."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tracescope.cli.system_packages import MANAGERS

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "sample_traces" / "lesson-20gb_b1.tscope.h5"
TOOLS = ("awk", "basename", "cat", "cksum", "dirname", "ls", "sed", "sort", "tr")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the script is tried on Linux")


def executable(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def bare(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the script where only the tools named are found, and nobody has any rights."""

    def run(*there: str, system: str = "Linux", user: int = 1000, **more: str) -> subprocess.CompletedProcess[str]:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found is not None
            if not (folder / tool).exists():
                (folder / tool).symlink_to(found)
        for name in there:
            executable(folder / name, "exit 1")
        executable(folder / "uname", f"echo {system}")
        executable(folder / "id", f"echo {user}")
        return subprocess.run(
            ["/bin/sh", str(ROOT / "packaging" / "dev.sh"), "test"],
            capture_output=True, text=True, check=False, cwd=tmp_path, env={"PATH": str(folder), **more},
        )  # fmt: skip

    return run


@pytest.mark.parametrize("manager", MANAGERS)
@pytest.mark.parametrize(("rights", "user"), [("sudo", 1000), ("su", 1000), ("root", 0)])
def test_one_line_names_everything(
    bare: Callable[..., subprocess.CompletedProcess[str]], manager: str, rights: str, user: int
) -> None:
    done = bare(manager, *(["sudo"] if rights == "sudo" else []), user=user)
    assert done.returncode == 1
    assert done.stdout == ""
    line = done.stderr.splitlines()[-1].strip()
    install = MANAGERS[manager]
    assert install in line
    assert line.startswith({"sudo": "sudo ", "su": f"su - -c '{install}", "root": install}[rights])
    python = {"apt-get": "python3 python3-venv", "pacman": "python"}.get(manager, "python3")
    assert python in line
    assert {"apt-get": "xvfb", "dnf": "Xvfb", "pacman": "xorg-server-xvfb", "apk": "xvfb"}[manager] in line
    words = line.replace("'", "").split()
    assert len(words) - len(set(words)) <= 1  # apt-get twice, no package


def test_without_a_known_manager_there_is_a_plain_list(bare: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    linux, mac = bare(), bare("apt-get", system="Darwin")
    assert (linux.returncode, mac.returncode) == (1, 1)
    assert linux.stderr.splitlines()[-1].split()[:2] == ["python3", "venv"]
    assert "Xvfb" in linux.stderr
    assert mac.stderr.splitlines()[-1].split() == ["python3", "venv"]  # Qt brings there what it needs


def test_an_old_python_is_not_asked_for_again(bare: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = bare("apt-get", "python3")  # a python3 that refuses everything
    assert done.returncode == 1
    assert "3.11 or newer" in done.stderr
    assert "PYTHON=" in done.stderr
    assert "install -y" not in done.stderr


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A checkout whose environment is there already: that of the tests."""
    root = tmp_path / "a checkout"
    for name in ("packaging", "sample_traces"):
        (root / name).mkdir(parents=True)
    for name in ("pyproject.toml", "packaging/dev.sh", "packaging/constraints.txt"):
        shutil.copy(ROOT / name, root / name)
    table = "tracescope/presets/system_packages.txt"
    (root / table).parent.mkdir(parents=True)
    shutil.copy(ROOT / table, root / table)
    shutil.copy(SAMPLE, root / "sample_traces" / "llama-3-8b_h100_b16_c4096.tscope.h5")
    (root / ".venv" / "bin").mkdir(parents=True)
    executable(root / ".venv" / "bin" / "python", f'exec "{sys.executable}" "$@"')
    executable(root / ".venv" / "bin" / "tracescope", f'exec "{sys.executable}" -m tracescope "$@"')
    files = [str(root / name) for name in ("pyproject.toml", "packaging/constraints.txt")]
    said = subprocess.run(
        f"cat {' '.join(repr(f) for f in files)} | cksum", shell=True, capture_output=True, check=True
    )
    (root / ".venv" / ".installed").write_bytes(said.stdout)
    return root


@pytest.mark.slow
@pytest.mark.parametrize(
    ("display", "said"),
    [
        ({}, "There is no display"),
        ({"DISPLAY": ":6543"}, "The display :6543 does not answer"),
        ({"DISPLAY": "localhost:543.0"}, "The display localhost:543.0 does not answer"),
        ({"WAYLAND_DISPLAY": "wayland-nobody"}, "The display wayland-nobody does not answer"),
    ],
)
def test_where_no_display_answers_the_file_is_drawn_where_the_user_stands(
    made: Path, tmp_path: Path, display: dict[str, str], said: str
) -> None:
    here = tmp_path / "elsewhere"
    (here / "sub").mkdir(parents=True)
    shutil.copy(SAMPLE, here / "sub" / "my run.tscope.h5")
    ours = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    env = {name: value for name, value in os.environ.items() if name not in ours}
    env |= {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), **display}
    done = subprocess.run(
        ["/bin/sh", str(made / "packaging" / "dev.sh"), "run", "sub/my run.tscope.h5"],
        capture_output=True, text=True, check=False, cwd=here, env=env, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert said in done.stderr
    assert "drawn to a picture: my run.png" in done.stderr
    assert (here / "my run.png").read_bytes().startswith(b"\x89PNG")
    assert not (made / "my run.png").exists()


def test_an_unknown_task_is_refused_before_anything_is_installed(tmp_path: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", str(ROOT / "packaging" / "dev.sh"), "fly"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr.split()[0]) == (2, "usage:")
