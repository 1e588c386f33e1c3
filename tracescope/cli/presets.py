"""``tracescope presets``: what is built in, each with its source; what is invented says so."""

from dataclasses import asdict
from typing import Any

import click

from tracescope.analysis.table import Column, Table
from tracescope.cli.calibration import calibration_document, fits_document, print_calibration, print_fits
from tracescope.cli.output import emit_json, emit_table
from tracescope.core import units
from tracescope.core.hardware import EnergyModel, HardwareSpec
from tracescope.core.model import ModelSpec
from tracescope.floor.layer_words import layer_words
from tracescope.floor.parameters import parameters
from tracescope.floor.step_ops import kv_bytes_per_token, stored_bytes, weight_read_bytes
from tracescope.models import ModelPreset, hardware_presets, model_presets


@click.command("presets")
@click.argument("what", type=click.Choice(["models", "hardware", "calibration"]), required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def presets_command(*, what: str | None, as_json: bool) -> None:
    """The built-in models and machines with their sources, or what the calibrated profile is fitted to."""
    if what == "calibration":
        if as_json:
            emit_json({"calibration": calibration_document()})
        else:
            print_calibration()
        return
    if as_json:
        document: dict[str, Any] = {}
        if what != "hardware":
            document["models"] = [model_row(preset) for preset in model_presets()]
        if what != "models":
            document["hardware"] = [hardware_row(spec) for spec in hardware_presets()]
        if what is None:
            document["calibration"] = fits_document()
        emit_json(document)
        return
    if what != "hardware":
        emit_table(_models_table(model_presets()))
    if what is None:
        click.echo()
    if what != "models":
        emit_table(_hardware_table(hardware_presets()))
    if what is None:
        click.echo()
        print_fits()
        click.echo("predicted against measured: tracescope presets calibration")


def model_row(preset: ModelPreset) -> dict[str, Any]:
    """One model as JSON; sizes are null where its structure is not modelled, and ``refused`` says why."""
    spec = preset.spec
    return {
        "name": preset.name,
        "title": preset.title,
        "source": preset.source,
        "hugging_face": list(preset.hub),
        "invented": preset.invented,
        "parameters": None if spec is None else asdict(parameters(spec)),
        "weight_read_bytes": None if spec is None else weight_read_bytes(spec),
        "stored_bytes": None if spec is None else stored_bytes(spec),
        "kv_bytes_per_token": None if spec is None else kv_bytes_per_token(spec),
        "structure": None if spec is None else structure(spec),
        "refused": preset.refusal or None,
    }


def structure(spec: ModelSpec) -> str:
    """What sets the model apart from a plain dense decoder, in a few words; empty for one."""
    words = []
    if spec.experts is not None:
        words.append(f"{spec.experts.chosen} of {spec.experts.experts} experts a token")
    words += layer_words(spec)
    if spec.weights != spec.activations:
        words.append(spec.weights)
    return ", ".join(words)


def hardware_row(spec: HardwareSpec) -> dict[str, Any]:
    """One machine as JSON; null where nobody measured or published the value."""
    return {
        "name": spec.name,
        "title": spec.title,
        "source": spec.source,
        "invented": spec.invented,
        "approximate": spec.approximate,
        "year": spec.year,
        "bandwidth_bytes_per_s": spec.bandwidth_bytes_per_s,
        "sustained_bytes_per_s": spec.sustained_bytes_per_s,
        "sustained_source": spec.sustained_source or None,
        "capacity_bytes": spec.capacity_bytes,
        "flops_per_s": spec.flops_per_s,
        "tdp_w": spec.tdp_w,
        "link_bytes_per_s": spec.link_bytes_per_s,
        "llc_bytes": spec.llc_bytes,
        "energy": None if spec.energy is None else energy_row(spec.energy),
    }


def energy_row(model: EnergyModel) -> dict[str, Any]:
    """One energy fit as JSON: three alternative fits, of which the middle one is used, and its relative error."""
    return {
        "level": model.level,
        "source": model.source,
        "memory_pj_per_bit": list(model.memory_pj_per_bit),
        "flop_pj": list(model.flop_pj),
        "static_w": list(model.static_w),
        "error": model.error,
        "error_source": model.error_source or None,
        "extrapolated": bool(model.word),
        "invented": model.invented,
    }


def _models_table(presets: tuple[ModelPreset, ...]) -> Table:
    rows = [model_row(preset) for preset in presets]
    return Table(
        (
            Column("name", [row["name"] for row in rows], "model"),
            Column(
                "weight_read_bytes", [units.size(row["weight_read_bytes"]) for row in rows], "weights read, batch 1"
            ),
            Column("stored_bytes", [units.size(row["stored_bytes"]) for row in rows], "stored"),
            Column("structure", [row["structure"] or "" for row in rows], "structure", prose=True),
            Column("kv_bytes_per_token", [row["kv_bytes_per_token"] for row in rows], "KV a token", "B", exact=True),
            Column(
                "source",
                [preset.refusal or preset.source for preset in presets],
                "source, or why it is refused",
                prose=True,
            ),
        )
    )


def _hardware_table(specs: tuple[HardwareSpec, ...]) -> Table:
    return Table(
        (
            Column("name", [spec.name for spec in specs], "machine"),
            Column("bandwidth", [units.rate(spec.bandwidth_bytes_per_s) for spec in specs], "bandwidth"),
            Column("sustained", [units.rate(spec.sustained_bytes_per_s) for spec in specs], "sustained"),
            Column("capacity", [units.size(spec.capacity_bytes) for spec in specs], "capacity"),
            Column("bf16", [units.flop_rate(spec.flops_per_s.get("bf16")) for spec in specs], "bf16"),
            Column("source", [_source(spec) for spec in specs], "source", prose=True),
        )
    )


def _source(spec: HardwareSpec) -> str:
    return spec.source + (f"; sustained: {spec.sustained_source}" if spec.sustained_source else "")
