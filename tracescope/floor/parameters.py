"""How many parameters a model has and a token reads, whatever they are stored in."""

from dataclasses import dataclass, replace
from functools import lru_cache

from tracescope.core.model import ModelSpec
from tracescope.floor.layer_weights import prediction_bytes, stored_bytes
from tracescope.floor.step_ops import weight_read_bytes


@dataclass(frozen=True, slots=True)
class Parameters:
    """``stored`` by the main model, ``read`` for one token alone (of experts the chosen ones; no embedding table).

    ``prediction`` are those of layers that predict later tokens, in neither of the two.
    """

    stored: int
    read: int
    prediction: int


@lru_cache(maxsize=256)
def parameters(model: ModelSpec) -> Parameters:
    """The parameters of ``model`` by its shapes: the bytes of a copy in which every one takes two."""
    plain = replace(
        model, weights="fp16", lm_head="fp16", activations="fp16", embedding="", unconverted=(), tensors=None
    )
    return Parameters(stored_bytes(plain) // 2, weight_read_bytes(plain) // 2, prediction_bytes(plain) // 2)
