"""Machines: the built-in table, a user's TOML file, and the basis that prices bytes with one of them."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from tracescope.core.errors import TraceError
from tracescope.core.hardware import ASSUMED_ERROR, EXTRAPOLATED, Basis, EnergyModel, HardwareSpec
from tracescope.core.quantity import parse_bandwidth
from tracescope.core.trace import Device
from tracescope.floor.dtypes import WEIGHT_DTYPES
from tracescope.models.limits import did_you_mean, read_toml, shown

_LARGEST: Final = 10**18
_REQUIRED: Final = ("bandwidth", "capacity", "flops")
_FLAGS: Final = ("invented", "approximate", "switch_reduces")
_ENERGY_KEYS: Final = frozenset((
    "level", "memory_pj_per_bit", "flop_pj", "static_w", "link_pj_per_bit", "source",
    "error", "error_source", "extrapolated", "invented",
))  # fmt: skip
_LARGEST_ERROR: Final = 10
_OPTIONAL: Final = (
    "title",
    "tdp_w",
    "link",
    "sustained",
    "sustained_source",
    "llc",
    "year",
    "energy",
    "match",
    "source",
)
_KEYS: Final = frozenset((*_REQUIRED, *_OPTIONAL, *_FLAGS))
_VENDOR_WORDS: Final = frozenset(("nvidia", "amd", "apple", "geforce", "instinct", "graphics", "tesla"))
_NO_NUMBER: Final = re.compile(r"\d+gb|hbm\d+e?|sxm\d+|gfx\w+|sm\d+")
_16_BIT: Final = ("bf16", "fp16", "fp32")


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    return tomllib.loads((files("tracescope") / "presets" / "hardware.toml").read_text("utf-8"))


@lru_cache(maxsize=1)
def hardware_presets() -> tuple[HardwareSpec, ...]:
    """Every built-in machine, in the order of the table."""
    table = _table()
    return tuple(_spec(name, row, table["energy"], "hardware.toml") for name, row in table["hardware"].items())


@lru_cache(maxsize=1)
def energy_presets() -> dict[str, EnergyModel]:
    """Every built-in energy fit by name."""
    return {name: _energy(row, f"hardware.toml, energy.{name}") for name, row in _table()["energy"].items()}


def load_hardware(name_or_path: str) -> HardwareSpec:
    """A built-in machine by name, or the one machine of a TOML file with the same keys.

    Raises TraceError where there is neither, or where a value is missing or impossible.
    """
    if not name_or_path.strip():
        raise TraceError("the name of the machine is empty", action="Give --hardware a name or a file.")
    for spec in hardware_presets():
        if spec.name == name_or_path:
            return spec
    path = Path(name_or_path)
    try:
        exists = path.exists()
    except (OSError, ValueError):  # a name that no file system takes
        exists = False
    if exists or path.suffix == ".toml":
        return _from_file(path)
    raise TraceError(
        f"no machine is called '{name_or_path}'",
        action=did_you_mean(name_or_path, [spec.name for spec in hardware_presets()], "give a .toml file"),
    )


def hardware_for_device(name: str) -> HardwareSpec | None:
    """The built-in machine that a trace's device name (``NVIDIA H100 80GB HBM3``) stands for, if one does.

    The whole name has to agree, the vendor's words apart: a laptop's ``RTX 4090`` is another machine.
    """
    wanted = _bare(name)
    for preset, row in _table()["hardware"].items():
        if wanted and any(wanted == _bare(known) for known in row.get("match", ())):
            return load_hardware(preset)
    return None


def _bare(name: str) -> str:
    words = name.casefold().replace("-", " ").replace("_", " ").split()
    return " ".join(word for word in words if word not in _VENDOR_WORDS)


def contradiction(hardware: HardwareSpec | None, devices: Iterable[Device]) -> str | None:
    """The sentence for a trace whose devices are, by their names, of another machine than ``hardware``; None where not.

    Two presets are told apart by name; where either is none, by the numbers in their names (``H100``) if both have any.
    """
    if hardware is None:
        return None
    is_preset = hardware in hardware_presets()
    own = _numbers(f"{hardware.name} {hardware.title}")
    for name in sorted({device.name for device in devices}):
        recorded, numbers = hardware_for_device(name), _numbers(name)
        if recorded is not None and is_preset:
            differs = recorded.name != hardware.name
        else:
            differs = bool(own and numbers) and not own & numbers
        if differs:
            return f"the trace was recorded on {name}, but its floors are those of {hardware.title}"
    return None


def _numbers(name: str) -> set[str]:
    """Words with a digit in a machine's name, but for memory, socket and architecture: ``H100``, ``4090``."""
    words = re.findall(r"[a-z0-9]+", name.casefold())
    return {word for word in words if any(c.isdigit() for c in word) and not _NO_NUMBER.fullmatch(word)}


def make_basis(hardware: HardwareSpec | None, bandwidth: str | None = None, compute_dtype: str = "bf16") -> Basis:
    """What prices bytes: ``bandwidth`` is ``datasheet`` (default), ``sustained`` or a rate such as ``3.0TB/s``.

    ``compute_dtype`` is the one the FLOPs run at (``compute`` of the weight dtype). A rate alone, without hardware, is
    enough for a memory floor. Raises TraceError where the machine has no sustained value or the text is no rate.
    """
    hardware = None if hardware is None else _with_its_error(hardware)
    rate, source = _bandwidth(hardware, bandwidth)
    if hardware is None:
        return Basis(bandwidth_bytes_per_s=rate, bandwidth_source=source, compute_dtype=compute_dtype)
    native = "bf16" if compute_dtype in _16_BIT else compute_dtype
    notes: list[str] = []
    if native not in hardware.flops_per_s:
        notes.append(f"{hardware.name} has no {native} rate: computed at the 16-bit rate, needs a dequantising kernel")
        native = "bf16"
    elif native != "bf16":
        notes.append(f"every FLOP is priced at the {native} rate; the 16-bit parts make the floor looser, not wrong")
    elif compute_dtype == "fp32":
        notes.append("fp32 is computed at the 16-bit rate, which only makes the floor looser")
    return Basis(
        hardware=hardware,
        bandwidth_bytes_per_s=rate,
        bandwidth_source=source,
        peak_flops_per_s=hardware.flops_per_s.get(native),
        compute_dtype=native,
        link_bytes_per_s=hardware.link_bytes_per_s,
        switch_reduces=hardware.switch_reduces,
        energy=hardware.energy,
        notes=tuple(notes),
    )


def _with_its_error(spec: HardwareSpec) -> HardwareSpec:
    """A machine recorded before fits had errors takes that of the same fit, if the built-in machine has it."""
    fit = spec.energy
    if fit is None or fit.error_source or fit.error != ASSUMED_ERROR:
        return spec
    for known in hardware_presets():
        own = known.energy
        if known.name == spec.name and own is not None and _same_fit(own, fit):
            return replace(spec, energy=own)
    return spec


def _same_fit(one: EnergyModel, other: EnergyModel) -> bool:
    names = ("memory_pj_per_bit", "flop_pj", "static_w", "link_pj_per_bit", "level", "source")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def _bandwidth(hardware: HardwareSpec | None, text: str | None) -> tuple[int | None, str]:
    word = (text or "").strip().lower()
    if word in ("", "datasheet"):
        if hardware is None:
            if word:
                raise TraceError("a datasheet bandwidth needs a machine", action="Give --hardware, or a rate.")
            return None, "unknown"
        return hardware.bandwidth_bytes_per_s, "datasheet"
    if word == "sustained":
        if hardware is None:
            raise TraceError("a sustained bandwidth needs a machine", action="Give --hardware, or a rate.")
        if hardware.sustained_bytes_per_s is None:
            raise TraceError(
                f"no sustained bandwidth of {hardware.name} is known", action="Use datasheet, or give a measured rate."
            )
        return hardware.sustained_bytes_per_s, "sustained"
    return parse_bandwidth(word if text is None else text), "user"


def _from_file(path: Path) -> HardwareSpec:
    table = read_toml(path)
    machines = table.get("hardware", table)
    if isinstance(machines, dict) and not any(key in machines for key in _REQUIRED):
        if len(machines) != 1:
            raise TraceError(f"{path}: holds {len(machines)} machines, expected one [hardware.NAME] table")
        name, row = next(iter(machines.items()))
    else:
        name, row = path.stem, machines
    if not isinstance(row, dict):
        raise TraceError(f"{path}: holds no [hardware.NAME] table")
    energies = table.get("energy", {})
    own = energies if isinstance(energies, dict) else {}
    spec = _spec(str(name), row, {**_table()["energy"], **own}, str(path))
    if spec.energy is not None and isinstance(row.get("energy"), str) and row["energy"] not in own:
        return replace(spec, energy=_elsewhere(spec.energy))
    return spec


def _elsewhere(fit: EnergyModel) -> EnergyModel:
    """A built-in fit on another machine than the one whose runs tell its error: extrapolated, twice as wide."""
    if fit.extrapolated:
        return fit
    return replace(fit, error=EXTRAPOLATED * fit.error, error_source="", extrapolated=True)


def _spec(name: str, row: Mapping[str, Any], energies: Mapping[str, Any], file: str) -> HardwareSpec:
    where = f"{file}, {name}"
    for key in _REQUIRED:
        if key not in row:
            raise TraceError(f"{where}: {key} is missing")
    for key in row:
        if key not in _KEYS:
            raise TraceError(f"{where}: unknown key '{key}'", action="Known: " + " ".join(sorted(_KEYS)))
    rates = row["flops"]
    if not isinstance(rates, dict) or "bf16" not in rates:
        raise TraceError(f"{where}: flops must be a table with a bf16 rate, got {shown(rates)}")
    known = {dtype.compute for dtype in WEIGHT_DTYPES.values()} | {"int8"}
    wrong = [dtype for dtype in rates if dtype not in known]
    if wrong:
        action = "Known: " + " ".join(sorted(known))
        raise TraceError(f"{where}: flops.{wrong[0]} is not a compute dtype", action=action)
    energy = row.get("energy")
    if energy is not None and not (isinstance(energy, dict) or (isinstance(energy, str) and energy in energies)):
        raise TraceError(f"{where}: energy {shown(energy)} is not known", action="Known: " + " ".join(energies))
    fit = None if energy is None else energy if isinstance(energy, dict) else energies[energy]
    joules = None if fit is None else _energy(fit, f"{where}, energy")
    if joules is not None and row.get("invented") is True:
        joules = replace(joules, invented=True)
    return HardwareSpec(
        name=name,
        title=_text(row, "title", where) or name,
        bandwidth_bytes_per_s=_number(row, "bandwidth", where),
        capacity_bytes=_number(row, "capacity", where),
        flops_per_s={dtype: _number(rates, dtype, f"{where}, flops") for dtype in rates},
        source=_text(row, "source", where) or f"{Path(file).name}: no source given",
        tdp_w=float(_number(row, "tdp_w", where)) if "tdp_w" in row else None,
        link_bytes_per_s=_number(row, "link", where) if "link" in row else None,
        sustained_bytes_per_s=_number(row, "sustained", where) if "sustained" in row else None,
        sustained_source=_text(row, "sustained_source", where),
        llc_bytes=_number(row, "llc", where) if "llc" in row else None,
        year=_number(row, "year", where) if "year" in row else None,
        switch_reduces=row.get("switch_reduces") is True,
        invented=row.get("invented") is True,
        approximate=row.get("approximate") is True,
        energy=joules,
    )


def _energy(row: Any, where: str) -> EnergyModel:
    if not isinstance(row, dict):
        raise TraceError(f"{where}: must be a table")
    level = row.get("level")
    if level not in ("device", "board"):
        raise TraceError(f"{where}: level must be device or board, got {shown(level)}")
    for key in row:
        if key not in _ENERGY_KEYS:
            raise TraceError(f"{where}: unknown key '{key}'", action="Known: " + " ".join(sorted(_ENERGY_KEYS)))
    for key in ("extrapolated", "invented"):
        if not isinstance(row.get(key, False), bool):
            raise TraceError(f"{where}: {key} must be true or false, got {shown(row[key])}")
    link = row.get("link_pj_per_bit")
    error = _error(row, where)
    return EnergyModel(
        _three(row, "memory_pj_per_bit", where),
        _three(row, "flop_pj", where),
        _three(row, "static_w", where),
        level,
        _text(row, "source", where) or "no source given",
        None if link is None else _three({"link_pj_per_bit": [link] * 3}, "link_pj_per_bit", where)[1],
        error=ASSUMED_ERROR if error is None else error,
        error_source=_text(row, "error_source", where),
        extrapolated=error is None or row.get("extrapolated") is True,
        invented=row.get("invented") is True,
    )


def _error(row: Mapping[str, Any], where: str) -> float | None:
    error = row.get("error")
    if error is None:
        return None
    if isinstance(error, bool) or not isinstance(error, (int, float)) or not 0 <= error <= _LARGEST_ERROR:
        raise TraceError(f"{where}: error must be a share from 0 to {_LARGEST_ERROR}, such as 0.2, got {shown(error)}")
    return float(error)


def _three(row: Mapping[str, Any], key: str, where: str) -> tuple[float, float, float]:
    value = row.get(key)
    if not isinstance(value, list) or len(value) != 3:
        raise TraceError(f"{where}: {key} must be three numbers (low, mid, high)")
    for number in value:
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 <= number <= 1e6:
            raise TraceError(f"{where}: {key} has {shown(number)}, which is no such number")
    return float(value[0]), float(value[1]), float(value[2])


def _number(row: Mapping[str, Any], key: str, where: str) -> int:
    value = row[key]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= _LARGEST:
        raise TraceError(f"{where}: {key} must be a positive number up to 10^18, got {shown(value)}")
    return round(value)


def _text(row: Mapping[str, Any], key: str, where: str) -> str:
    value = row.get(key, "")
    if not isinstance(value, str):
        raise TraceError(f"{where}: {key} must be text, got {shown(value)}")
    return value
