"""Models: the built-in ones by name, any config.json or a directory that holds one by path."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from tracescope.core.dtypes import kv_dtype, weight_dtype
from tracescope.core.errors import TraceError
from tracescope.core.model import ModelSpec
from tracescope.models.config import read_config, spec_from_config


@dataclass(frozen=True, slots=True)
class ModelPreset:
    """One built-in model: ``spec`` where it can be counted, else ``refusal`` says why not."""

    name: str
    title: str
    source: str
    invented: bool
    spec: ModelSpec | None
    refusal: str = ""


@lru_cache(maxsize=1)
def _configs() -> dict[str, dict[str, Any]]:
    folder = files("tracescope") / "presets" / "models"
    found = {
        entry.name.removesuffix(".json"): msgspec.json.decode(entry.read_bytes())
        for entry in folder.iterdir()
        if entry.name.endswith(".json")
    }
    return dict(sorted(found.items()))


@lru_cache(maxsize=1)
def model_presets() -> tuple[ModelPreset, ...]:
    """Every built-in model by name, those whose structure is not modelled yet included."""
    return tuple(_preset(name, config) for name, config in _configs().items())


def _preset(name: str, config: Mapping[str, Any]) -> ModelPreset:
    title, source, invented = config["_title"], config["_source"], config.get("_invented") is True
    try:
        spec = spec_from_config(config, name=name, file=f"model {name}")
    except TraceError as error:
        return ModelPreset(name, title, source, invented, None, error.what)
    return ModelPreset(name, title, source, invented, replace(spec, title=title, source=source, invented=invented))


def load_model(
    name_or_path: str, *, weights: str | None = None, lm_head: str | None = None, kv: str | None = None
) -> ModelSpec:
    """A built-in model by name, a config.json by path, or a directory that holds one.

    ``weights``, ``lm_head`` and ``kv`` replace the dtypes that the config gives. Raises TraceError where the name is
    unknown, the file is no config, or its structure is not modelled.
    """
    spec = _find(name_or_path)
    if weights is not None:
        spec = replace(spec, weights=weight_dtype(weights).name)
    if lm_head is not None:
        spec = replace(spec, lm_head=weight_dtype(lm_head).name)
    return spec if kv is None else replace(spec, kv=kv_dtype(kv).name)


def _find(name_or_path: str) -> ModelSpec:
    for preset in model_presets():
        if preset.name == name_or_path:
            if preset.spec is None:
                raise TraceError(preset.refusal, action="Dense decoders with full attention can be counted.")
            return preset.spec
    path = Path(name_or_path)
    try:
        is_folder, exists = path.is_dir(), path.exists()
    except (OSError, ValueError):
        is_folder = exists = False
    if is_folder:
        path /= "config.json"
        if not path.is_file():
            raise TraceError(f"{name_or_path}: the directory holds no config.json")
    elif not exists and path.suffix != ".json":
        raise TraceError(
            f"no model is called '{name_or_path}'",
            action="Known: " + " ".join(preset.name for preset in model_presets()) + "; or give a config.json.",
        )
    return read_config(path)
