"""The range of an energy is the error of its fit, and no board draws more than it may."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracescope.core.hardware import ASSUMED_ERROR, EXTRAPOLATED, EnergyModel
from tracescope.core.model import Workload
from tracescope.floor.energy import (
    around,
    drawn,
    energy_facts,
    energy_j,
    energy_split,
    energy_words,
    error_words,
    mid_j,
    power_note,
)
from tracescope.floor.step_floor import step_floor
from tracescope.floor.sweep import sweep
from tracescope.models import energy_presets, hardware_presets, load_hardware, load_model, make_basis

TRIED = EnergyModel(
    (1, 10, 20), (1, 2, 3), (300, 200, 100), "board", "test", error=0.2, error_source="9 of 10 runs", extrapolated=False
)


def test_low_and_high_are_the_error_around_the_middle_fit() -> None:
    found = energy_j(10**9, 10**9, 0, 0.5, TRIED)
    assert found.mid == pytest.approx(0.08 + 0.002 + 100)
    assert (found.low, found.high) == (pytest.approx(0.8 * found.mid), pytest.approx(1.2 * found.mid))
    assert energy_words(found) == "100 J, 80–120 in 9 of 10 runs"
    assert (found.extrapolated, found.capped) == (False, False)
    assert energy_facts(found) == ["modelled", "board level"]


def test_no_energy_is_negative() -> None:
    assert energy_j(10**9, 0, 0, 1.0, replace(TRIED, error=3.0)).low == 0


def test_what_no_run_stands_behind_is_twice_as_wide_and_says_so() -> None:
    fits = energy_presets()
    widest = max(fit.error for fit in fits.values() if not fit.extrapolated)
    assert pytest.approx(EXTRAPOLATED * widest) == ASSUMED_ERROR
    for machine in hardware_presets():
        fit = machine.energy
        if fit is None:
            continue
        found = energy_j(10**9, 10**9, 0, 1e-3, fit, machine.tdp_w)
        if machine.name in {"h100-sxm", "b200-sxm"}:
            assert not found.extrapolated
            assert "in 9 of 10 public runs" in energy_words(found)
        else:
            word = "invented" if machine.invented else "extrapolated"
            assert fit.error == ASSUMED_ERROR
            assert energy_words(found).endswith(f", {word}")
            assert error_words(fit) == f"± 46 %, {word}"


def test_the_static_part_gives_way_to_the_board_s_power() -> None:
    """500 W of bytes and 200 W static on a board of 600 W: 100 W of the static part is left."""
    memory = round(500 / 80e-12)
    free, held = (energy_j(memory, 0, 0, 1.0, TRIED, tdp) for tdp in (None, 600.0))
    assert (free.mid, held.mid) == (pytest.approx(700), pytest.approx(600))
    assert (free.capped, held.capped) == (False, True)
    split = energy_split(memory, 0, 0, 0, 1.0, TRIED, 600.0)
    assert (split.weights, split.static) == (pytest.approx(500), pytest.approx(100))
    assert split.total == pytest.approx(held.mid)
    assert energy_facts(held) == ["modelled", "board level", "at the power limit"]
    note = power_note(memory, 0, 0, 1.0, TRIED, 600.0)
    assert note is not None
    assert "says 700 W" in note
    assert "above the board's 600 W, which is the fit's fault: its static part is taken as 100 of 200 W" in note
    for seconds, tdp in ((1.0, None), (2.0, 600.0), (0.0, 600.0)):
        assert power_note(memory, 0, 0, seconds, TRIED, tdp) is None


def test_what_bytes_and_flops_draw_gives_way_only_after_that() -> None:
    memory = round(800 / 80e-12)
    split = energy_split(memory // 2, memory // 2, 0, 0, 1.0, TRIED, 600.0)
    assert (split.weights, split.kv, split.static) == (pytest.approx(300), pytest.approx(300), 0)
    assert "what bytes and FLOPs draw is cut" in str(power_note(memory, 0, 0, 1.0, TRIED, 600.0))


def test_work_without_a_time_has_no_power_to_cap() -> None:
    assert energy_j(10**12, 0, 0, 0.0, TRIED, 1.0).mid == pytest.approx(80)


amount = st.floats(0, 1e13)


@given(amount, st.floats(0, 1e15), st.floats(0, 10), st.one_of(st.none(), st.floats(1, 2000)))
def test_an_energy_is_the_smaller_of_the_fit_and_the_board(
    memory: float, flops: float, seconds: float, tdp: float | None
) -> None:
    said = mid_j(memory, flops, 0.0, seconds, TRIED, None)
    found = float(mid_j(memory, flops, 0.0, seconds, TRIED, tdp))
    limit = np.inf if tdp is None or seconds == 0 else tdp * seconds
    assert found == pytest.approx(min(float(said), limit), rel=1e-9, abs=1e-300)
    column = np.array([memory, 0.0]), np.array([flops, 0.0]), np.zeros(2), np.array([seconds, 0.0])
    assert np.asarray(mid_j(*column, TRIED, tdp)).tolist() == [found, 0.0]
    share = drawn(memory * 80e-12 + 1e-9, seconds, TRIED, tdp)
    assert 0 <= float(share.static) <= 1
    assert float(share.moved) == 1 or float(share.static) * seconds == 0


def test_a_sweep_is_capped_as_one_step_is() -> None:
    """A B200 that reads at its datasheet rate is said to draw more than its 1,000 W."""
    basis = make_basis(load_hardware("b200-sxm"))
    assert basis.energy is not None
    swept = sweep(load_model("llama-3-8b"), Workload(), basis, [1, 2000], [512])
    assert swept.energy_j is not None
    assert swept.floor_ops_s is not None
    watts = swept.energy_j[1] / swept.floor_ops_s
    np.testing.assert_allclose(watts, 1000, rtol=1e-9)
    np.testing.assert_allclose(swept.energy_j, around(swept.energy_j[1], basis.energy))
    one = step_floor(load_model("llama-3-8b"), Workload(1, 512), basis)
    assert one.energy is not None
    assert one.energy_split is not None
    assert one.energy.mid == pytest.approx(float(swept.energy_j[1, 0, 0]))
    assert one.energy_split.total == pytest.approx(one.energy.mid)
    assert any("the fit's fault" in note for note in one.notes)
