"""``tracescope doctor``: what this machine lacks, as one line to paste.

Nothing is loaded into this process: shared libraries and Qt are tried in child processes, since a broken one may end
the process that loads it.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from tracescope.cli.output import emit_json
from tracescope.cli.system_packages import install_line, manager, needed_for, package_of
from tracescope.core.errors import printable

DISTRIBUTION: Final = "tracescope-decode"
OLDEST_PYTHON: Final = (3, 11)

_FONT_FOLDERS: Final = ("/usr/share/fonts", "/usr/local/share/fonts", "~/.local/share/fonts", "~/.fonts")

_TRY_LIBRARIES: Final = """
import ctypes, sys
for name in sys.argv[1:]:
    try:
        ctypes.CDLL(name)
    except OSError:
        print(name)
"""
_TRY_QT: Final = """
from PySide6.QtCore import qVersion
from PySide6.QtWidgets import QApplication
application = QApplication([])
print(qVersion())
"""
_PATIENCE_S: Final = 60


@dataclass(frozen=True, slots=True)
class Lack:
    """One thing that is not there: what, what it is for, and the package of the system or of pip that brings it."""

    what: str
    purpose: str
    package: str = ""
    pip: str = ""


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found: versions (Qt's is None where it does not start), what is lacking, and what would be nice."""

    python: str
    qt: str | None
    qt_error: str
    display: str
    missing: tuple[Lack, ...]
    optional: tuple[Lack, ...]

    @property
    def paste(self) -> str | None:
        """The one line that brings everything missing, None where nothing is or no package would."""
        return paste_line(self.missing)


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def doctor_command(*, as_json: bool) -> int:
    """What this machine lacks, as one line to paste. Exit code 1 when something is missing."""
    findings = examine()
    if as_json:
        emit_json(document(findings))
    else:
        for line in page(findings):
            click.echo(printable(line))
    return 1 if findings.missing else 0


def examine() -> Findings:
    """Look at Python, its packages, the system's libraries, Qt and fonts."""
    display = "x11" if os.environ.get("DISPLAY") else "wayland" if os.environ.get("WAYLAND_DISPLAY") else "none"
    missing = _python_lacks()
    optional = _extras()
    if sys.platform == "linux":
        missing += _libraries("draw", "drawing, with or without a window")
        window = _libraries("wayland" if display == "wayland" else "x11", "a window")
        if display == "none":
            optional += window
        else:
            missing += window
        if not _has_fonts():
            optional.append(Lack("system fonts", "names in other scripts", package=package_of("fonts")))
    version, error = try_qt()
    if version is None and not missing:
        missing.append(Lack("Qt", f"drawing; it does not start: {error}"))
    return Findings(
        python=".".join(map(str, sys.version_info[:3])),
        qt=version,
        qt_error=error,
        display=display,
        missing=tuple(missing),
        optional=tuple(optional),
    )


def document(findings: Findings) -> dict[str, Any]:
    """The findings as JSON."""
    return {
        "ok": not findings.missing,
        "python": findings.python,
        "qt": findings.qt,
        "qt_error": findings.qt_error or None,
        "display": findings.display,
        "missing": [msgspec.to_builtins(lack) for lack in findings.missing],
        "optional": [msgspec.to_builtins(lack) for lack in findings.optional],
        "paste": findings.paste,
        "paste_optional": paste_line(findings.optional),
    }


def page(findings: Findings) -> list[str]:
    """The findings as lines for people; what installs everything comes last, as one line to paste if it can be."""
    qt = f"Qt {findings.qt}" if findings.qt else "Qt does not start"
    lines = [f"Python {findings.python}, {qt}, display: {findings.display}"]
    lines += [f"missing   {lack.what}  ({lack.purpose})" for lack in findings.missing]
    lines += [f"optional  {lack.what}  ({lack.purpose})" for lack in findings.optional]
    extra = paste_line(findings.optional)
    if extra:
        lines.append(f"optional, to paste: {extra}")
    if not findings.missing:
        lines.append("Nothing is missing.")
    elif findings.paste:
        lines += ["Paste this line:", findings.paste]
    if findings.missing and manager() is None:
        names = " ".join(lack.what for lack in findings.missing if not lack.pip)
        lines += [f"Install with your system's package manager: {names}"] if names else []
    return lines


def paste_line(lacks: tuple[Lack, ...]) -> str | None:
    """One shell line that installs the packages of ``lacks``; None where there is none to install."""
    parts: list[str] = []
    line = install_line([lack.package for lack in lacks if lack.package])
    if line:
        parts.append(line)
    pip = sorted({lack.pip for lack in lacks if lack.pip})
    if pip:
        parts.append(f"{sys.executable} -m pip install {' '.join(map(_quoted, pip))}")
    return " && ".join(parts) or None


def missing_libraries(names: list[str]) -> list[str]:
    """Those of ``names`` that the system's loader cannot load, found in a child process."""
    if not names:
        return []
    done = subprocess.run(
        [sys.executable, "-c", _TRY_LIBRARIES, *names],
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    if done.returncode == 0:
        return done.stdout.split()
    if len(names) == 1:  # loading it ended the process, so it is there but of no use
        return names
    return [name for one in names for name in missing_libraries([one])]


def try_qt() -> tuple[str | None, str]:
    """Qt's version and "", or None and why it does not start; tried offscreen in a child process."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _TRY_QT],
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
            env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        )
    except subprocess.TimeoutExpired:
        return None, f"no answer within {_PATIENCE_S} s"
    if done.returncode == 0:
        return done.stdout.strip(), ""
    lines = done.stderr.strip().splitlines()
    return None, lines[-1] if lines else f"exit code {done.returncode}"


def _libraries(use: str, purpose: str) -> list[Lack]:
    return [Lack(name, purpose, package=package_of(name)) for name in missing_libraries(list(needed_for(use)))]


def _python_lacks() -> list[Lack]:
    lacks = []
    if sys.version_info < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        lacks.append(Lack(f"Python {wanted}", "everything", package=package_of("python3")))
    for requirement in _requirements(extra=None):
        if _installed(requirement) is None:
            lacks.append(Lack(requirement, "everything", pip=requirement))
    qt = _installed("PySide6-Essentials")
    if qt is not None and _is_broken_qt(qt):
        fixed = "PySide6-Essentials<6.12,!=6.11.0,!=6.11.1"
        lacks.append(Lack(f"another Qt than {qt}", "this version loses references and aborts", pip=fixed))
    return lacks


def _is_broken_qt(version: str) -> bool:
    """6.11.0 and 6.11.1 break picture export; on Python 3.11, 6.12 and later abort after some thousands of signals."""
    numbers = tuple(int(part) for part in version.split(".")[:3] if part.isdigit())
    return numbers in ((6, 11, 0), (6, 11, 1)) or (sys.version_info < (3, 12) and numbers >= (6, 12))


def _extras() -> list[Lack]:
    """Optional extras of the distribution that are not installed; those for development do not count."""
    try:
        names = metadata.metadata(DISTRIBUTION).get_all("Provides-Extra") or []
    except metadata.PackageNotFoundError:
        return []
    return [
        Lack(requirement, f"optional: {extra}", pip=requirement)
        for extra in names
        if extra != "dev"
        for requirement in _requirements(extra)
        if _installed(requirement) is None
    ]


def _requirements(extra: str | None) -> list[str]:
    """Names of the distributions that ours needs, always or for one extra."""
    try:
        lines = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:  # run from a source tree that was never installed
        return []
    found = []
    for line in lines:
        requirement, _, marker = line.partition(";")
        wanted = f"extra == '{extra}'" if extra else None
        if wanted in marker.replace('"', "'") if wanted else "extra ==" not in marker:
            name = "".join(c if c.isalnum() or c in "-_." else " " for c in requirement).split()[0]
            if name not in found:
                found.append(name)
    return found


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _has_fonts() -> bool:
    folders = [Path(folder).expanduser() for folder in _FONT_FOLDERS]
    return any(
        name.lower().endswith((".ttf", ".otf", ".ttc", ".pfb"))
        for folder in folders
        for _, _, names in os.walk(folder)
        for name in names
    )


def _quoted(requirement: str) -> str:
    return f'"{requirement}"' if any(c in requirement for c in "<>!=") else requirement
