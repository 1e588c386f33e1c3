"""The tables of a rocpd database: one set of them for each process that was recorded, told apart by a suffix."""

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from tracescope.core.errors import TraceError
from tracescope.core.raw import RawDevice
from tracescope.io.collector import MAX_TEXT
from tracescope.io.database import MISSING, Database, Row, Table

KERNELS: Final = "kernel_dispatch"
COPIES: Final = "memory_copy"
REGIONS: Final = "region"
ALLOCATIONS: Final = "memory_allocate"
SAMPLES: Final = "sample"
COUNTERS: Final = "pmc_event"
EVENTS: Final = "event"

REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    KERNELS: ("start", "end", "agent_id", "kernel_id"),
    COPIES: ("start", "end", "name_id"),
    REGIONS: ("start", "end", "name_id"),
}
"""Columns without which a table cannot be read; every other one may be absent, and then nothing is known of it."""

_NAME: Final = re.compile(
    r"rocpd_(?P<what>metadata|string|info_(?:node|process|thread|agent|queue|stream|kernel_symbol|code_object|pmc)"
    r"|kernel_dispatch|memory_copy|memory_allocate|region|sample|pmc_event|event|track|arg)(?P<suffix>(?:_[0-9a-f]+)*)",
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Agent:
    """One device of a node; ``number`` is its place among the devices of its kind, -1 for one that is no GPU."""

    number: int
    name: str


class Capture:
    """The tables of one recorded process, by what they hold, and what the small ones say."""

    def __init__(self, database: Database, suffix: str, tables: dict[str, Table]) -> None:
        self.suffix = suffix
        self.tables = tables
        self._database = database
        said = {tag: value for tag, value in self._rows("metadata", (), ("tag", "value"))}
        self.version: str = said.get("schema_version") or "not given"
        self.strings = self._texts("string", "string")
        self.queues = self._texts("info_queue", "name")
        self.streams = self._texts("info_stream", "name")
        self.symbols = {
            row[0]: _symbol(row[1], row[2])
            for row in self._rows("info_kernel_symbol", ("id",), ("kernel_name", "display_name"))
        }
        self.agents = self._agents()
        self.processes = {
            # Of a program's path only its name: the folders may hold a user's.
            row[0]: (row[1], PurePath((row[2] or "").split(" ")[0]).name)
            for row in self._rows("info_process", ("id", "pid"), ("command",))
        }
        self.threads = {row[0]: (row[1], row[2] or "") for row in self._rows("info_thread", ("id", "tid"), ("name",))}

    @property
    def devices(self) -> list[RawDevice]:
        """Its GPUs."""
        return [RawDevice(agent.number, agent.name) for agent in self.agents.values() if agent.number >= 0]

    def _rows(self, what: str, integers: tuple[str, ...], texts: tuple[str, ...] = ()) -> list[Row]:
        table = self.tables.get(what)
        return [row for rows in self._database.rows(table, integers, texts) for row in rows] if table else []

    def _texts(self, what: str, column: str) -> dict[int, str]:
        return {row[0]: row[1][:MAX_TEXT] for row in self._rows(what, ("id",), (column,)) if row[1]}

    def _agents(self) -> dict[int, Agent]:
        found: dict[int, Agent] = {}
        numbers = ("id", "type_index", "logical_index")
        for key, of_type, logical, kind, *names in self._rows(
            "info_agent", numbers, ("type", "product_name", "model_name", "name")
        ):
            number = next((n for n in (of_type, logical) if n != MISSING), len(found))
            is_gpu = (kind or "").upper() == "GPU" and 0 <= number < 1 << 16
            found[key] = Agent(number if is_gpu else -1, next(filter(None, names), "")[:MAX_TEXT])
        return found


def read_captures(database: Database) -> list[Capture]:
    """What a database holds; TraceError where it is no rocpd database, or of a schema without what is needed."""
    sets: dict[str, dict[str, Table]] = {}
    for table in database.tables.values():
        found = _NAME.fullmatch(table.name)
        if found:
            sets.setdefault(found["suffix"].lower(), {})[found["what"].lower()] = table
    captures = [Capture(database, suffix, tables) for suffix, tables in sorted(sets.items())]
    if not captures:
        raise TraceError(
            f"{database.path.name}: a SQLite database without the tables of rocprofv3 (rocpd)",
            action="Open the *_results.db file that rocprofv3 wrote.",
        )
    for capture in captures:
        for what, columns in REQUIRED.items():
            own = capture.tables.get(what)
            lacking = [column for column in columns if own is not None and not own.has(column)]
            if lacking:
                raise TraceError(
                    f"{database.path.name}: table rocpd_{what} has no column {lacking[0]} "
                    f"(schema {capture.version}; read is 3)",
                    action="Record with: rocprofv3 --output-format json",
                )
    return captures


def _symbol(own: Any, displayed: Any) -> tuple[str, str]:
    """(the name shown, the full one) of a kernel: the mangled name tells more than a displayed one that was cut."""
    mangled = (own or "").removesuffix(".kd")[:MAX_TEXT]
    shown = (displayed or "").removesuffix(".kd")[:MAX_TEXT] or mangled
    return shown, "" if "(" in shown or "<" in shown or mangled == shown else mangled
