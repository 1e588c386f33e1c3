"""What a quantization_config says about bytes: the format of the linear weights, and what stays in 16 bit."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tracescope.core.errors import TraceError
from tracescope.floor.kept_modules import keeps_head
from tracescope.models.limits import read_json_object, shown

DECLARATIONS: Final = ("quantization_config", "compression_config", "quantization")
"""Where checkpoints declare their format: the usual key, that of older compressed-tensors, that of MLX."""
BESIDE: Final = "hf_quant_config.json"
_SKIP_KEYS: Final = ("modules_to_not_convert", "ignored_layers", "ignore", "llm_int8_skip_modules", "exclude_modules")
_PLAIN_NAME: Final = re.compile(r"(?:[\w\-]+|\*)(?:\.(?:[\w\-]+|\*))*")


@dataclass(frozen=True, slots=True)
class Quantization:
    """``weights`` is None where nothing is quantized; ``unconverted`` are module names that stay in 16 bit."""

    weights: str | None = None
    lm_head: str | None = None
    unconverted: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    kv: str | None = None
    """The format in which the checkpoint's cache is to be kept, None where it does not say."""
    embedding: str = ""


def beside_config(path: Path) -> dict[str, Any]:
    """What a file beside the config.json at ``path`` says about formats, as the key of a config; empty without one.

    Older ModelOpt checkpoints keep it in ``hf_quant_config.json``.
    """
    beside = path.parent / BESIDE
    if path.name != "config.json" or not beside.is_file():
        return {}
    section = read_json_object(beside).get("quantization")
    if not isinstance(section, dict):
        raise TraceError(f"{beside}: quantization must be an object, got {shown(section)}")
    return {"quantization_config": {"quant_method": "modelopt", **section}}


def declared_quantization(config: Mapping[str, Any], where: str) -> Quantization:
    """The formats that ``config`` declares under any of the keys where checkpoints do."""
    for key in DECLARATIONS:
        value = config.get(key)
        if not value:
            continue
        if isinstance(value, dict) and value.get("quant_method") is None and "group_size" in value and "bits" in value:
            return _mlx(value, f"{where}: {key}")
        return read_quantization(value, where)
    return Quantization()


def _mlx(config: Mapping[str, Any], where: str) -> Quantization:
    """MLX: groups with a 16-bit scale and bias each, or an MX format; the head and the embedding like the rest.

    A module with a format of its own is listed by its name: false for none.
    """
    bits, group, mode = config.get("bits"), config.get("group_size"), config.get("mode", "affine")
    if mode in ("mxfp4", "nvfp4"):
        weights = str(mode)
    elif (mode == "affine" and bits in (2, 3, 4, 5, 6, 8) and isinstance(group, int)) and 0 < group < 1_000_000:
        weights = f"int{bits}-g{group}"
    else:
        raise TraceError(
            f"{where}: mode {shown(mode)} with {shown(bits)} bits and groups of {shown(group)} is not known"
        )
    kept, notes = [], []
    for name, own in config.items():
        plain = _plain(name)
        if own is False and plain:
            kept.append(plain)
        elif isinstance(own, dict) and (own.get("bits", bits), own.get("group_size", group)) != (bits, group):
            notes.append(f"quantization: {name} has a format of its own; it is counted as {weights}")
    head = None if keeps_head(tuple(kept)) else weights
    embedding = "" if any("embed_tokens" in name or "wte" in name for name in kept) else weights
    if len(notes) > 1:
        notes = [f"quantization: {len(notes)} modules have formats of their own; they are counted as {weights}"]
    return Quantization(weights, head, tuple(kept), tuple(notes), embedding=embedding)


def read_quantization(config: Any, where: str) -> Quantization:
    """The formats that ``config`` (the value of ``quantization_config``) declares.

    An unknown method is an assumption (sizes then follow the dtype of the config); a known method with impossible
    numbers raises TraceError naming the key.
    """
    if config is None or config == {}:
        return Quantization()
    if not isinstance(config, dict):
        raise TraceError(f"{where}: quantization_config must be an object, got {shown(config)}")
    method = config.get("quant_method")
    if method is None and config.get("quant_algo"):
        method = "modelopt"
    reader = _METHODS.get(method) if isinstance(method, str) else None
    if reader is None:
        text = f"unknown quant_method {shown(method).replace(chr(34), chr(39))}; sizes assume torch_dtype"
        return Quantization(assumptions=(text,))
    weights, notes = reader(config, where)
    unconverted, unread = _skipped(config, where)
    for pattern in unread:
        notes.append(f"quantization_config: {shown(pattern)} was not understood; what it names counts as quantized")
    head: str | None = None
    if keeps_head(unconverted):
        pass
    elif method == "compressed-tensors":
        head = weights  # its target "Linear" takes in the head unless the ignore list names it
    else:
        notes.append(f"lm_head is taken as not quantized, which is the default of {method}")
    return Quantization(weights, head, unconverted, tuple(notes), _kv_format(config, where))


def _kv_format(config: Mapping[str, Any], where: str) -> str | None:
    """The format of the KV cache that the checkpoint brings scales for: one for each tensor, which weigh nothing."""
    algorithm, scheme = config.get("kv_cache_quant_algo"), config.get("kv_cache_scheme")
    if algorithm is None and scheme is None:
        return None
    if algorithm is not None:
        kind, bits = ("float", 8) if algorithm == "FP8" else ("int", 8) if algorithm == "INT8" else (algorithm, None)
    elif isinstance(scheme, dict):
        kind, bits = scheme.get("type", "float"), scheme.get("num_bits")
    else:
        kind, bits = scheme, None
    name = {"float": "fp8", "int": "int8"}.get(kind) if isinstance(kind, str) and bits == 8 else None
    if name is None:
        raise TraceError(f"{where}: quantization_config: a KV cache of {shown(bits)}-bit {shown(kind)} is not known")
    return name


def _skipped(config: Mapping[str, Any], where: str) -> tuple[tuple[str, ...], list[str]]:
    names: list[str] = []
    unread: list[str] = []
    for key in _SKIP_KEYS:
        listed = config.get(key)
        if listed is None:
            continue
        if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
            raise TraceError(f"{where}: quantization_config.{key} must be a list of module names, got {shown(listed)}")
        for name in listed:
            plain = _plain(name)
            (names if plain else unread).append(plain or name)
    return tuple(dict.fromkeys(names)), unread


def _plain(pattern: str) -> str | None:
    """A module name out of a simple pattern (``re:.*lm_head$``, ``*self_attn*``); None where it is more than that.

    A part of its own that matches anything becomes ``*`` (``model.layers.*.self_attn``). Patterns are never run as
    regular expressions: a hostile one can take for ever.
    """
    text = pattern.removeprefix("re:").strip("^$").replace(r"\.", ".")
    for anything in (r"\d+", r"[0-9]+", ".*"):
        text = text.replace(f".{anything}.", ".*.")
    while text.startswith((".*", "*")):
        text = text[2:] if text.startswith(".*") else text[1:]
    while text.endswith((".*", "*")):
        text = text[:-2] if text.endswith(".*") else text[:-1]
    text = text.strip(".")
    return text if _PLAIN_NAME.fullmatch(text) else None


def _whole(config: Mapping[str, Any], key: str, default: int, where: str, notes: list[str]) -> int:
    value = config.get(key)
    if value is None:
        notes.append(f"quantization_config.{key} is absent; {default} is assumed")
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not (value == -1 or 0 < value <= 1 << 20):
        raise TraceError(f"{where}: quantization_config.{key} must be a positive whole number, got {shown(value)}")
    return value


def _gptq(config: Mapping[str, Any], where: str) -> tuple[str, list[str]]:
    notes: list[str] = []
    bits = _whole(config, "bits", 4, where, notes)
    group = _whole(config, "group_size", 128, where, notes)
    if bits not in (2, 3, 4, 8):
        raise TraceError(f"{where}: quantization_config.bits is {bits}; 2, 3, 4 or 8 are known")
    if group == -1:  # one group over the whole input
        group = 999_999
    return f"gptq-int{bits}" + ("" if bits == 4 and group == 128 else f"-g{group}"), notes


def _fp8(config: Mapping[str, Any], where: str) -> tuple[str, list[str]]:
    block = config.get("weight_block_size")
    if block is None:
        return "fp8-tensor", []
    if block == [128, 128]:
        return "fp8", []
    raise TraceError(f"{where}: quantization_config.weight_block_size must be [128, 128], got {shown(block)}")


def _bitsandbytes(config: Mapping[str, Any], where: str) -> tuple[str, list[str]]:
    if config.get("load_in_4bit") is True or config.get("_load_in_4bit") is True:
        return ("nf4-double" if config.get("bnb_4bit_use_double_quant") is True else "nf4"), []
    if config.get("load_in_8bit") is True or config.get("_load_in_8bit") is True:
        return "bnb-int8", []
    raise TraceError(f"{where}: quantization_config has neither load_in_4bit nor load_in_8bit set")


def _compressed_tensors(config: Mapping[str, Any], where: str) -> tuple[str, list[str]]:
    groups = config.get("config_groups")
    if not isinstance(groups, dict) or len(groups) != 1:
        raise TraceError(f"{where}: quantization_config.config_groups must hold one group, got {shown(groups)}")
    (group,) = groups.values()
    weights = group.get("weights") if isinstance(group, dict) else None
    if not isinstance(weights, dict):
        raise TraceError(f"{where}: quantization_config.config_groups has no weights")
    notes: list[str] = []
    bits = _whole(weights, "num_bits", 8, where, notes)
    kind, strategy, size = weights.get("type", "int"), weights.get("strategy"), weights.get("group_size")
    if kind == "float" and bits == 8:
        if strategy is None:
            notes.append("quantization_config: no strategy is given; one scale a tensor is assumed")
        names = {None: "fp8-tensor", "tensor": "fp8-tensor", "channel": "fp8-channel", "block": "fp8"}
        if strategy in names:
            return names[strategy], notes
    elif kind == "float" and bits == 4 and size in (16, 32):
        return {16: "nvfp4", 32: "mxfp4"}[size], notes
    elif kind == "int" and strategy == "channel" and bits == 8:
        return "int8", notes
    elif kind == "int" and isinstance(size, int) and 0 < size < 1_000_000 and bits in (4, 8):
        return f"int{bits}-g{size}" + ("-sym" if weights.get("symmetric", True) is True else ""), notes
    raise TraceError(
        f"{where}: quantization_config.config_groups: {bits}-bit {shown(kind)} weights with strategy {shown(strategy)} "
        "are not known"
    )


def _modelopt(config: Mapping[str, Any], where: str) -> tuple[str, list[str]]:
    algorithm = config.get("quant_algo")
    names = {"FP8": "fp8-tensor", "NVFP4": "nvfp4"}
    if algorithm not in names:
        raise TraceError(f"{where}: quantization_config.quant_algo {shown(algorithm)} is not known")
    return names[algorithm], []


def _fbgemm(config: Mapping[str, Any], where: str) -> tuple[str, list[str]]:
    return "fp8-channel", []


def _mxfp4(config: Mapping[str, Any], where: str) -> tuple[str, list[str]]:
    return "mxfp4", []


_METHODS: Final[dict[str, Callable[[Mapping[str, Any], str], tuple[str, list[str]]]]] = {
    "gptq": _gptq,
    "awq": _gptq,
    "fp8": _fp8,
    "fbgemm_fp8": _fbgemm,
    "bitsandbytes": _bitsandbytes,
    "compressed-tensors": _compressed_tensors,
    "modelopt": _modelopt,
    "mxfp4": _mxfp4,
}
