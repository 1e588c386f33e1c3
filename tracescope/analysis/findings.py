"""One thing worth saying about a trace's numbers."""

from dataclasses import dataclass
from typing import Final

ERROR: Final = "error"
WARNING: Final = "warning"
INFO: Final = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """``rule`` is stable and machine-readable; ``count`` how often it holds; ``text`` explains the example."""

    rule: str
    severity: str
    count: int
    example_event: int | None
    text: str
