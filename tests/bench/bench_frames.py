"""Opening a native file to its first frame, and frames while zooming and panning it, beside a bare blit.

``python -m tests.bench frames`` (or ``python -m tests.bench.bench_frames [EVENTS]``) prints the table. Everything is
drawn offscreen into an image of 1600x900; a frame is a new visible range and a full repaint. Times are the wall clock
and, beside it, the processor time of the thread, which other work on the machine disturbs less.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
from PySide6.QtCore import QRectF
from PySide6.QtGui import QGuiApplication, QImage, QPainter

from tests.kit.many_lanes import many_lanes
from tracescope.core.hardware import Basis
from tracescope.core.model import Workload
from tracescope.load import open_trace, save_trace
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.synth.decode import synthesize
from tracescope.ui.fonts import register_fonts
from tracescope.ui.paint.counters import paint_bandwidth, paint_energy
from tracescope.ui.paint.geometry import LARGE, sizes_for
from tracescope.ui.paint.lanes import paint_lanes
from tracescope.ui.paint.run_strip import paint_run_strip
from tracescope.ui.paint.step_bar import paint_step_bar
from tracescope.ui.paint.time_axis import paint_time_axis
from tracescope.ui.theme import LIGHT
from tracescope.view import navigation
from tracescope.view.document import Document
from tracescope.view.view_state import ViewState

Frame = Callable[[Document, ViewState, QImage], None]

WIDTH: Final = 1600
HEIGHT: Final = 900
OPS_PER_STEP: Final = 326


def views(document: Document) -> list[ViewState]:
    """A walk as a hand makes it: zoom in by a fifth a frame to one microsecond, pan at many zooms, zoom out again."""
    rng = np.random.default_rng(1)
    view = navigation.shown(document, document.initial_view(), document.whole_range)
    view = view.with_(overlays=frozenset({"path", "floor", "energy"}))
    found = [view]
    for factor in (1 / 1.2, 1.2):
        while view.visible.duration > 1000 or factor > 1:
            span = view.visible
            anchor = span.start + int(rng.integers(span.duration // 3, span.duration // 3 * 2 + 1))
            view = navigation.shown(document, view, span.zoomed_about(anchor, factor))
            found.append(view)
            if len(found) % 8 == 0:
                for _ in range(4):
                    delta = round(view.visible.duration * float(rng.uniform(-0.3, 0.3)))
                    view = navigation.shown(document, view, view.visible.panned(delta))
                    found.append(view)
            if view.visible.duration >= document.whole_range.duration:
                break
    return found


def timed(frame: Callable[[int], None], count: int) -> np.ndarray:
    """Milliseconds of each of ``count`` calls: wall clock and processor time, float64[2, count]."""
    taken = np.zeros((2, count))
    for i in range(count):
        wall, cpu = time.perf_counter(), time.thread_time()
        frame(i)
        taken[:, i] = (time.perf_counter() - wall) * 1e3, (time.thread_time() - cpu) * 1e3
    return taken


def blit_frames(count: int) -> np.ndarray:
    """The floor of any folded view: 64 rows of labels through a lookup table, one scaled blit."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 200, (64, WIDTH + count)).astype(np.uint8)
    palette = rng.integers(0, 2**24, 256).astype(np.uint32) | np.uint32(0xFF000000)
    target = QImage(WIDTH, HEIGHT, QImage.Format.Format_RGB32)

    def frame(i: int) -> None:
        pixels = np.ascontiguousarray(palette[labels[:, i : i + WIDTH]])
        source = QImage(pixels.tobytes(), WIDTH, 64, WIDTH * 4, QImage.Format.Format_RGB32)
        painter = QPainter(target)
        painter.drawImage(target.rect(), source)
        painter.end()

    return timed(frame, count)


def lanes_frame(document: Document, view: ViewState, target: QImage) -> None:
    """The timeline alone."""
    painter = QPainter(target)
    paint_lanes(painter, QRectF(0, 0, WIDTH, HEIGHT), document, view, LIGHT, 1, sizes=LARGE)
    painter.end()


def centre_frame(document: Document, view: ViewState, target: QImage) -> None:
    """Everything the middle of a window of this size shows."""
    sizes = sizes_for(WIDTH, HEIGHT)
    painter = QPainter(target)
    y = 0.0
    for paint, height in (
        (paint_run_strip, sizes.run_strip), (paint_step_bar, sizes.step_bar), (paint_time_axis, sizes.axis),
    ):  # fmt: skip
        paint(painter, QRectF(0, y, WIDTH, height), document, view, LIGHT, 1)
        y += height
    lanes = HEIGHT - y - 2 * sizes.counter
    paint_lanes(painter, QRectF(0, y, WIDTH, lanes), document, view, LIGHT, 1, sizes=sizes)
    y += lanes
    for paint in (paint_bandwidth, paint_energy):
        paint(painter, QRectF(0, y, WIDTH, sizes.counter), document, view, LIGHT, 1)
        y += sizes.counter
    painter.end()


def row(name: str, taken: np.ndarray, floor: np.ndarray) -> None:
    """One line of the table; the last column is how many bare blits the processor time of a slow frame is."""
    figures = [f"{v:7.2f}" for times in taken for v in (*np.percentile(times, [50, 95]), times.max())]
    print(f"{name:28} {' '.join(figures)} {np.percentile(taken[1], 95) / np.percentile(floor[1], 95):7.1f}")


def draw_all(document: Document, target: QImage, frames: dict[str, Frame]) -> None:
    """Walk through ``document`` and print a line for each of ``frames``."""
    shown = views(document)
    floor = blit_frames(200)[:, 20:]
    columns = "    p50     p95   worst"
    print(f"{'ms a frame, wall then CPU':28} {columns} {columns} {'x blit':>7}")
    row("bare blit (64 rows)", blit_frames(200)[:, 20:], floor)
    for name, frame in frames.items():
        for view in shown[:4]:
            frame(document, view, target)
        document.forget_views()
        row(name, timed(lambda i, f=frame: f(document, shown[i], target), len(shown)), floor)


def main(events: int = 1_000_000) -> None:
    """Synthesise, save, open and draw."""
    application = QGuiApplication.instance() or QGuiApplication(["bench"])
    register_fonts()
    basis = make_basis(load_hardware("h100-sxm"))
    steps = max(2, events // OPS_PER_STEP)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.tscope.h5"
        trace = synthesize(
            load_model("llama-3-8b"), basis, Workload(16, 4096), steps=steps, profile="realistic", seed=0
        )
        begin = time.perf_counter()
        save_trace(path, trace)
        saved = time.perf_counter() - begin
        begin = time.perf_counter()
        opened = open_trace(path)
        read = time.perf_counter() - begin
    document = Document(opened.trace, opened.basis, path, opened.pyramid)
    target = QImage(WIDTH, HEIGHT, QImage.Format.Format_RGB32)
    begin = time.perf_counter()
    view = document.initial_view().with_(overlays=frozenset({"path", "floor", "energy"}))
    viewed = time.perf_counter() - begin
    centre_frame(document, view, target)
    first = time.perf_counter() - begin
    stored = document.pyramid.nbytes / len(document.trace.events)
    print(f"{len(document.trace.events):,} events in {steps:,} steps, pyramid {stored:.2f} B an event")
    print(f"save {saved:.2f} s, read {read:.3f} s, first view {viewed:.3f} s, first frame done {first:.3f} s")
    draw_all(document, target, {"lanes alone": lanes_frame, "whole centre": centre_frame})
    tracks = many_lanes(events)
    print(f"{len(tracks.events):,} events of plain tracks in {len(tracks.lanes)} lanes")
    begin = time.thread_time()
    document = Document(tracks, Basis(), Path("tracks"))
    stored = document.pyramid.nbytes / len(tracks.events)
    print(f"levels made in {time.thread_time() - begin:.2f} s of processor time, {stored:.2f} B an event")
    draw_all(document, target, {"rows of tracks": lanes_frame})
    del application


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
