"""The house rules that no linter knows: each is one test that lists its offenders."""

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "tracescope").rglob("*.py"))

ONLY_IN = {
    "h5py": ("tracescope/io/native.py", "tracescope/io/gate.py", "tracescope/io/save.py"),
    "sqlite3": ("tracescope/io/database.py",),
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

MIRRORS = (
    ("tracescope/cli/", "tracescope/"),  # a command is named as what it shows
    ("tracescope/ui/panels/", "tracescope/analysis/"),  # a panel as the result it shows
    ("tracescope/ui/timeline/", "tracescope/ui/paint/"),  # a widget as what is painted in it
    ("tracescope/io/", "tracescope/io/"),  # the same part of the reader of another format
)
"""Folders in which a module may have the name of one in the other, because it is its counterpart there."""

RATES = re.compile(r"bandwidth|^peak$|link_rate|(bytes|flops)_per_s")
PRICING = "tracescope/floor/pricing.py"

FORBIDDEN_FUNCTIONS = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_METHODS = {"setOpenExternalLinks", "extractall", "popen"}
FORBIDDEN_MODULES = {"pickle", "marshal", "shelve", "yaml", "dill"}


@cache
def tree_of(module: Path) -> ast.Module:
    return ast.parse(module.read_text())


@cache
def nodes_of(module: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree_of(module)))


def name_of(module: Path) -> str:
    return module.relative_to(ROOT).as_posix()


def imports(module: Path) -> set[str]:
    found = set()
    for node in nodes_of(module):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def wrong_size(module: Path) -> Iterator[str]:
    lines = len(module.read_text().splitlines())
    if lines > 400:
        yield f"{name_of(module)} has {lines} lines"


def wrong_imports(module: Path) -> Iterator[str]:
    name = name_of(module)
    tops = {full.split(".")[0] for full in imports(module)}
    yield from (f"{name} imports {lib}" for lib, allowed in ONLY_IN.items() if lib in tops and name not in allowed)
    yield from (f"{name} imports {lib}" for lib in tops & FORBIDDEN_MODULES)
    if not name.startswith(LATE_IMPORTS):
        functions = (f for f in nodes_of(module) if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef))
        late = {n.lineno for f in functions for n in ast.walk(f) if isinstance(n, ast.Import | ast.ImportFrom)}
        yield from (f"{name}:{line} imports late" for line in sorted(late))


def wrong_calls(module: Path) -> Iterator[str]:
    for call in (node for node in nodes_of(module) if isinstance(node, ast.Call)):
        where = f"{name_of(module)}:{call.lineno}"
        if isinstance(call.func, ast.Name) and call.func.id in FORBIDDEN_FUNCTIONS:
            yield f"{where} calls {call.func.id}"
        if isinstance(call.func, ast.Attribute) and call.func.attr in FORBIDDEN_METHODS:
            yield f"{where} calls {call.func.attr}"
        if any(key.arg in {"allow_pickle", "shell"} for key in call.keywords):
            yield f"{where} passes allow_pickle or shell"


def wrong_prices(module: Path) -> Iterator[str]:
    """Divisions by a bandwidth, a peak or a link rate: there is one home for them."""
    if name_of(module) == PRICING:
        return
    for node in nodes_of(module):
        divides = isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div | ast.FloorDiv)
        divisor = (node.right if isinstance(node, ast.BinOp) else node.value) if divides else None
        for part in ast.walk(divisor) if divisor is not None else ():
            word = part.id if isinstance(part, ast.Name) else part.attr if isinstance(part, ast.Attribute) else ""
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                word = part.value
            if RATES.search(word):
                yield f"{name_of(module)}:{node.lineno} divides by {word}"


RULES = (wrong_size, wrong_imports, wrong_calls, wrong_prices)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_module_keeps_the_rule(rule) -> None:
    assert [offender for module in MODULES for offender in rule(module)] == []


def test_the_rules_find_what_they_forbid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    bad = tmp_path / "bad.py"
    bad.write_text(
        "import pickle\ndef f(x, basis):\n    import h5py\n    return eval('1') + x / basis.peak_flops_per_s\n"
    )
    assert [len(list(rule(bad))) for rule in RULES] == [0, 3, 1, 1]


def counterparts(a: str, b: str) -> bool:
    return any(
        (a.startswith(one) and b.startswith(other)) or (b.startswith(one) and a.startswith(other))
        for one, other in MIRRORS
    )


def test_a_name_stands_for_one_module() -> None:
    named: dict[str, list[str]] = {}
    for module in MODULES:
        if module.name != "__init__.py":
            named.setdefault(module.name, []).append(name_of(module))
    shared = [(a, b) for names in named.values() for a in names for b in names if a < b]
    assert [pair for pair in shared if not counterparts(*pair)] == []


def test_tracked_text_names_no_machine_and_no_registry() -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed here")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    bad = re.compile("pypi" + r"\.org|files\.python" + r"hosted|deb\.deb" + r"ian|/ro" + "ot/|/wo" + "rk/")
    files = [ROOT / name for name in listed.stdout.splitlines()]
    texts = [p for p in files if p.suffix not in {".h5", ".png", ".gz"} and p.is_file()]
    assert [p.name for p in texts if bad.search(p.read_text(encoding="utf-8", errors="replace"))] == []
    assert "uv.lock" not in listed.stdout.split()


def test_test_modules_have_names_of_their_own() -> None:
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted({name for name in names if names.count(name) > 1}) == []
