"""What the form "Synthesize a run" stands for: one reading of it, for its preview and for the run."""

from dataclasses import dataclass

from tracescope.core.hardware import Basis, HardwareSpec
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.dtypes import weight_dtype
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.ui.settings import SynthForm


@dataclass(frozen=True, slots=True)
class Asked:
    """What a form stands for, as the command line would read the same options."""

    model: ModelSpec
    hardware: HardwareSpec
    basis: Basis
    workload: Workload


def asked_of(form: SynthForm) -> Asked:
    """The model, machine, basis and workload of a form. TraceError where one of its names stands for nothing."""
    model = load_model(form.model, weights=form.weights or None, kv=form.kv or None)
    hardware = load_hardware(form.hardware)
    basis = make_basis(hardware, compute_dtype=weight_dtype(model.weights).compute)
    return Asked(model, hardware, basis, Workload(form.batch, form.context, tensor_parallel=form.ranks))
