"""``tracescope render``: the picture of a trace as PNG, without a window."""

import contextlib
import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from tracescope.cli.durations import parse_ns
from tracescope.cli.numbers import Whole
from tracescope.cli.trace_file import file_command
from tracescope.core.errors import TraceError, printable
from tracescope.core.timerange import TimeRange
from tracescope.view.overlays import OVERLAY_KEYS, OVERLAYS

if TYPE_CHECKING:
    from tracescope.load import Opened
    from tracescope.view.document import Document
    from tracescope.view.view_state import ViewState

EXIT_INTERRUPTED: Final = 130
_SIZE: Final = re.compile(r"([0-9]{1,6})[x×]([0-9]{1,6})")


@click.command("render")
@file_command
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="The PNG to write.")
@click.option("--view", "kind", default="timeline", metavar="timeline", help="What to draw.")
@click.option(
    "--step", type=Whole(), help="The step, counted from 0 (default: the first decode step of typical duration)."
)
@click.option("--layer", type=Whole(), help="The layer shown in order (default: one three eighths into the step).")
@click.option("--range", "span", metavar="A:B", help="A part of the step: ns from its start, or 3.1ms:3.6ms.")
@click.option("--size", default="1600x900", show_default=True, metavar="WxH", help="Logical pixels.")
@click.option("--scale", type=float, default=1.0, show_default=True, help="Pixels of the file per logical pixel, 1-4.")
@click.option("--theme", type=click.Choice(("light", "dark")), default="light", show_default=True)
@click.option(
    "--overlays",
    default=",".join(OVERLAY_KEYS),
    show_default=True,
    metavar="LIST",
    help="What to lay over: " + "; ".join(f"{o.key}, {o.does}" for o in OVERLAYS) + ".",
)
def render_command(
    opened: "Opened", *, output: Path, kind: str, step: int | None, layer: int | None, span: str | None, size: str,
    scale: float, theme: str, overlays: str,
) -> int:  # fmt: skip
    """Draw the timeline of one step with its floor, gap and caption."""
    from tracescope.ui.picture import check_size, offscreen_application, render_picture, save_png
    from tracescope.ui.theme import THEMES
    from tracescope.view.document import Document

    _refuse_unknown(output, kind)
    wanted = _size(size)
    check_size(wanted, scale)
    document = Document(opened.trace, opened.basis, opened.path, opened.pyramid)
    view = _view(document, step, layer, span).with_(overlays=_overlays(overlays))
    offscreen_application()
    with _ending_at_once():
        image = render_picture(document, view, wanted, scale, THEMES[theme])
    save_png(image, output, view, document)
    click.echo(printable(f"wrote {output}"))
    return 0


@contextlib.contextmanager
def _ending_at_once() -> Iterator[None]:
    """While Qt paints, signals end the process: an exception inside a paint call would abort it. Nothing is open."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: os._exit(EXIT_INTERRUPTED)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _refuse_unknown(output: Path, kind: str) -> None:
    if kind != "timeline":
        raise TraceError(f"--view {kind} is not available", action="Use --view timeline.")
    suffix = output.suffix.lower()
    if suffix != ".png":
        raise TraceError(f"pictures are written as PNG, not as '{suffix or output.name}'", action="Use -o NAME.png.")


def _size(text: str) -> tuple[int, int]:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise TraceError(f"'{text}' is not a size", action="Write it as 1600x900.")
    return int(match[1]), int(match[2])


def _overlays(text: str) -> frozenset[str]:
    chosen = frozenset(word.strip() for word in text.split(",") if word.strip())
    unknown = sorted(chosen - set(OVERLAY_KEYS))
    if unknown:
        raise TraceError(f"there is no overlay '{unknown[0]}'", action=f"Choose from {', '.join(OVERLAY_KEYS)}.")
    return chosen


def _view(document: "Document", step: int | None, layer: int | None, span: str | None) -> "ViewState":
    """The first view, moved to a step and a range. A range counts from the step's start, else from the trace's."""
    view = document.initial_view()
    if step is not None:
        count = len(document.trace.steps)
        if not 0 <= step < count:
            have = f"steps 0 to {count - 1}" if count else "no steps"
            raise TraceError(f"there is no step {step}: the trace has {have}")
        view = view.with_(step=step, visible=document.step_range(step), layer=-1)
    if layer is not None:
        if view.step < 0 or layer not in [s.layer for s in document.layer_spans(view.step)]:
            raise TraceError(f"there is no layer {layer} in step {view.step}")
        view = view.with_(layer=layer)
    if span is not None:
        low, colon, high = span.partition(":")
        if not colon:
            raise TraceError(f"'{span}' is not a range", action="Write it as 3.1ms:3.6ms, or as ns from the start.")
        origin = document.step_range(view.step).start if view.step >= 0 else document.whole_range.start
        start, end = parse_ns(low), parse_ns(high)
        if end <= start:
            raise TraceError(f"the range {span} is empty: its end must be later than its start")
        chosen = TimeRange(origin + start, origin + end)
        view = view.with_(visible=chosen, selection=chosen)
    return view
