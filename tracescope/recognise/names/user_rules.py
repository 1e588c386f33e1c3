"""Kernel rules of the user: a TOML file of ``[[rule]]`` tables, tried before the built-in ones."""

import os
import re
import tomllib
from pathlib import Path
from typing import Any, Final

import platformdirs

from tracescope.core.category import Category
from tracescope.core.columns import I64
from tracescope.core.errors import TraceError, printable
from tracescope.core.raw import RawTrace
from tracescope.core.regular import require_regular
from tracescope.core.report import Inference
from tracescope.core.units import plural
from tracescope.recognise.names.kernel_rules import Family, Rule, classify

FAMILIES: Final[dict[str, Family]] = {
    family.name.lower(): family
    for family in Family
    if family not in (Family.NONE, Family.NORM_PART, Family.NORM_OPENING)
}
"""What a rule may name: the families that are read off a name alone."""

ROLES: Final[dict[str, Category]] = {
    category.label: category for category in Category if category not in (Category.HOST, Category.COPY, Category.OTHER)
}

MAX_RULES: Final = 1000
MAX_BYTES: Final = 1 << 20
MAX_PATTERN: Final = 500
_NESTED: Final = re.compile(r"[*+}][*+{]|\([^()]*[*+}][^()]*\)[*+{]")
"""A repeat of what already repeats: such a pattern can take longer than anyone waits."""


def user_rules_path() -> Path:
    """Where the window keeps the rules that its user made."""
    return Path(platformdirs.user_config_dir("tracescope", appauthor=False)) / "kernel_rules.toml"


def load_rules(path: Path) -> tuple[Rule, ...]:
    """The rules in ``path``, in their order. Raises TraceError naming the rule that cannot be used."""
    require_regular(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise TraceError(f"{path.name}: larger than {MAX_BYTES:,} bytes", action="Is it a file of rules?")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise TraceError(f"{path.name}: cannot be read: {reason}", action="Check the path of --rules.") from error
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TraceError(f"{path.name}: not TOML: {printable(str(error))}", action=_EXAMPLE) from error
    rows = document.get("rule")
    if not isinstance(rows, list) or set(document) - {"rule"} or len(rows) > MAX_RULES:
        raise TraceError(f"{path.name}: holds no list of [[rule]] tables", action=_EXAMPLE)
    return tuple(_rule(row, f"{path.name}: rule {i}") for i, row in enumerate(rows, 1))


_EXAMPLE: Final = 'A rule is [[rule]] with pattern = "my_gemm" and family = "gemm".'


def _rule(row: Any, where: str) -> Rule:
    if not isinstance(row, dict) or set(row) - {"pattern", "family", "also"}:
        raise TraceError(f"{where}: a rule has pattern, family and, if it is fused, also", action=_EXAMPLE)
    pattern, name, also = row.get("pattern"), row.get("family"), row.get("also", [])
    if not isinstance(pattern, str) or not pattern or len(pattern) > MAX_PATTERN:
        raise TraceError(f"{where}: pattern must be a text of 1 to {MAX_PATTERN} characters", action=_EXAMPLE)
    if _NESTED.search(pattern):
        raise TraceError(f"{where}: the pattern repeats what already repeats", action="Repeat one thing at a time.")
    try:
        re.compile(pattern, re.IGNORECASE)
    except (re.error, RecursionError, OverflowError) as error:
        raise TraceError(f"{where}: not a regular expression: {printable(str(error))}", action=_EXAMPLE) from error
    family = FAMILIES.get(name) if isinstance(name, str) else None
    if family is None:
        raise TraceError(f"{where}: no family is called {printable(repr(name))}", action=f"Use {', '.join(FAMILIES)}.")
    if not isinstance(also, list) or any(not isinstance(a, str) or a not in ROLES for a in also):
        raise TraceError(f"{where}: also lists roles", action=f"Use {', '.join(ROLES)}.")
    return Rule(family, pattern, tuple(ROLES[a] for a in also))


def count_of(rules: tuple[Rule, ...], raw: RawTrace, rows: I64) -> tuple[Inference, ...]:
    """What the user's rules decided of the events ``rows``, for the report; nothing where there are none."""
    if not rules or not len(rows):
        return ()
    family, _ = classify(raw.telling_names, raw.events.name[rows], rules)
    decided = int((family[raw.events.name[rows]] != Family.NONE).sum())
    return (
        Inference(
            f"{plural(decided, 'event')} classified by {plural(len(rules), 'rule')} of the user", "user rules", 0.99
        ),
    )


def pattern_for(name: str) -> str:
    """A pattern for kernels like ``name``: its own name without template arguments; all of it where that says little.

    Kernels of ``at::native`` differ in nothing but their arguments.
    """
    whole = name[: MAX_PATTERN // 2]
    head = re.split(r"[<(]", name.removeprefix("void "), maxsplit=1)[0].strip()
    return re.escape(whole if len(head) < 6 or "at::native" in head else head[: MAX_PATTERN // 2])


def append_rule(path: Path, rule: Rule) -> None:
    """Put ``rule`` before all others in the file at ``path``, which is made where it is missing.

    Raises TraceError where the file cannot be written, or holds something else: then it is left as it is.
    """
    before = load_rules(path) if path.exists() else ()
    if len(before) >= MAX_RULES:
        raise TraceError(f"{path.name}: holds {MAX_RULES:,} rules already", action="Remove some.")
    part = path.with_name(path.name + ".part")
    try:
        # The text that is there stays as it is: a hand may have put comments between its rules.
        text = path.read_text(encoding="utf-8") if before else ""
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(_toml(rule) + ("\n" + text if text else ""), encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise TraceError(f"{path.name}: cannot be written: {error.strerror}", action="Check the folder.") from error


def _toml(rule: Rule) -> str:
    also = ", ".join(f'"{category.label}"' for category in rule.also)
    tail = f"also = [{also}]\n" if also else ""
    return f'[[rule]]\npattern = {_text(rule.pattern)}\nfamily = "{rule.family.name.lower()}"\n{tail}'


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in escaped) + '"'
