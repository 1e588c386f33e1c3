"""What a decode step will take on a machine, by the calibrated profile, with the error of such predictions."""

from dataclasses import dataclass, replace
from typing import Final

from tracescope.core.category import Op
from tracescope.core.errors import TraceError
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.step_ops import counted_ops
from tracescope.synth.calibrated import NO_HOST, HostOverhead
from tracescope.synth.calibration import ALL_REDUCE, POOLED, calibration, records
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
        if basis.hardware is None or workload.prefix_aware:
            return
        one = replace(workload, batch=1, context=0, prefix=0, prefix_group=1, prefix_aware=False)
        try:
            self._times = StepTimes(model, basis, one, CALIBRATED, host)
        except TraceError:  # the basis cannot price a step, or the cache of a request depends on its neighbours
            self._times = None

    def at(self, batch: int, context: int) -> Predicted | None:
        """A step of ``batch`` requests with ``context`` cached tokens each; None where nothing can be predicted."""
        if self._times is None:
            return None
        table, read = calibration(), [batch * tokens for tokens in self._times.tokens_read(context)]
        alike = self._host.name in (VLLM, NO_HOST.name)  # of a host that somebody made up no step was measured
        error = table.error_of(self._machine, served=self._host.name == VLLM) if alike else None
        return Predicted(
            self._times.step_ns(batch, read) / 1e9,
            None if error is None else error.error,
            not table.measures(self._machine),
            self._host.name,
            None if error is None else "machines" if error.machine == POOLED else "models",
        )


@dataclass(frozen=True, slots=True)
class Latency:
    """What the all-reduces of a step take beyond their bytes, which is in no floor: ``count`` of them.

    ``seconds`` is by the fixed time of the fitted law; the smallest that were measured (``message_bytes`` between
    ``ranks``, on ``measured_on``) took ``least_s`` to ``most_s`` each.
    """

    count: int
    seconds: float
    least_s: float
    most_s: float
    message_bytes: int
    ranks: tuple[int, int]
    measured_on: str


def all_reduce_latency(model: ModelSpec, workload: Workload, basis: Basis) -> Latency | None:
    """The latency of the all-reduces of a step; None without any."""
    count = sum(n for op, n in counted_ops(model, workload) if op.op is Op.ALL_REDUCE)
    if not count:
        return None
    rows = records(ALL_REDUCE)
    smallest = min(row["message_bytes"] for row in rows)
    measured = [row for row in rows if row["message_bytes"] == smallest]
    took, ranks = [row["us"] * 1e-6 for row in measured], [row["ranks"] for row in measured]
    fit = calibration().fit(ALL_REDUCE, basis.hardware.name if basis.hardware else None)
    return Latency(
        count, count * fit.fixed_ns / 1e9, min(took), max(took), smallest, (min(ranks), max(ranks)), rows[0]["machine"]
    )
