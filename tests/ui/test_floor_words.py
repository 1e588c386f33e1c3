"""What is said of floors: unknown, 0 by definition and tiny are three things, in every panel alike."""

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QRectF
from pytestqt.qtbot import QtBot

from tests.kit.pictures import is_colour, painted, pixels
from tests.kit.traces import BASIS, NO_BASIS, Ev, St, make_trace
from tracescope.analysis.layers import layers_table
from tracescope.core.category import Category, Op
from tracescope.core.hardware import Basis
from tracescope.core.trace import Trace
from tracescope.ui.paint.geometry import GUTTER, RIGHT
from tracescope.ui.paint.step_bar import BAR_TOP, floor_line_words, paint_step_bar
from tracescope.ui.panels.layers import layers_columns
from tracescope.ui.panels.off_the_floor import gap_columns
from tracescope.ui.panels.where_the_gap_goes import WhereTheGapGoes
from tracescope.ui.status import status_parts
from tracescope.ui.theme import LIGHT
from tracescope.view.document import Document
from tracescope.view.floor_words import event_floor, floor_micros, share_of_floor, share_text, why_no_floor
from tracescope.view.inspection import inspect_event, inspect_step
from tracescope.view.picture_words import headline
from tracescope.view.step_facts import step_facts

WEIGHTS, KV, COMPUTE = Category.WEIGHT_READ, Category.KV_READ, Category.COMPUTE

EVENTS = [
    Ev(0, 2000, op=Op.QKV, layer=0, category=WEIGHTS, weight_read=1200),
    Ev(2000, 300, op=Op.ROPE, layer=0, category=COMPUTE),
    Ev(2300, 700, op=Op.EXPERTS, layer=0, category=WEIGHTS, unknown=True),
    Ev(3000, 900, op=Op.NORM, layer=0, category=COMPUTE, weight_read=2),
    Ev(3900, 50, op=Op.ALL_REDUCE, layer=0, category=Category.COMMUNICATION, link=8),
]


def made(events: list[Ev], **basis: object) -> Document:
    trace: Trace = make_trace(events, [St(0, 4000)])
    return Document(trace, replace(BASIS, **basis), Path("a.json"))


def columns_of(document: Document) -> list[dict[str, str]]:
    """The texts of the gap_list's rows as they are on screen."""
    rows = document.off_the_floor(0)
    columns = gap_columns(rows, document.breakdown(0).step_gap_ns, priced=document.has_floor)
    return [{c.title: c.text(c.cell(i)) for c in columns} for i in range(len(rows))]


def test_a_floor_of_nothing_is_no_speed_and_a_tiny_one_is_not_nothing() -> None:
    assert [share_of_floor(*pair) for pair in ((None, 10), (0, 10), (5, 0), (5, 10))] == [None, None, None, 0.5]
    assert [share_text(s) for s in (None, 0.001, 0.0049, 0.006, 1.2)] == ["—", "<1 %", "<1 %", "1 %", "120 %"]
    assert [floor_micros(ns) for ns in (None, 0, 2, 49, 50, 1200)] == ["none", "0.0", "<0.1", "<0.1", "0.1", "1.2"]


def test_every_panel_says_the_same_of_the_same_floor() -> None:
    document = made(EVENTS)
    cells = {row["op"]: row for row in columns_of(document)}
    assert [cells[op]["floor"] for op in ("qkv", "rope", "experts", "norm")] == ["1.2", "0.0", "none", "<0.1"]
    assert [cells[op]["of floor"] for op in ("qkv", "rope", "experts", "norm")] == ["60 %", "—", "—", "<1 %"]
    assert [cells[op]["gap"] for op in ("qkv", "rope", "experts")] == ["0.8", "0.3", "—"]
    shares = [inspect_event(document, event).share for event in range(4)]
    assert shares == [0.6, None, None, pytest.approx(2 / 900)]
    said = [" ".join(status_parts(document, document.initial_view().with_(event=e))[0]) for e in range(4)]
    assert ["of floor" in text for text in said] == [True, False, False, True]


def test_what_is_missing_is_named() -> None:
    document = made(EVENTS)
    assert why_no_floor(document, 2) == "bytes unknown"
    assert event_floor(document, 4) is None
    assert why_no_floor(document, 4) == "link bandwidth unknown"
    unknown = Document(document.trace, NO_BASIS, Path("a.json"))
    assert [why_no_floor(unknown, event) for event in (0, 2)] == ["bandwidth unknown", "bytes and bandwidth unknown"]
    assert all(inspect_event(unknown, event).floor_ns is None for event in range(5))


def test_without_a_floor_there_is_no_gap_on_screen() -> None:
    unknown = Document(made(EVENTS).trace, NO_BASIS, Path("a.json"))
    rows = columns_of(unknown)
    assert {row["gap"] for row in rows} == {"—"}
    assert {row["of step gap"] for row in rows} == {"—"}
    assert [row["took"] for row in rows] == ["2.0", "0.9", "0.7", "0.3", "0.1"]
    gap_list = unknown.off_the_floor(0)
    bar = next(c for c in gap_columns(gap_list, 0, priced=False) if not c.title)
    assert [bar.cell(i) for i in range(len(gap_list))] == [0] * len(gap_list)
    assert all(row.gap_ns is None and row.unknown_ns == row.took_ns for row in gap_list)


def test_the_step_tells_a_share_only_of_what_is_priced() -> None:
    whole = inspect_step(made(EVENTS[:2] + EVENTS[3:4]), 0)
    assert whole.share is not None
    part = inspect_step(made(EVENTS), 0)
    assert part.share is None
    assert part.floor_ns is not None
    assert part.gap_ns == part.took_ns - part.floor_ns - 750
    labels = {label: (text, result) for label, text, result in part.rows}
    assert labels["floor"][0] == "sum over 3 of 5 ops"
    assert labels["no floor"] == ("bytes unknown, 2 ops", "0.001 ms")


def test_the_layers_panel_shows_the_same_words() -> None:
    document = made(EVENTS)
    table = layers_table(document.trace, document.basis, 0)
    columns = {c.title: c for c in layers_columns(table)}
    said = {
        columns["op"].cell(i): tuple(columns[key].text(columns[key].cell(i)) for key in ("floor", "gap", "of floor"))
        for i in range(len(table))
    }
    assert said["experts"] == ("none", "—", "—")
    assert said["rope"] == ("0.0", "0.3", "—")
    assert said["norm"] == ("<0.1", "0.9", "<1 %")


PARTLY = [
    Ev(0, 100, op=Op.QKV, layer=0, category=WEIGHTS, weight_read=40),
    Ev(100, 60, op=Op.ATTENTION, layer=0, category=KV, kv_read=20),
    Ev(160, 40, op=Op.NORM, layer=0, category=COMPUTE, weight_read=10),
    Ev(200, 3700, op=Op.EXPERTS, layer=0, category=WEIGHTS, unknown=True),
]


def test_a_partly_known_floor_is_told_as_that_of_its_ops() -> None:
    document = made(PARTLY)
    facts = step_facts(document, 0)
    assert (facts.share, facts.floor_ns, facts.unknown_ns, facts.gap_ns) == (None, 70, 3700, 230)
    assert facts.duration_ns == facts.floor_ns + facts.unknown_ns + facts.gap_ns
    assert sum(part.ns for part in facts.gaps) == facts.gap_ns
    view = document.initial_view()
    assert headline(document, view) == (
        "0.004 ms per decode step: floor of 3 of 4 ops: 0.000 ms, gap 0.000 ms; bytes of the others, 0.004 ms, unknown"
    )
    span = document.layer_spans(0)[0]
    assert (span.partly_known, span.unknown_ns) == (True, 3700)
    assert span.gap_ns == span.duration_ns - 70 - 3700


def test_a_known_floor_keeps_the_kinds_of_what_it_moves() -> None:
    parts = step_facts(made(PARTLY), 0).parts
    assert [(part.letter, part.ns) for part in parts] == [("W", 50), ("K", 20)]
    assert "known" in parts[0].texts[0]


@pytest.mark.parametrize("events", [PARTLY, EVENTS[:1], EVENTS[:2] + EVENTS[3:4]])
@pytest.mark.parametrize("width", [500.0, 900.0, 1600.0])
def test_the_words_at_the_floor_line_stay_on_the_bar_and_apart(qapp: object, events: list[Ev], width: float) -> None:
    bar = QRectF(148, 26, width, 26)
    words = floor_line_words(bar, step_facts(made(events), 0), 15)
    gap_left = words.gap_centre - words.gap_width / 2
    assert words.label_left >= bar.left()
    assert words.gap_centre + words.gap_width / 2 <= bar.right()
    assert words.label_left + words.label_width < gap_left or gap_left + words.gap_width < words.label_left


def test_time_of_unknown_bytes_is_neither_solid_nor_hatched(qapp: object) -> None:
    document = made(PARTLY)
    view = document.initial_view()
    image = painted(1000, 94, LIGHT, lambda p: paint_step_bar(p, QRectF(0, 0, 1000, 94), document, view, LIGHT, 1))
    plain = is_colour(image[BAR_TOP + 4, GUTTER : 1000 - RIGHT], LIGHT.band)
    assert plain.mean() > 0.85


@pytest.mark.parametrize("basis", [BASIS, NO_BASIS])
def test_the_causes_panel_draws_a_gap_only_where_there_is_one(qtbot: QtBot, basis: Basis) -> None:
    panel = WhereTheGapGoes()
    qtbot.addWidget(panel)
    panel.resize(330, 190)
    document = Document(made(PARTLY).trace, basis, Path("a.json"))
    panel.show_step(document, 0)
    image = pixels(panel.grab().toImage())
    hatched = is_colour(image, LIGHT.kinds["W"].edge).any()
    assert hatched == (basis is BASIS)
    assert ("bytes unknown" in panel.accessibleDescription()) == (basis is BASIS)
