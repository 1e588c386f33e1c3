"""How many different experts a batch is expected to use: the only expectation among otherwise exact byte counts."""

from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Final

from tracescope.core import units
from tracescope.core.model import Experts

_DIGITS: Final = 60


@lru_cache(maxsize=4096)
def expected_distinct(experts: int, chosen: int, batch: int) -> Decimal:
    """E · (1 − (1 − k/E)^B): distinct experts of one layer if every token chooses uniformly and independently.

    Between ``chosen`` (one token) and ``experts``; 60 digits, so that a byte count made of it rounds correctly.
    """
    with localcontext(prec=_DIGITS):
        unused = (Decimal(experts - chosen) / Decimal(experts)) ** batch
        return Decimal(experts) * (1 - unused)


def distinct_of(experts: Experts, batch: int) -> Decimal:
    """The same of a model's own experts."""
    return expected_distinct(experts.experts, experts.chosen, batch)


def expectation_note(experts: Experts, batch: int) -> str:
    """What the bytes of a mixture rest on, said wherever they are shown."""
    formula = f"{experts.experts} × (1 − (1 − {experts.chosen}/{experts.experts})^{batch:,})"
    distinct = units.significant(float(distinct_of(experts, batch)))
    return (
        f"experts read are an expectation, by formula and not simulated: {formula} = "
        f"{distinct} distinct ones a layer, if every token chooses uniformly by itself"
    )


def shares_of_expectation(amounts: tuple[int, ...], distinct: Decimal, experts: int) -> tuple[int, ...]:
    """The expected part of each of ``amounts`` (bytes of all ``experts``), whole numbers that sum to the rounded total.

    Rounded cumulatively, half to even, so that nothing is lost or gained over the layers.
    """
    with localcontext(prec=_DIGITS):
        share = distinct / experts
        done, running, found = 0, 0, []
        for amount in amounts:
            running += amount
            upto = int((share * running).to_integral_value())
            found.append(upto - done)
            done = upto
        return tuple(found)
