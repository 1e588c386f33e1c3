"""What stands beside a floor, not in it: what a step is predicted to take, and the latency of all-reduces."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Self

from tracescope.core import units
from tracescope.floor.step_floor import StepFloor
from tracescope.synth.latency import TITLE, Latency, step_latency
from tracescope.synth.prediction import VLLM, Predicted, Predictor


@dataclass(frozen=True, slots=True)
class Beside:
    """``predicted`` and ``latency`` are None where there is none to tell."""

    predicted: Predicted | None
    latency: Latency | None

    @classmethod
    def of(cls, floor: StepFloor, predictor: Predictor) -> Self:
        """What stands beside ``floor``, by the predictor of its model and machine."""
        model, workload, basis = floor.model, floor.workload, floor.basis
        return cls(predictor.at(workload.batch, workload.context), step_latency(model, workload, basis))

    def document(self) -> dict[str, Any]:
        """The JSON keys ``predicted``, ``latency_s`` and ``latency_source``."""
        return {
            "predicted": None if self.predicted is None else asdict(self.predicted),
            "latency_s": None if self.latency is None else self.latency.seconds,
            "latency_source": None if self.latency is None else self.latency.source,
        }

    def lines(self) -> Iterator[tuple[str, str]]:
        """The rows of the page."""
        if self.predicted is not None:
            yield "predicted", predicted_words(self.predicted)
        if self.latency is not None:
            yield "", f"{TITLE}: {self.latency.words}"


def predicted_words(found: Predicted) -> str:
    """``5.9 ms ± 8 %: calibrated profile, …``; what is not known of the error is said."""
    return f"{units.seconds(found.step_s)} {prediction_error(found)} ({how_predicted(found)})"


def prediction_error(found: Predicted) -> str:
    """``± 5 %``, or that it is not known."""
    return "error not known" if found.error_fraction is None else f"± {units.percent(found.error_fraction)}"


def how_predicted(found: Predicted) -> str:
    """Profile, host, what the error is a mean of, and whether anything of this machine was measured."""
    host = {VLLM: "with vLLM's host", "none": "without a host"}.get(found.host, f"with {found.host} a request of host")
    how = f"calibrated profile {host}" + (
        "" if found.error_fraction is None else f", mean error of {found.left_out} left out"
    )
    pooled = "; nothing of this machine was measured: from others" if found.pooled else ""
    return f"{how}{pooled}"
