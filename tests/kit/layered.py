"""Models whose layers differ, made from ones whose layers do not."""

from dataclasses import replace

from tracescope.core.model import ModelSpec, kinds_of
from tracescope.models.windows import with_reaches


def windowed(model: ModelSpec, windows: tuple[int | None, ...]) -> ModelSpec:
    """``model`` with a window for each layer, 0 where one keeps no cache."""
    return replace(model, **kinds_of(with_reaches([model.plain_layer(i) for i in range(model.layers)], windows, model)))
