"""Operations off their floor: the numbers of the ``layers`` listing, each row with an event to go to and a name."""

import pytest

from tests.kit.traces import BASIS, NO_BASIS, Ev, St, make_trace
from tracescope.analysis.breakdown import break_down
from tracescope.analysis.gap_rows import gap_rows
from tracescope.analysis.layers import layers_table
from tracescope.core.category import Category, Op
from tracescope.core.model import Workload
from tracescope.core.trace import Trace
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.synth.decode import synthesize

WEIGHTS, KV, COMPUTE = Category.WEIGHT_READ, Category.KV_READ, Category.COMPUTE


def split_attention() -> Trace:
    """Attention in two kernels, of which the longer one moves fewer bytes; three kernels without an op."""
    events = [
        Ev(0, 30, op=Op.ATTENTION, layer=0, category=KV, kv_read=20),
        Ev(30, 50, op=Op.ATTENTION, layer=0, category=KV, kv_read=5),
        Ev(80, 10, op=Op.ATTENTION, layer=0, category=COMPUTE),
        Ev(90, 10, category=COMPUTE, unknown=True, name="first"),
        Ev(100, 10, category=COMPUTE, unknown=True, name="second"),
        Ev(110, 10, category=Category.COPY, unknown=True, name="copy it"),
    ]
    return make_trace(events, [St(0, 130)])


def test_a_row_has_the_bytes_of_all_its_events() -> None:
    attention = gap_rows(split_attention(), BASIS, 0)[0]
    assert (attention.op, attention.name, attention.layer) == (Op.ATTENTION, "attention", 0)
    assert (attention.took_ns, attention.floor_ns, attention.gap_ns) == (90, 25, 65)
    assert attention.memory_bytes == 25
    assert attention.event == 1


def test_events_without_an_op_are_together_by_category_and_named_where_they_share_a_name() -> None:
    rows = {row.category: row for row in gap_rows(split_attention(), BASIS, 0) if row.op is Op.NONE}
    assert {category: row.name for category, row in rows.items()} == {COMPUTE: "compute", Category.COPY: "copy it"}
    assert rows[COMPUTE].event == 3
    assert (rows[COMPUTE].floor_ns, rows[COMPUTE].memory_bytes, rows[COMPUTE].took_ns) == (None, None, 20)


@pytest.mark.parametrize("profile", ["ideal", "realistic"])
def test_the_numbers_are_those_of_the_layers_listing(profile: str) -> None:
    basis = make_basis(load_hardware("h100-sxm"))
    made = synthesize(load_model("llama-3-8b"), basis, Workload(4, 512), steps=2, profile=profile, seed=3)
    for trace, priced, step in ((made, basis, 1), (split_attention(), BASIS, 0), (split_attention(), NO_BASIS, 0)):
        listed = layers_table(trace, priced, step)
        rows = gap_rows(trace, priced, step)
        assert len(rows) == len(listed)
        for row, cells in zip(rows, listed.rows(), strict=True):
            assert (None if row.layer < 0 else row.layer, row.op.label) == (cells["layer"], cells["op"])
            assert (row.category.label, row.took_ns) == (cells["category"], cells["exposed_ns"])
            assert (row.floor_ns, row.gap_ns) == (cells["floor_ns"], cells["gap_ns"])
        broken = break_down(trace, priced, step)
        assert sum(row.gap_ns or 0 for row in rows) + broken.idle_ns == broken.step_gap_ns
        shares = [row.share_of_gap for row in rows]
        if broken.floor_ops_ns < 0:
            assert shares == [None] * len(rows)
