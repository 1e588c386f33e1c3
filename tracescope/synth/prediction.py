"""What a decode step will take on a machine, by the calibrated profile, with the error of such predictions."""

from dataclasses import dataclass, replace
from typing import Final

from tracescope.core.errors import TraceError
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.synth.calibrated import NO_HOST, HostOverhead
from tracescope.synth.calibration import POOLED, calibration
from tracescope.synth.step_times import StepTimes
from tracescope.synth.timing import CALIBRATED

VLLM: Final = "vllm"


@dataclass(frozen=True, slots=True)
class Predicted:
    """A mean step in seconds, its host's share included.

    ``error_fraction``: the mean error of steps that were measured and predicted alike, None where none was: each time
    the rows of one of ``left_out`` (models or machines) were not there to learn from. ``pooled``: nothing of this
    machine was measured. ``host``: whose share is in it.
    """

    step_s: float
    error_fraction: float | None
    pooled: bool
    host: str
    left_out: str | None = None


class Predictor:
    """Predicts steps of one model on one machine, for any batch and context. Nothing is predicted without a machine."""

    def __init__(self, model: ModelSpec, basis: Basis, workload: Workload, host: HostOverhead) -> None:
        self._host, self._machine = host, basis.hardware.name if basis.hardware else None
        self._times: StepTimes | None = None
        self._alike = _as_measured(model)
        if basis.hardware is None or workload.prefix_aware:
            return
        one = replace(workload, batch=1, context=0, prefix=0, prefix_group=1, prefix_aware=False)
        try:
            times = StepTimes(model, basis, one, CALIBRATED, host)
            times.step_ns(1, times.tokens_read(0))
        except TraceError:  # the basis cannot price a step, or the cache of a request depends on its neighbours
            return
        self._times = times

    def at(self, batch: int, context: int) -> Predicted | None:
        """A step of ``batch`` requests with ``context`` cached tokens each; None where nothing can be predicted."""
        if self._times is None:
            return None
        table, read = calibration(), [batch * tokens for tokens in self._times.tokens_read(context)]
        # Of a host that somebody made up no step was measured, and none of another kind of model.
        alike = self._alike and self._host.name in (VLLM, NO_HOST.name)
        error = table.error_of(self._machine, served=self._host.name == VLLM) if alike else None
        return Predicted(
            self._times.step_ns(batch, read) / 1e9,
            None if error is None else error.error,
            not table.measures(self._machine),
            self._host.name,
            None if error is None else "machines" if error.machine == POOLED else "models",
        )


def _as_measured(model: ModelSpec) -> bool:
    """Whether ``model`` is of the kind whose whole steps were measured: dense, full attention in every layer."""
    attentions = [kind.attention for kind, _ in model.layer_kinds]
    full = all(a is not None and (a.window, a.chunk, a.indexer, a.latent) == (None,) * 4 for a in attentions)
    return full and model.experts is None and not any(kind.recurrent for kind, _ in model.layer_kinds)
