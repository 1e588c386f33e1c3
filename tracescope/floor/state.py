"""Recurrent state: bytes of fixed size a request that a step reads and writes, whatever the context."""

from tracescope.core.layer_parts import Layer
from tracescope.core.model import ModelSpec
from tracescope.floor.dtypes import plain_bytes
from tracescope.floor.matrices import share


def layer_state_bytes(model: ModelSpec, kind: Layer, ranks: int = 1) -> int:
    """Bytes of one request's state in such a layer on one rank: the recurrence's own and the convolution's columns.

    The recurrence has a dtype of its own, the columns that of the activations. 0 where there is no such part, or where
    its size is not known (:func:`state_is_known`).
    """
    recurrent = kind.recurrent
    if recurrent is None or recurrent.state is None:
        return 0
    own = share(recurrent.state, ranks) * plain_bytes(recurrent.state_dtype)
    return own + share(recurrent.convolved, ranks) * plain_bytes(model.activations)


def state_bytes_per_request(model: ModelSpec, ranks: int = 1) -> int:
    """Bytes of state that one request keeps over all layers on one rank."""
    return sum(n * layer_state_bytes(model, kind, ranks) for kind, n in model.layer_kinds)


def state_is_known(model: ModelSpec) -> bool:
    """Whether the size of every state is known; without one it is."""
    return all(kind.recurrent is None or kind.recurrent.state is not None for kind, _ in model.layer_kinds)
