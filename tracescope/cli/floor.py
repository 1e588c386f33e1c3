"""``tracescope floor``: the arithmetic of one decode step, without any trace."""

from dataclasses import asdict
from typing import Any

import click

from tracescope.analysis.table import Column, Table
from tracescope.analysis.work_energy import energy_cell
from tracescope.cli.beside_floor import Beside
from tracescope.cli.defaults import assumed_line
from tracescope.cli.durations import parse_deadline
from tracescope.cli.floor_page import floor_lines
from tracescope.cli.host_overhead import host_option, parse_host
from tracescope.cli.options import (
    activations_option,
    basis_from,
    model_from,
    model_options,
    pricing_options,
    say_assumptions,
    workload_from,
    workload_options,
)
from tracescope.cli.output import emit_json, emit_table
from tracescope.core.errors import printable
from tracescope.core.model import ModelSpec
from tracescope.core.units import ALL_ACCEPTED
from tracescope.floor.deadline import Deadline, deadline_check
from tracescope.floor.dtypes import weight_dtype
from tracescope.floor.parameters import parameters
from tracescope.floor.prefill import SCHEDULING
from tracescope.floor.pricing import ops_floor_s
from tracescope.floor.step_floor import StepFloor, step_floor
from tracescope.floor.step_ops import OpWork, step_ops
from tracescope.synth.prediction import Predictor


@click.command("floor")
@model_options
@workload_options
@activations_option
@pricing_options
@host_option
@click.option("--deadline", metavar="TIME", help="What each token may take, such as 50ms.")
@click.option("--per-layer", is_flag=True, help="One row an op and layer as well.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def floor_command(
    *,
    model: str | None,
    weights: str | None,
    lm_head: str | None,
    kv: str | None,
    hardware: str | None,
    bandwidth: str | None,
    host_overhead: str,
    deadline: str | None,
    activations: bool,
    per_layer: bool,
    as_json: bool,
    **workload: Any,
) -> int:
    """The bytes, floors, capacity and energy of one decode step, by formula alone."""
    spec = model_from(model, weights, lm_head, kv)
    if spec is None:
        raise click.UsageError("--model is needed; 'tracescope presets models' lists the built-in ones")
    basis = basis_from(hardware, bandwidth, spec)
    requests = workload_from(**workload)
    floor = step_floor(spec, requests, basis)
    limit = None if deadline is None else _deadline(floor, deadline)
    beside = Beside.of(floor, Predictor(spec, basis, requests, parse_host(host_overhead)))
    table = layers_table(floor) if per_layer else None
    if as_json:
        document = {**floor_document(floor), **beside.document()}
        if activations:
            document["activation_s"] = floor.activation_s
        if limit is not None:
            document["deadline"] = asdict(limit)
        if table is not None:
            document["layers"] = list(table.rows())
        emit_json(document)
    else:
        for line in floor_lines(floor, beside, limit, activations=activations, assumed=assumed_line()):
            click.echo(printable(line))
        if table is not None:
            click.echo()
            emit_table(table)
    return say_assumptions(spec)


def _deadline(floor: StepFloor, text: str) -> Deadline:
    found = deadline_check(floor.model, floor.workload, floor.basis, parse_deadline(text) / 1e9)
    if found is None:
        raise click.UsageError("--deadline needs a bandwidth: give --hardware or --bandwidth")
    return found


def floor_document(floor: StepFloor) -> dict[str, Any]:
    """The ``floor`` JSON document without ``layers``: bytes and FLOPs int, seconds float, null where not known."""
    total, workload, basis = floor.totals, floor.workload, floor.basis
    spent, memory, found = floor.energy, floor.capacity, floor.verdict
    cross = floor.crossovers
    return {
        "model": floor.model.name,
        "hardware": basis.hardware.name if basis.hardware else None,
        "batch": workload.batch,
        "context": workload.context,
        "weights": floor.model.weights,
        "kv": floor.model.kv,
        "tp": workload.tensor_parallel,
        "ranks": workload.tensor_parallel,
        "bandwidth_bytes_per_s": basis.bandwidth_bytes_per_s,
        "bandwidth_source": basis.bandwidth_source,
        "weight_read_bytes": total.weight_read,
        "embedding_gather_bytes": total.embedding_gather,
        "kv_read_bytes": total.kv_read,
        "kv_append_bytes": total.kv_append,
        "index_key_read_bytes": total.index_read,
        "state_read_bytes": floor.state_read_bytes,
        "state_write_bytes": None if floor.state_read_bytes is None else total.state_write,
        "kv_bytes_per_token": floor.kv_bytes_per_token,
        "activation_bytes": total.activation,
        "stored_bytes": floor.stored_bytes,
        "parameters": asdict(parameters(floor.model)),
        "flops": total.flops,
        "link_bytes": floor.sent_bytes,
        "link_by": floor.link_by,
        "floor_weight_s": floor.floor_weight_s,
        "floor_memory_s": floor.floor_memory_s,
        "floor_compute_s": floor.floor_compute_s,
        "floor_roofline_s": floor.floor_roofline_s,
        "floor_link_s": floor.floor_link_s,
        "floor_ops_s": floor.floor_ops_s,
        "generated_tokens_per_s_max": floor.generated_tokens_per_s_max,
        "steps_per_s_max": floor.steps_per_s_max,
        "acceptance": ALL_ACCEPTED,
        "scale_bytes": floor.scale_bytes,
        "energy_j": energy_cell(floor.group_energy),
        "energy_rank_j": energy_cell(spent),
        "capacity": None
        if memory is None
        else {
            "fits": memory.fits,
            "max_batch": memory.max_batch,
            "kv_stored_bytes": memory.kv_stored_bytes,
            "headroom_bytes": memory.headroom_bytes,
            "stored_bytes": memory.stored_bytes,
            "reserve_bytes": memory.reserve_bytes,
            "block_bytes": memory.block_bytes,
            "blocks_used": memory.blocks_used,
            "blocks_total": memory.blocks_total,
            "waste_bytes": memory.waste_bytes,
            "state_bytes": memory.state_bytes,
        },
        "verdict": None if found is None else {"binds": found.binds, "why": found.why, "moves": list(floor.moves)},
        "crossovers": {
            "kv_passes_weights_batch": cross.kv_passes_weights_batch,
            "compute_passes_memory_batch": cross.compute_passes_memory_batch,
            "compute_binds_batch": cross.compute_binds_batch,
            "memory_full_batch": cross.memory_full_batch,
        },
        "dependence": None
        if floor.dependence is None
        else {**asdict(floor.dependence), "factor": floor.dependence.factor},
        "not_simulated": {
            "prefill": None if floor.prefill is None else {**asdict(floor.prefill), "floor_s": floor.prefill.floor_s},
            "scheduling": SCHEDULING,
        },
        "pinned_bytes": workload.pinned_bytes,
        "expected_distinct_experts": None if floor.distinct_experts is None else float(floor.distinct_experts),
        "model_spec": model_document(floor.model),
        "assumptions": [*floor.model.assumptions, *([floor.expectation] if floor.expectation else [])],
        "notes": list(floor.notes),
    }


def model_document(model: ModelSpec) -> dict[str, Any]:
    """The ``model_spec`` object; ``windows`` has an entry a layer (null: everything) and is empty without any.

    ``layer_kinds`` says what distinct layers are built of and ``pattern`` which of them each layer is.
    """
    quantized = weight_dtype(model.weights).quantized or weight_dtype(model.lm_head).quantized
    return {
        "hidden": model.hidden,
        "layers": model.layers,
        "heads": model.heads,
        "kv_heads": model.kv_heads,
        "head_dim": model.head_dim,
        "ffn": model.ffn,
        "vocab": model.vocab,
        "tied": model.tied,
        "windows": list(model.windows),
        "layer_kinds": [asdict(kind) for kind in model.kinds],
        "pattern": list(model.pattern),
        "quantization": {
            "weights": model.weights,
            "lm_head": model.lm_head,
            "effective_bits": weight_dtype(model.weights).effective_bits(),
            "unconverted": list(model.unconverted),
        }
        if quantized
        else None,
        "latent": None if model.latent is None else asdict(model.latent),
        "experts": None if model.experts is None else asdict(model.experts),
        "per_tensor": model.tensors is not None,
        "source": model.source,
    }


def layers_table(floor: StepFloor) -> Table:
    """One row an op in program order; ``layer`` is null outside the layers, ``floor_s`` where it cannot be priced."""
    ops = step_ops(floor.model, floor.workload)
    seconds, known = ops_floor_s(ops, floor.basis)
    return Table(
        (
            Column("layer", [op.layer if op.layer >= 0 else None for op in ops], "layer"),
            Column("op", [_label(op) for op in ops], "op"),
            Column("category", [op.category.label for op in ops], "category"),
            Column("weight_read_bytes", [op.weight_read for op in ops], "weights", "B"),
            Column("kv_read_bytes", [op.kv_read for op in ops], "KV read", "B"),
            Column("kv_append_bytes", [op.kv_append for op in ops], "KV append", "B"),
            Column("flops", [op.flops for op in ops], "FLOPs", "FLOP"),
            Column("floor_s", seconds, "floor", "s", known),
        )
    )


def _label(op: OpWork) -> str | None:
    return op.op.label
