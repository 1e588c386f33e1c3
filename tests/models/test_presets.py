"""Built-in models and machines: complete, sourced, refused by name where they cannot be counted."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tracescope.core.errors import TraceError
from tracescope.core.hardware import ASSUMED_ERROR, EnergyModel
from tracescope.core.model import Workload
from tracescope.floor.step_floor import step_floor
from tracescope.floor.step_ops import weight_read_bytes
from tracescope.models import (
    energy_presets,
    hardware_for_device,
    hardware_presets,
    load_hardware,
    load_model,
    make_basis,
    model_presets,
)


def test_every_model_of_the_contract(shared: Callable[[str], Path]) -> None:
    text = shared("design/cli.md").read_text()
    match = re.search(r"Model presets: `([^`]*)`", text)
    assert match is not None
    assert {preset.name for preset in model_presets()} >= set(match[1].split())


def test_every_machine_of_the_table(shared: Callable[[str], Path]) -> None:
    text = shared("design/arithmetic.md").read_text().split("## Hardware presets")[1].split("## Models")[0]
    rows = re.findall(r"^\| ([\w.-]+)[^|]*\| ([\d.e]+) \| ([^|]*) \| ([^|]*) \| (\d+) \| ([^|]*) \|", text, re.M)
    assert len(rows) == 16
    assert {row[0] for row in rows} <= {spec.name for spec in hardware_presets()}
    for name, bandwidth, capacity, rates, tdp, link in rows:
        spec = load_hardware(name)
        size = capacity.replace(",", "").replace("·2^30", " * 2**30")
        factors = [float(factor) for factor in size.replace("2**30", str(2**30)).split("*")]
        assert spec.capacity_bytes == round(factors[0] * (factors[1] if len(factors) > 1 else 1)), name
        assert spec.bandwidth_bytes_per_s == float(bandwidth), name
        tera = [None if rate.strip() == "–" else round(float(rate) * 1e12) for rate in rates.split("/")]
        assert [spec.flops_per_s.get(dtype) for dtype in ("bf16", "fp8", "int8")] == tera, name
        assert spec.tdp_w == float(tdp), name
        speed = re.match(r"[\d.e]+", link)
        assert spec.link_bytes_per_s == (float(speed[0]) if speed else None), name


def test_every_preset_is_sourced_and_complete() -> None:
    for preset in model_presets():
        assert preset.source
        assert preset.spec is not None, preset.refusal
        assert preset.spec.assumptions == ()
        assert preset.spec.name == preset.name
    for spec in hardware_presets():
        assert spec.source
        assert (spec.energy is None) is spec.name.startswith("tpu-"), spec.name  # no public power to fit
        assert spec.invented is spec.name.startswith("lesson-")
        assert (spec.sustained_bytes_per_s is None) is (spec.sustained_source == "")
        assert spec.approximate is spec.name.startswith(("rtx-", "m2-", "m4-", "dgx-", "jetson-"))


def test_known_sustained_values() -> None:
    known = {s.name: s.sustained_bytes_per_s for s in hardware_presets() if s.sustained_bytes_per_s is not None}
    assert known == {
        "h100-sxm": 3_100_000_000_000,
        "a100-80gb-sxm": 1_846_000_000_000,
        "rtx-3090": 854_000_000_000,
    }


def test_energy_fits_are_ordered_where_the_table_says_so() -> None:
    fits = energy_presets()
    assert fits["hbm2e-device"].level == "device"
    assert all(fit.level == "board" for name, fit in fits.items() if name != "hbm2e-device")
    assert fits["h100-sxm-board"].memory_pj_per_bit == (7, 13.8, 19)
    assert fits["h100-sxm-board"].static_w == (326, 200, 100)
    for fit in fits.values():
        assert list(fit.memory_pj_per_bit) == sorted(fit.memory_pj_per_bit)
        assert fit.link_pj_per_bit is None
    mi300x = load_hardware("mi300x").energy
    assert mi300x is not None
    assert "extrapolated" in mi300x.source
    assert mi300x.word == "extrapolated"
    lesson = load_hardware("lesson-1tbs").energy
    assert lesson is not None
    assert lesson.word == "invented"
    assert {name for name, fit in fits.items() if not fit.word} == {"h100-sxm-board", "b200-sxm-board"}


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA A100-SXM4-80GB", "a100-80gb-sxm"),
        ("NVIDIA A100-SXM4-40GB", "a100-40gb-sxm"),
        ("NVIDIA H200", "h200-sxm"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA L4", "l4"),
        ("AMD Instinct MI300X", "mi300x"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090 D", None),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
        ("NVIDIA H100 NVL", None),
        ("nvidia-h200", "h200-sxm"),
        ("NVIDIA L40", None),
        ("NVIDIA GB200", "gb200"),
        ("AMD Instinct MI325X", "mi325x"),
        ("AMD Instinct MI355X", "mi355x"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", None),
        ("NVIDIA GB300", None),
        ("Apple M4 Max", "m4-max"),
        ("TPU v6e", "tpu-v6e"),
        ("", None),
        ("cpu", None),
    ],
)
def test_device_names(device: str, name: str | None) -> None:
    found = hardware_for_device(device)
    assert (found.name if found else None) == name


def test_renaming_a_preset_changes_no_number() -> None:
    model, machine = load_model("qwen2.5-7b", weights="int4-g128"), load_hardware("h100-sxm")
    floor = step_floor(model, Workload(4, 100), make_basis(machine))
    other = step_floor(
        replace(model, name="x", title="y", source="z"), Workload(4, 100), make_basis(replace(machine, name="m"))
    )
    for name in (
        "totals",
        "stored_bytes",
        "floor_ops_s",
        "floor_memory_s",
        "energy",
        "capacity",
        "crossovers",
        "verdict",
    ):
        assert getattr(floor, name) == getattr(other, name), name


def test_basis() -> None:
    h100, a100 = load_hardware("h100-sxm"), load_hardware("a100-80gb-sxm")
    assert make_basis(h100).bandwidth_source == "datasheet"
    assert make_basis(h100, "sustained").bandwidth_bytes_per_s == 3_100_000_000_000
    assert make_basis(h100, "3.0TB/s").bandwidth_source == "user"
    assert make_basis(h100, None, "fp8").peak_flops_per_s == 1978 * 10**12
    fallback = make_basis(a100, None, "fp8")
    assert fallback.peak_flops_per_s == 312 * 10**12
    assert "needs a dequantising kernel" in fallback.notes[0]
    assert make_basis(a100, None, "fp16").notes == ()
    assert make_basis(None).bandwidth_source == "unknown"
    with pytest.raises(TraceError, match="h200-sxm"):
        make_basis(load_hardware("h200-sxm"), "sustained")
    for word in ("datasheet", "sustained"):
        with pytest.raises(TraceError, match="needs a machine"):
            make_basis(None, word)


GOOD = '[hardware.mine]\nbandwidth = 1e12\ncapacity = 1e10\nflops = { bf16 = 1e14 }\nenergy = "lpddr5-soc"\n'


FIT = '{ level = "board", memory_pj_per_bit = [1, 2, 3], flop_pj = [1, 2, 3], static_w = [1, 2, 3], error = 0.1 }'


@pytest.mark.parametrize(
    ("energy", "error", "word"),
    [
        (FIT, 0.1, ""),
        (FIT.replace(", error = 0.1", ""), ASSUMED_ERROR, "extrapolated"),
        (FIT.replace("0.1", "0.1, extrapolated = true"), 0.1, "extrapolated"),
        (FIT.replace("0.1", "0.1, invented = true"), 0.1, "invented"),
        ('"h100-sxm-board"', 0.46, "extrapolated"),
        ('"b200-sxm-board"', 0.16, "extrapolated"),
        ('"gddr6-card"', ASSUMED_ERROR, "extrapolated"),
        ('"gddr6-card"\ninvented = true', ASSUMED_ERROR, "invented"),
    ],
)
def test_the_error_of_a_fit_of_one_s_own(tmp_path: Path, energy: str, error: float, word: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD.replace('"lpddr5-soc"', energy))
    fit = load_hardware(str(path)).energy
    assert fit is not None
    assert (fit.error, fit.word) == (pytest.approx(error), word)
    assert fit.error_source == ""  # the runs that tell the built-in errors were on other machines


@pytest.mark.parametrize("name", ["h100-sxm", "a100-80gb-sxm", "lesson-1tbs"])
def test_a_machine_recorded_before_fits_had_errors_takes_the_built_in_one(name: str) -> None:
    spec = load_hardware(name)
    fit = spec.energy
    assert fit is not None
    old = EnergyModel(fit.memory_pj_per_bit, fit.flop_pj, fit.static_w, fit.level, fit.source)
    assert make_basis(replace(spec, energy=old)).energy == fit
    changed = replace(old, flop_pj=(1.0, 1.0, 9.0))
    assert make_basis(replace(spec, energy=changed)).energy == changed
    assert make_basis(replace(spec, name="other", energy=old)).energy == old


def test_a_machine_of_one_s_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    spec = load_hardware(str(path))
    assert (spec.name, spec.bandwidth_bytes_per_s, spec.capacity_bytes) == ("mine", 10**12, 10**10)
    assert spec.energy == energy_presets()["lpddr5-soc"]
    assert weight_read_bytes(load_model("llama-3-8b")) / spec.bandwidth_bytes_per_s == pytest.approx(0.01501, rel=1e-3)
    path.write_text("bandwidth = 2_000_000_000\ncapacity = 1e9\nflops = { bf16 = 1e12 }\n")
    assert load_hardware(str(path)).name == "mine"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("bandwidth = 1e12\n", "", "bandwidth is missing"),
        ("1e12", "-1", "bandwidth must be a positive number"),
        ("1e12", "nan", "bandwidth must be a positive number"),
        ("1e12", "inf", "bandwidth must be a positive number"),
        ("1e12", '"fast"', "bandwidth must be a positive number"),
        ("{ bf16 = 1e14 }", "3", "flops must be a table"),
        ("{ bf16 = 1e14 }", "{ fp8 = 1e14 }", "flops must be a table"),
        ("bf16 = 1e14", "bf16 = 1e14, bf7 = 1", "flops.bf7"),
        ('"lpddr5-soc"', '"coal"', "coal"),
        ('"lpddr5-soc"', '{ level = "moon" }', "level"),
        ('"lpddr5-soc"', '{ level = "board", memory_pj_per_bit = [1] }', "memory_pj_per_bit"),
        ('"lpddr5-soc"', FIT.replace("0.1", "-0.1"), "error must be a share from 0 to 10"),
        ('"lpddr5-soc"', FIT.replace("0.1", "true"), "error must be a share from 0 to 10"),
        ('"lpddr5-soc"', FIT.replace("0.1", "nan"), "error must be a share from 0 to 10"),
        ('"lpddr5-soc"', FIT.replace("0.1", "11"), "error must be a share from 0 to 10"),
        ('"lpddr5-soc"', FIT.replace("error", "eror"), "unknown key 'eror'"),
        ('"lpddr5-soc"', FIT.replace("0.1", "0.1, extrapolated = 1"), "extrapolated must be true or false"),
        ("capacity", "colour = 3\ncapacity", "colour"),
        ("[hardware.mine]", "[hardware.mine", "not TOML"),
        ("[hardware.mine]", "[hardware.other]\n[hardware.mine]", "2 machines"),
    ],
)
def test_machines_that_cannot_be(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = tmp_path / "mine.toml"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(TraceError, match=re.escape(words)) as caught:
        load_hardware(str(path))
    assert "mine" in caught.value.what


def test_no_machine_of_that_name(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no machine is called"):
        load_hardware("abacus")
    with pytest.raises(TraceError, match="missing"):
        load_hardware(str(tmp_path / "missing.toml"))
    for name in (str(tmp_path), "a\0b", "x" * 5000):
        with pytest.raises(TraceError):
            load_hardware(name)


def test_the_documented_machines_load(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "HARDWARE.md").read_text(encoding="utf-8")
    machine, fit = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    path = tmp_path / "machine.toml"
    path.write_text(machine, encoding="utf-8")
    spec = load_hardware(str(path))
    assert (spec.name, spec.bandwidth_bytes_per_s, spec.sustained_bytes_per_s) == ("my-card", 12 * 10**11, 105 * 10**10)
    lines = [line for line in machine.splitlines() if not line.startswith("energy =")]
    path.write_text("\n".join(lines) + "\n" + fit, encoding="utf-8")
    own = load_hardware(str(path)).energy
    assert own is not None
    assert (own.source, own.link_pj_per_bit) == ("estimate", 10.0)
    assert (own.error, own.error_source, own.word) == (0.3, "9 of 10 of our own runs", "")


def test_a_mistyped_name_is_answered_with_close_ones() -> None:
    with pytest.raises(TraceError) as refused:
        load_model("llama3")
    action = refused.value.action
    assert action.startswith("Did you mean llama-3-")
    assert "llama-3-8b" in action
    assert "gpt2-xl" not in action
    with pytest.raises(TraceError) as refused:
        load_hardware("h100")
    assert "h100-sxm" in refused.value.action
    with pytest.raises(TraceError, match="no model is called") as refused:
        load_model("zzz")
    assert all(preset.name in refused.value.action for preset in model_presets())
