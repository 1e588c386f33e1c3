"""The picture: the right size, the same bytes twice, a caption that names everything, the view inside the file."""

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtGui import QImage

from tests.kit.pictures import document_of, is_colour, llama, pixels
from tests.kit.traces import St, kernel, make_trace
from tracescope.core.category import Category, Op, TrackKind
from tracescope.core.errors import TraceError
from tracescope.core.hardware import Basis
from tracescope.core.report import Source
from tracescope.core.timerange import TimeRange
from tracescope.core.trace import Track
from tracescope.ui.fonts import text_width
from tracescope.ui.paint.legend import legend_rows
from tracescope.ui.paint.report_blocks import IN_ORDER, blocks_height
from tracescope.ui.paint.report_lanes import lanes_height
from tracescope.ui.paint.report_plan import FLOOR, plan_picture
from tracescope.ui.picture import check_size, png_bytes, render_picture, save_png, view_in_picture
from tracescope.ui.theme import DARK, LIGHT, Theme
from tracescope.view.document import Document
from tracescope.view.picture_words import caption_parts, headline, run_line, sha256_of, wrapped

ALL = frozenset({"path", "floor", "energy"})


@pytest.mark.parametrize(("size", "scale"), [((1600, 900), 1), ((1600, 900), 2), ((1000, 720), 1), ((3200, 1800), 1)])
def test_size_is_size_times_scale(qapp: object, size: tuple[int, int], scale: float) -> None:
    document = llama()
    image = render_picture(document, document.initial_view(), size, scale)
    assert (image.width(), image.height()) == (size[0] * scale, size[1] * scale)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_the_same_input_gives_the_same_bytes(qapp: object, theme: Theme) -> None:
    document = llama()
    view = document.initial_view().with_(overlays=ALL)
    one = png_bytes(render_picture(document, view, (1200, 720), 1, theme))
    other = png_bytes(render_picture(llama.__wrapped__(), view, (1200, 720), 1, theme))
    assert one == other


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_every_part_of_the_picture_is_drawn(qapp: object, theme: Theme) -> None:
    document = llama()
    image = pixels(render_picture(document, document.initial_view().with_(overlays=ALL), (1600, 900), 1, theme))
    drawn = ~is_colour(image, theme.panel)
    parts = {"headline": (30, 60), "floor": (120, 170), "lanes": (180, 370), "layer": (440, 560), "blocks": (570, 760)}
    for name, (low, high) in parts.items():
        assert drawn[low:high].mean() > 0.03, name
    assert drawn[840:885].any(axis=0).mean() > 0.3, "the caption"
    assert not drawn[:, :38].any(), "the left margin is free"
    assert not drawn[:, 1563:].any(), "the right margin is free"
    kinds = [letter for letter in "WKACS" if is_colour(image, theme.kinds[letter].fill).any()]
    assert kinds == list("WKACS")


def test_floor_line_crosses_all_lanes(qapp: object) -> None:
    document = llama()
    image = pixels(render_picture(document, document.initial_view()))
    ink = is_colour(image[110:360], LIGHT.ink)
    assert ink.mean(axis=0).max() > 0.97


@pytest.mark.parametrize("size", [(100, 100), (40_000, 900), (1600, 200), (900, 500), (16_000, 16_000)])
def test_absurd_sizes_are_refused_in_one_sentence(size: tuple[int, int]) -> None:
    with pytest.raises(TraceError) as refused:
        check_size(size, 1)
    assert len(refused.value.lines()) <= 2


@pytest.mark.parametrize("scale", [0, 0.5, 9, float("nan")])
def test_absurd_scales_are_refused(scale: float) -> None:
    with pytest.raises(TraceError, match="scale"):
        check_size((1600, 900), scale)


def test_the_caption_names_everything(qapp: object, tmp_path: Path) -> None:
    document = llama()
    view = document.initial_view()
    said = " | ".join(caption_parts(document, view))
    for wanted in (
        "llama.tscope.h5", "sha256", 'synthetic trace, profile "realistic"', "llama-3-8b bf16", "H100",
        "3.35 TB/s (datasheet, not sustained)", "peak 989 TFLOP/s bf16 dense", "batch 16",
        "one token per request per step", "all generated tokens accepted", "pJ/bit", "board level",
    ):  # fmt: skip
        assert wanted in said, wanted


def test_unknown_things_are_said_to_be_unknown() -> None:
    trace = make_trace([kernel(0, 100, step=0)], [St(0, 100, batch=-1, generated=-1)])
    document = Document(trace, Basis(), Path("made.json"))
    view = document.initial_view()
    said = " | ".join(caption_parts(document, view))
    for wanted in ("measured trace", "model unknown", "machine unknown", "bandwidth unknown", "peak unknown",
                   "batch unknown", "no model for this machine"):  # fmt: skip
        assert wanted in said, wanted
    assert "no floor known" in headline(document, view)
    assert "batch unknown" in run_line(document, view)


def test_the_headline_states_the_finding() -> None:
    document = llama()
    view = document.initial_view()
    taken = document.breakdown(view.step)
    said = headline(document, view)
    assert f"{taken.duration_ns / 1e6:.3f} ms per decode step" in said
    assert f"{taken.floor_ops_ns / taken.duration_ns * 100:.1f} % of floor speed" in said
    assert f"{taken.step_gap_ns / 1e6:.3f} ms above the floor" in said


@pytest.mark.parametrize("size", [(960, 720), (1000, 1400), (1280, 720), (1440, 1000), (1600, 900), (2400, 900)])
@pytest.mark.parametrize("overlays", [ALL, frozenset({"floor"})])
def test_a_plan_overlaps_nothing_and_says_what_it_leaves_out(
    qapp: object, size: tuple[int, int], overlays: frozenset[str]
) -> None:
    document = llama()
    view = document.initial_view().with_(overlays=overlays)
    view = view.with_(visible=document.step_range(view.step))
    plan = plan_picture(document, view, *size)
    tops = [plan.top + FLOOR + lanes_height(document, view, plan.stretch)]
    tops += [plan.in_order] if plan.in_order is not None else []
    heights = [0.0] + [IN_ORDER] * (plan.in_order is not None)
    tops += [top for top, _ in plan.blocks]
    heights += [blocks_height(document, view.step)] * len(plan.blocks)
    for (top, height), below in zip(zip(tops, heights, strict=True), [*tops[1:], plan.rule], strict=True):
        assert top + height <= below + 1
    shown = {key for _, keys in plan.blocks for key in keys}
    said = " ".join(plan.left_out)
    wanted = {"causes": "where the gap goes", "steps": "all steps"}
    wanted |= {"energy": "energy"} if "energy" in overlays else {}
    for key, words in wanted.items():
        assert (key in shown) != (words in said), key
    assert (plan.in_order is not None) != ("one layer in order" in said)
    assert all(part in " ".join(plan.caption) for part in plan.left_out)
    columns = max((len(keys) for _, keys in plan.blocks), default=0)
    assert columns * plan.block_width + (columns - 1) * 40 <= size[0] - 80
    for lines, px, weight in ((plan.headline, 25, 700), (plan.run, 14, 400), (plan.caption, 11, 400)):
        assert all(text_width(line, px, weight) <= size[0] - 80 for line in lines)
    for row in legend_rows(document, view, size[0] - 80):
        assert sum(entry.width for entry in row) + 20 * (len(row) - 1) <= size[0] - 80


def test_spare_height_goes_to_the_lanes(qapp: object) -> None:
    document = llama()
    view = document.initial_view().with_(visible=document.step_range(0), overlays=ALL)
    assert plan_picture(document, view, 1600, 800).stretch < plan_picture(document, view, 1600, 1200).stretch <= 2.5


def test_tracks_without_room_are_counted(qapp: object) -> None:
    tracks = tuple(Track(TrackKind.HOST_THREAD, f"thread {n}") for n in range(60))
    made = [kernel(n, 5, op=Op.NONE, category=Category.HOST, track=n, unknown=True) for n in range(60)]
    document = document_of(make_trace(made, tracks=tracks))
    plan = plan_picture(document, document.initial_view(), 1600, 900)
    assert any("tracks not shown" in part for part in plan.left_out)
    assert legend_rows(document, document.initial_view(), 1500) == ()


def test_captions_wrap_without_breaking_a_statement() -> None:
    lines = wrapped(("one", "two", "three", "a very long statement"), len, 12)
    assert lines == ["one · two", "three", "a very long statement"]


def test_the_view_travels_inside_the_file(qapp: object, tmp_path: Path) -> None:
    document = llama()
    view = document.initial_view().with_(event=12, overlays=ALL, search="down", playhead=5)
    path = tmp_path / "picture.png"
    save_png(render_picture(document, view, (1200, 720)), path, view, document)
    again, payload = view_in_picture(path)
    assert again == view
    assert payload["name"] == "llama.tscope.h5"
    assert QImage(str(path)).width() == 1200
    assert [p.name for p in tmp_path.iterdir()] == ["picture.png"]


def test_the_hash_is_that_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(b"abc")
    document = Document(make_trace([kernel(0, 100)]), Basis(), path)
    assert sha256_of(document) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_the_caption_names_both_checksums_where_there_are_two(tmp_path: Path) -> None:
    path = tmp_path / "trace.tscope.h5"
    path.write_bytes(b"abc")
    source = Source("trace.json", "5" * 64, 77, "chrome")
    document = Document(make_trace([kernel(0, 100)], source=source), Basis(), path)
    assert "sha256 ba7816bf8f01 (source 555555555555)" in caption_parts(document, document.initial_view())
    as_source = Document(make_trace([kernel(0, 100)], source=source), Basis(), tmp_path / "trace.json")
    assert "sha256 555555555555" in caption_parts(as_source, as_source.initial_view())


def test_other_pictures_hold_no_view(qapp: object, tmp_path: Path) -> None:
    path = tmp_path / "other.png"
    image = QImage(10, 10, QImage.Format.Format_RGB32)
    image.fill(0)
    image.save(str(path))
    with pytest.raises(TraceError, match="not a picture made by"):
        view_in_picture(path)
    image.setText("tracescope", '{"view": {"visible": [1]}}')
    image.save(str(path))
    with pytest.raises(TraceError, match="not a picture made by"):
        view_in_picture(path)


def test_a_place_that_cannot_be_written_is_one_sentence(qapp: object, tmp_path: Path) -> None:
    document = llama()
    view = document.initial_view()
    with pytest.raises(TraceError, match="cannot be saved"):
        save_png(render_picture(document, view, (1000, 720)), tmp_path / "no" / "where.png", view, document)


def test_pictures_without_floor_or_steps(qapp: object) -> None:
    made = [kernel(i * 100, 90, weight_read=-1, layer=i // 4, step=0) for i in range(16)]
    no_floor = Document(make_trace(made, [St(0, 1600)]), Basis(), Path("a.json"))
    thread = (Track(TrackKind.HOST_THREAD, "main"),)
    no_steps = document_of(make_trace([kernel(0, 100, op=Op.NONE), kernel(10, 30, op=Op.NONE)], tracks=thread))
    empty = document_of(make_trace([]))
    for document in (no_floor, no_steps, empty):
        image = pixels(render_picture(document, document.initial_view()))
        assert (~is_colour(image, LIGHT.panel)).mean() > 0.003
    assert "no decode step" in headline(no_steps, no_steps.initial_view())


def test_a_chosen_range_is_what_the_lanes_show(qapp: object) -> None:
    document = llama()
    view = document.initial_view()
    step = document.step_range(view.step)
    part = view.with_(selection=TimeRange(step.start, step.start + step.duration // 10))
    one, other = (pixels(render_picture(document, v)) for v in (view, part))
    assert (one[180:360] != other[180:360]).any(axis=2).mean() > 0.1
    assert np.array_equal(one[600:780, :500], other[600:780, :500])
