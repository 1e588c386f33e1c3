"""Models in files of version 1 and early ones of version 2, which named a window for each layer and nothing else."""

from dataclasses import replace

import msgspec

from tracescope.core.layer_parts import unsized_recurrence
from tracescope.core.model import ModelSpec, kinds_of


class _Model(msgspec.Struct):
    windows: tuple[int | None, ...] = ()


class _Trace(msgspec.Struct):
    model: _Model | None = None


class _Description(msgspec.Struct):
    trace: _Trace


def with_older_windows(model: ModelSpec | None, description: bytes) -> ModelSpec | None:
    """``model`` with the windows that the JSON ``description`` may give its layers, 0 where one keeps no cache.

    Raises ValueError where they cannot be: of another number of layers, or negative.
    """
    if model is None or model.kinds:
        return model
    older = msgspec.json.decode(description, type=_Description).trace.model
    windows = () if older is None else older.windows
    if not windows:
        return model
    if len(windows) != model.layers:
        raise ValueError(f"windows of {len(windows)} layers in a model of {model.layers}")
    layers = []
    for number, window in enumerate(windows):
        layer = model.plain_layer(number)
        if layer.attention is None or window is None:
            layers.append(layer)
        elif window:
            layers.append(replace(layer, attention=replace(layer.attention, window=window)))
        else:
            recurrent = unsized_recurrence("a layer without a cache", model.hidden, layer.attention)
            layers.append(replace(layer, attention=None, recurrent=recurrent))
    return replace(model, **kinds_of(layers))
