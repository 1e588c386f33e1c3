"""What an import saw, kept, left out, repaired and inferred: nothing is lost without being counted here."""

from dataclasses import dataclass, field
from typing import Final

UNREAD: Final = ("damaged_gzip", "trailing_text", "view_not_read")
"""Flags of a file whose data is damaged (its checksum does not agree), that goes on after its end, or that shows rows
through a view."""


@dataclass(frozen=True, slots=True)
class Inference:
    """One thing the file did not say: ``what`` was concluded, by which ``rule``, with what confidence (0 to 1)."""

    what: str
    rule: str
    confidence: float


@dataclass(frozen=True, slots=True)
class ImportReport:
    """Counters of one import; ``seen == imported + sum(dropped.values())`` always holds.

    ``seen`` counts every element of the source. ``flagged`` counts things that were kept and are worth knowing.
    ``truncated_at_byte`` is the offset (in the decompressed text) where a cut file ends, else None.
    ``unclassified_ns`` is the summed time of device events that no rule matched.
    """

    seen: int = 0
    imported: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    flagged: dict[str, int] = field(default_factory=dict)
    truncated_at_byte: int | None = None
    inferred: tuple[Inference, ...] = ()
    unclassified_ns: int = 0

    def __post_init__(self) -> None:
        if self.seen != self.imported + sum(self.dropped.values()):
            raise ValueError(f"seen {self.seen} != imported {self.imported} + dropped {self.dropped}")

    @property
    def unread(self) -> dict[str, int]:
        """What was flagged because a part of the file may be missing or was not read at all."""
        return {name: self.flagged[name] for name in UNREAD if name in self.flagged}

    @property
    def has_losses(self) -> bool:
        """Whether anything was left out or cut off (exit code 3)."""
        return bool(self.dropped or self.unread) or self.truncated_at_byte is not None


@dataclass(frozen=True, slots=True)
class Source:
    """The file a trace came from; ``sha256`` is of its bytes as they lie on disk. Empty for a synthesised trace."""

    name: str = ""
    sha256: str = ""
    bytes: int = 0
    importer: str = ""
