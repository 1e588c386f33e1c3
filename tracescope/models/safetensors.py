"""Headers of *.safetensors files: names, dtypes, shapes and sizes of the tensors, without reading any of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from tracescope.core.errors import TraceError
from tracescope.core.regular import require_regular
from tracescope.models.limits import read_json_object, shown
from tracescope.models.tensors import StoredTensor

SUFFIX: Final = ".safetensors"
INDEX: Final = "model.safetensors.index.json"

MAX_HEADER: Final = 100 << 20
"""The format's own limit for the JSON header of one file."""

MAX_SHARDS: Final = 4096
MAX_TENSORS: Final = 1 << 20
_MAX_ALL_HEADERS: Final = 512 << 20
_LARGEST: Final = 1 << 50

BITS: Final = {
    "F64": 64, "I64": 64, "U64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16, "BF16": 16, "I16": 16, "U16": 16,
    "I8": 8, "U8": 8, "BOOL": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip


class _Entry(msgspec.Struct):
    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


_ENTRIES: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENTRY: Final = msgspec.json.Decoder(_Entry)


def shards(folder: Path) -> tuple[Path, ...]:
    """The *.safetensors files of a model in ``folder``, by name; empty where there is none.

    Where an index says which files there are, exactly those; raises TraceError naming one that is missing.
    """
    index = folder / INDEX
    if index.is_file():
        placed = read_json_object(index).get("weight_map")
        if not isinstance(placed, dict) or not all(isinstance(name, str) for name in placed.values()):
            raise TraceError(f"{index}: weight_map must map tensors to file names, got {shown(placed)}")
        found = [folder / name for name in sorted(set(placed.values()))]
        for path in found:
            if path.parent != folder or path.suffix != SUFFIX:
                raise TraceError(f"{index}: {shown(path.name)} is not a file beside it")
            if not path.is_file():
                raise TraceError(f"{path}: the index names this file and it is not there")
    else:
        found = sorted(path for path in folder.glob(f"*{SUFFIX}") if path.is_file())
        # A consolidated copy of the same weights in another layout is not a further shard.
        plain = [path for path in found if not path.name.startswith("consolidated")]
        found = plain or found
    if len(found) > MAX_SHARDS:
        raise TraceError(f"{folder}: {len(found)} shards; at most {MAX_SHARDS} are read")
    return tuple(found)


def read_headers(paths: tuple[Path, ...]) -> tuple[StoredTensor, ...]:
    """Every tensor that the headers of ``paths`` name; raises TraceError for a header that cannot be true."""
    found: dict[str, StoredTensor] = {}
    total = 0
    for path in paths:
        size, tensors = _read_one(path)
        total += size
        if total > _MAX_ALL_HEADERS:
            raise TraceError(f"{path}: the headers of this model are larger than {_MAX_ALL_HEADERS >> 20} MiB together")
        for tensor in tensors:
            if tensor.name in found:
                raise TraceError(f"{path}: tensor {shown(tensor.name)} is in another shard as well")
            found[tensor.name] = tensor
            if len(found) > MAX_TENSORS:
                raise TraceError(f"{path}: more than {MAX_TENSORS:,} tensors")
    return tuple(found.values())


def _read_one(path: Path) -> tuple[int, list[StoredTensor]]:
    require_regular(path)
    try:
        with path.open("rb") as file:
            head = file.read(8)
            length = int.from_bytes(head, "little")
            whole = path.stat().st_size
            if len(head) < 8 or not 2 <= length <= min(MAX_HEADER, whole - 8):
                raise TraceError(f"{path}: not a safetensors file (its header would be {length:,} of {whole:,} bytes)")
            data = file.read(length)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from None
    if len(data) < length:
        raise TraceError(f"{path}: the file ends inside its header")
    try:
        entries = _ENTRIES.decode(data)
        return length, list(_tensors(path, entries, whole - 8 - length))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise TraceError(f"{path}: its header is not one of safetensors: {error or 'nested too deeply'}") from None


def _tensors(path: Path, entries: dict[str, msgspec.Raw], room: int) -> Iterator[StoredTensor]:
    for name, raw in entries.items():
        if name == "__metadata__":
            continue
        entry = _ENTRY.decode(raw)
        begin, end = entry.data_offsets
        bits = BITS.get(entry.dtype)
        if bits is None:
            raise TraceError(f"{path}: tensor {shown(name)} has dtype {shown(entry.dtype)}, which is not known")
        if not 0 <= begin <= end <= room:
            raise TraceError(f"{path}: tensor {shown(name)} lies outside the file; is the download complete?")
        elements = 1
        for extent in entry.shape:
            elements *= extent
            if extent < 0 or elements > _LARGEST:
                raise TraceError(f"{path}: tensor {shown(name)} has an impossible shape")
        if -(-elements * bits // 8) != end - begin:
            raise TraceError(
                f"{path}: tensor {shown(name)} has {end - begin:,} bytes, its shape {elements * bits // 8:,}"
            )
        yield StoredTensor(name, entry.dtype, tuple(entry.shape), end - begin)
