"""What a compiler says of its own op beside the name: XLA records a category with each."""

import re
from typing import Final

from tracescope.core.arguments import recorded_arguments
from tracescope.recognise.names.kernel_rules import Family

_KEY: Final = '"hlo_category"'

CATEGORIES: Final[tuple[tuple[re.Pattern[str], Family], ...]] = (
    (re.compile(r"all-(reduce|gather|to-all)|reduce-scatter|collective|send|recv"), Family.COMMUNICATION),
    (re.compile(r"convolution|^dot|matmul"), Family.GEMM),
    (re.compile(r"^(async )?copy|infeed|outfeed|host"), Family.COPY),
    (re.compile(r"sort"), Family.RANKING),
    (re.compile(r"fusion|elementwise|formatting|broadcast|reduce|scatter|gather|slice|rng"), Family.ELEMENTWISE),
)
"""Categories and what they are; the first that fits decides. A custom call and a loop say nothing."""


def family_by_compiler(detail: str) -> Family:
    """The family of an op by the category in its recorded arguments ``detail``; Family.NONE where it has none."""
    if _KEY not in detail:
        return Family.NONE
    category = (recorded_arguments(detail) or {}).get("hlo_category")
    if not isinstance(category, str) or category.startswith(("custom", "while")):
        return Family.NONE
    lowered = category.lower()[:100]
    return next((family for pattern, family in CATEGORIES if pattern.search(lowered)), Family.NONE)
