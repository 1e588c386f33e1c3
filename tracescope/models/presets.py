"""Models: the built-in ones by name; any config.json, GGUF file or directory with tensors by path."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import msgspec

from tracescope.core.errors import TraceError
from tracescope.core.model import ModelSpec
from tracescope.floor.dtypes import LATENT_KV, kv_dtype, weight_dtype
from tracescope.models.config import read_config, spec_from_config
from tracescope.models.gguf import SUFFIX as GGUF
from tracescope.models.gguf import read_gguf
from tracescope.models.limits import did_you_mean
from tracescope.models.safetensors import SUFFIX as SAFETENSORS
from tracescope.models.safetensors import read_headers, shards
from tracescope.models.tensors import with_tensors

_LATER_PART: Final = re.compile(r"-(?!00001)\d{5}-of-\d{5}\.gguf$")


@dataclass(frozen=True, slots=True)
class ModelPreset:
    """One built-in model: ``spec`` where it can be counted, else ``refusal`` says why not."""

    name: str
    title: str
    source: str
    invented: bool
    spec: ModelSpec | None
    refusal: str = ""
    hub: tuple[str, ...] = ()
    """Names of the repositories on Hugging Face that hold this model."""

    @property
    def names(self) -> frozenset[str]:
        """Everything that finds it, in lower case: its name, its repositories with and without their owner."""
        return frozenset(text.casefold() for name in (self.name, *self.hub) for text in (name, name.split("/")[-1]))


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
    hub = tuple(config.get("_hub", ()))
    try:
        spec = spec_from_config(config, name=name, file=f"model {name}")
    except TraceError as error:
        return ModelPreset(name, title, source, invented, None, error.what, hub)
    spec = replace(spec, title=title, source=source, invented=invented)
    return ModelPreset(name, title, source, invented, spec, hub=hub)


def load_model(
    name_or_path: str, *, weights: str | None = None, lm_head: str | None = None, kv: str | None = None
) -> ModelSpec:
    """A built-in model by name; a config.json, a GGUF file, or a directory that holds either, by path.

    Where the tensors themselves are there (``*.safetensors``, GGUF), their headers give the bytes and the shapes only
    the FLOPs. ``weights``, ``lm_head`` and ``kv`` replace the dtypes that the config gives; the first two give up the
    tensors' own sizes. Raises TraceError where the name is unknown, the file is no config, or its structure is not
    modelled.
    """
    spec = _find(name_or_path)
    if weights is not None:
        spec = replace(spec, weights=weight_dtype(weights).name, tensors=None)
    if lm_head is not None:
        spec = replace(spec, lm_head=weight_dtype(lm_head).name, tensors=None)
    if kv is None:
        return spec
    if kv_dtype(kv).name == LATENT_KV and spec.latent is None:
        raise TraceError(f"KV dtype '{kv}' is one of latent attention, which {spec.name} does not have")
    return replace(spec, kv=kv_dtype(kv).name)


def _find(name_or_path: str) -> ModelSpec:
    if not name_or_path.strip():
        raise TraceError("the name of the model is empty", action="Give --model a name or a file.")
    path = Path(name_or_path)
    try:
        is_folder, exists = path.is_dir(), path.exists()
    except (OSError, ValueError):
        is_folder = exists = False
    preset = _preset_called(name_or_path, exactly=exists)
    if preset is not None:
        if preset.spec is None:
            raise TraceError(preset.refusal)
        return preset.spec
    if is_folder:
        return _from_folder(path)
    if not exists and path.suffix not in (".json", GGUF, SAFETENSORS):
        raise TraceError(
            f"no model is called '{name_or_path}'",
            action=did_you_mean(name_or_path, [preset.name for preset in model_presets()], "give a config.json"),
        )
    if path.suffix == GGUF:
        return _from_gguf(path)
    if path.suffix == SAFETENSORS:
        return with_tensors(read_config(_config_beside(path.parent)), read_headers((path,)), str(path))
    return read_config(path)


def _preset_called(name: str, *, exactly: bool) -> ModelPreset | None:
    """The built-in model of this name or of this repository on Hugging Face, in any letter case.

    A file or folder of that name goes first, but for the exact name of a preset.
    """
    for preset in model_presets():
        if preset.name == name or (not exactly and name.casefold() in preset.names):
            return preset
    return None


def _config_beside(folder: Path) -> Path:
    path = folder / "config.json"
    if not path.is_file():
        raise TraceError(f"{folder}: the directory holds no config.json", action="A GGUF file needs none.")
    return path


def _from_folder(folder: Path) -> ModelSpec:
    """The model in ``folder``: its config with the sizes of its shards, or the one GGUF model it holds."""
    first = [path for path in sorted(folder.glob(f"*{GGUF}")) if not _LATER_PART.search(path.name)]
    if not (folder / "config.json").exists() and len(first) == 1:
        return _from_gguf(first[0])
    spec = read_config(_config_beside(folder))
    files = shards(folder)
    return with_tensors(spec, read_headers(files), str(folder)) if files else spec


def _from_gguf(path: Path) -> ModelSpec:
    config, tensors, title = read_gguf(path)
    spec = spec_from_config(config, name=path.stem, file=str(path))
    return with_tensors(replace(spec, title=title or path.stem), tensors, str(path))
