"""The house rules that no linter knows: file sizes, where libraries may be touched, what may never be written."""

import ast
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "tracescope").rglob("*.py"))
NAMES = [str(m.relative_to(ROOT)) for m in MODULES]

ONLY_IN = {
    "h5py": ("tracescope/io/native.py", "tracescope/io/gate.py", "tracescope/io/save.py"),
    "sqlite3": ("tracescope/io/nsys/database.py",),
    "json": ("tracescope/io/requests/json_rows.py",),  # only to accept the bare NaN that Python's own writer leaves
}
"""Modules that may import a library; msgspec is the one JSON library of the project."""

LATE_IMPORTS = (
    "tracescope/__main__.py",
    "tracescope/cli/",
    "tracescope/ui/startup.py",
    "tracescope/io/",
    "tracescope/models/",
)
"""Where an import may stand inside a function: command modules (they start fast), the second stage of start-up,
optional extras."""

FORBIDDEN_FUNCTIONS = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_METHODS = {"setOpenExternalLinks", "extractall", "popen"}
FORBIDDEN_MODULES = {"pickle", "marshal", "shelve", "yaml", "dill"}


@cache
def tree_of(module: Path) -> ast.Module:
    return ast.parse(module.read_text())


def imports(tree: ast.Module) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("module", MODULES, ids=NAMES)
def test_files_stay_small(module: Path) -> None:
    assert len(module.read_text().splitlines()) <= 400


@pytest.mark.parametrize("module", MODULES, ids=NAMES)
def test_libraries_are_touched_only_where_allowed(module: Path) -> None:
    name = str(module.relative_to(ROOT))
    tops = {full.split(".")[0] for full in imports(tree_of(module))}
    for library, allowed in ONLY_IN.items():
        assert library not in tops or name in allowed, f"{name} imports {library}"


@pytest.mark.parametrize("module", MODULES, ids=NAMES)
def test_late_imports_stay_in_the_listed_places(module: Path) -> None:
    name = str(module.relative_to(ROOT))
    tree = tree_of(module)
    late = [
        node.lineno
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert not late or name.startswith(LATE_IMPORTS), f"{name} imports late in lines {late}"


@pytest.mark.parametrize("module", MODULES, ids=NAMES)
def test_nothing_dangerous_is_called(module: Path) -> None:
    tree = tree_of(module)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert not {call.func.id for call in calls if isinstance(call.func, ast.Name)} & FORBIDDEN_FUNCTIONS
    assert not {call.func.attr for call in calls if isinstance(call.func, ast.Attribute)} & FORBIDDEN_METHODS
    assert not {full.split(".")[0] for full in imports(tree)} & FORBIDDEN_MODULES
    assert not [key for call in calls for key in call.keywords if key.arg in {"allow_pickle", "shell"}]


def test_tracked_text_names_no_machine_and_no_registry() -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed here")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    bad = re.compile("pypi" + r"\.org|files\.python" + r"hosted|deb\.deb" + r"ian|/ro" + "ot/|/wo" + "rk/")
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in {".h5", ".png", ".gz"} or not path.is_file():
            continue
        found = bad.search(path.read_text(encoding="utf-8", errors="replace"))
        assert not found, f"{name} says {found and found.group()}"
    assert "uv.lock" not in listed.stdout.split()


def test_test_modules_have_names_of_their_own() -> None:
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
