"""Where everything of a picture stands: what its size leaves room for, in which rows, and what had to be left out."""

from dataclasses import dataclass
from typing import Final

from tracescope.ui.fonts import text_width
from tracescope.ui.paint.caption import LINE, caption_lines
from tracescope.ui.paint.legend import ROW, legend_rows
from tracescope.ui.paint.report_blocks import IN_ORDER, blocks_height, chosen_layer
from tracescope.ui.paint.report_lanes import lanes_height, tracks_shown
from tracescope.view.document import Document
from tracescope.view.picture_words import headline, run_line, wrapped
from tracescope.view.view_state import ViewState

MARGIN: Final = 40
TITLE_PX: Final = 25
TITLE_LINE: Final = 32
RUN_PX: Final = 14
RUN_LINE: Final = 20
FLOOR: Final = 84
GAP: Final = 40
WIDEST_BLOCK: Final = 560
THREE_COLUMNS_FROM: Final = 1300
TALLEST: Final = 2.5
"""Spare height makes the lanes taller, up to this."""
_BETWEEN: Final = 14
_TITLES: Final = {"causes": "where the gap goes", "energy": "energy", "steps": "all steps"}


@dataclass(frozen=True, slots=True)
class Plan:
    """A picture in logical px. Tops are None or missing where a part was left out, which ``left_out`` then says."""

    headline: tuple[str, ...]
    run: tuple[str, ...]
    top: float
    """Where the floor bar begins."""
    stretch: float
    """What the heights of the lanes are multiplied with."""
    in_order: float | None
    blocks: tuple[tuple[float, tuple[str, ...]], ...]
    """Rows of blocks: the top and the keys from the left."""
    block_width: float
    rule: float
    """The line above the legend."""
    caption: tuple[str, ...]
    left_out: tuple[str, ...]


def plan_picture(document: Document, view: ViewState, width: float, height: float) -> Plan:
    """The plan of a picture of ``width`` x ``height`` px whose lanes show ``view.visible``."""
    left_out: tuple[str, ...] = ()
    for _ in range(4):  # what is left out is said in the caption, which may then need another line
        plan = _planned(document, view, width, height, left_out)
        if plan.left_out == left_out:
            break
        left_out = plan.left_out
    return plan


def _words(text: str, px: float, weight: int, width: float) -> tuple[str, ...]:
    return tuple(wrapped(tuple(text.split(" ")), lambda line: text_width(line, px, weight), width, between=" "))


def _planned(document: Document, view: ViewState, full: float, height: float, told: tuple[str, ...]) -> Plan:
    width = full - 2 * MARGIN
    title = _words(headline(document, view), TITLE_PX, 700, width)
    parts = tuple(run_line(document, view).split(" · "))
    run = tuple(wrapped(parts, lambda text: text_width(text, RUN_PX), width))
    top = 52 + TITLE_LINE * (len(title) - 1) + 26 + RUN_LINE * (len(run) - 1) + 14
    caption = tuple(caption_lines(document, view, width, told))
    foot = height - 22 - len(caption) * LINE
    rule = foot - 18 - ROW * len(legend_rows(document, view, width))
    columns, block_width = _columns(view, width, full)
    if view.step < 0:
        room = rule - top - 10
        asked, shown = tracks_shown(document, view, room)
        hidden = asked - shown
        left_out = (f"{hidden} more track{'' if hidden == 1 else 's'} not shown",) if hidden else ()
        stretch = min(TALLEST, max(1.0, room / max(1.0, lanes_height(document, view))))
        return Plan(title, run, top, stretch, None, (), block_width, rule, caption, left_out)
    lanes = lanes_height(document, view)
    room = rule - _BETWEEN - (top + FLOOR + lanes)
    keys = ["causes", "energy", "steps"] if "energy" in view.overlays else ["causes", "steps"]
    rows = [tuple(keys[i : i + columns]) for i in range(0, len(keys), columns)]
    high = blocks_height(document, view.step)
    layer = chosen_layer(document, view) is not None
    # The first row of blocks says more than one layer does, and that more than the last row.
    first = room >= high
    left = room - high if first else room
    fits_layer = layer and left >= IN_ORDER + _BETWEEN
    left -= IN_ORDER + _BETWEEN if fits_layer else 0
    fitting = 1 + int(left // high) if first else 0
    kept = rows[:fitting]
    left -= high * max(0, len(kept) - 1)
    missing = [] if fits_layer or not layer else ["one layer in order"]
    missing += [_TITLES[key] for row in rows if row not in kept for key in row]
    left_out = (f"left out for want of room: {', '.join(missing)}",) if missing else ()
    # Most of the spare height goes to the lanes; what they cannot use stands between the parts.
    most = (TALLEST - 1) * (lanes - 40)
    grown = min(max(0.0, 0.8 * left), most)
    stretch = 1 + grown / max(1.0, lanes - 40)
    between = max(0.0, left - grown) / (2 + len(kept))
    y = top + FLOOR + lanes + grown + _BETWEEN + between
    in_order = y if fits_layer else None
    y += IN_ORDER + _BETWEEN + between if fits_layer else 0
    blocks: list[tuple[float, tuple[str, ...]]] = []
    for row in kept:
        blocks.append((y, row))
        y += high + between
    return Plan(title, run, top, stretch, in_order, tuple(blocks), block_width, rule, caption, left_out)


def _columns(view: ViewState, width: float, full: float) -> tuple[int, float]:
    """How many blocks stand beside each other, and how wide each is."""
    wanted = 3 if "energy" in view.overlays else 2
    columns = wanted if full >= THREE_COLUMNS_FROM else 2
    return columns, min(WIDEST_BLOCK, (width - GAP * (columns - 1)) / columns)
