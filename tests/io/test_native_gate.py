"""What the gate refuses: each way a file can be foreign, newer, cut, locked, damaged or hostile, as one sentence."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.kit.native import full_trace, some_pyramid
from tracescope.core.errors import TraceError
from tracescope.io import gate, native, native_layout, save
from tracescope.io.gate import h5py

FILTERS: dict[str, Any] = {"compression": "gzip", "compression_opts": 1, "shuffle": True, "fletcher32": True}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "whole.tscope.h5"
    save.write(path, full_trace(300), some_pyramid())
    return path


@pytest.fixture
def own(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(whole, tmp_path / "own.tscope.h5"))


def refusal(path: Path, within_s: float = 3.0) -> str:
    """The one refusal of ``path``; it comes quickly, is one or two lines, and leaves the file as it was."""
    before = path.read_bytes() if path.is_file() else b""
    began = time.monotonic()
    with pytest.raises(TraceError) as caught:
        native.read(path)
    assert time.monotonic() - began < within_s
    lines = caught.value.lines()
    assert 1 <= len(lines) <= 2
    assert path.name in lines[0]
    assert before == (path.read_bytes() if path.is_file() else b"")
    return lines[0]


@contextmanager
def changed(path: Path) -> Any:
    with h5py.File(path, "r+", libver=("earliest", "v110")) as file:
        yield file


def replaced(file: Any, name: str, data: Any, **how: Any) -> None:
    """Store ``data`` in the place of a column, as the writer would unless ``how`` says otherwise."""
    data = np.asarray(data)
    del file[name]
    options = {**FILTERS, "chunks": data.shape, **how}
    file.create_dataset(name, data=data, **options)


# --- not there, not ours, not whole ---


def test_what_is_not_there(tmp_path: Path) -> None:
    assert "does not exist" in refusal(tmp_path / "absent.tscope.h5")
    assert "not a regular file" in refusal(tmp_path)


def test_not_hdf5(tmp_path: Path) -> None:
    path = tmp_path / "text.tscope.h5"
    path.write_text("[1, 2, 3]" * 50)
    assert "not a tracescope file" in refusal(path)
    path.write_bytes(b"")
    assert "incomplete: 0 bytes present" in refusal(path)


@pytest.mark.parametrize("fraction", [0.999, 0.6, 0.01])
def test_own_file_cut_short(own: Path, fraction: float) -> None:
    size = own.stat().st_size
    os.truncate(own, int(size * fraction))
    message = refusal(own)
    assert f"incomplete: {int(size * fraction)} bytes present, {size} bytes expected" in message


@pytest.mark.parametrize("length", [1, 8, 9, 40, 63, 96])
def test_own_file_cut_to_its_head(own: Path, length: int) -> None:
    os.truncate(own, length)
    assert f"incomplete: {length} bytes present" in refusal(own)


@pytest.mark.parametrize("name", ["cut_0010.h5", "cut_0600.h5", "cut_0999.h5", "cut_to_96.h5"])
def test_case_41_cut_files(shared: Callable[[str], Path], name: str) -> None:
    message = refusal(shared(f"cases/41-h5-cut-short/{name}"))
    assert all(words in message for words in ("incomplete", "bytes present", "bytes expected"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("41-h5-cut-short/whole.h5", "not a tracescope file"),
        ("43-h5-locked-by-another-process/sample.h5", "not a tracescope file"),
        ("45-h5-shape-and-filter-bombs/shape_bomb.h5", "declares 8796093022208 bytes where 0 bytes are stored"),
        ("45-h5-shape-and-filter-bombs/gzip_bomb.h5", "declares 1073741824 bytes"),
        ("45-h5-shape-and-filter-bombs/unknown_filter.h5", "filter 32099"),
        ("45-h5-shape-and-filter-bombs/vlen_names.h5", "not a tracescope file"),
        ("47-paths-with-spaces-and-unicode/Ünïcode 试验 — dir/résumé тест.h5", "not a tracescope file"),
        ("71-h5-that-hangs-the-library/hang_1402.h5", "not a tracescope file"),
        ("71-h5-that-hangs-the-library/hang_2292.h5", "not a tracescope file"),
    ],
)
def test_foreign_files(shared: Callable[[str], Path], name: str, words: str) -> None:
    assert words in refusal(shared(f"cases/{name}"), within_s=1.0)


def test_case_45_costs_no_memory(shared: Callable[[str], Path]) -> None:
    path = shared("cases/45-h5-shape-and-filter-bombs/shape_bomb.h5")
    code = (
        "import resource, sys; from pathlib import Path; from tracescope.io import native\n"
        "from tracescope.core.errors import TraceError\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: native.read(Path(sys.argv[1]))\n"
        "except TraceError: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    result = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert int(result.stdout) < 50_000


def test_no_plugin_is_looked_for() -> None:
    assert os.environ["HDF5_PLUGIN_PRELOAD"] == "::"


# --- versions ---


def test_a_newer_version(own: Path) -> None:
    with changed(own) as file:
        file.attrs.modify("version", native_layout.VERSION + 1)
        file.create_group("something_new")
    message = refusal(own)
    assert "newer tracescope" in message
    assert f"reads up to {native_layout.VERSION}" in message


def test_no_version(own: Path) -> None:
    with changed(own) as file:
        file.attrs.modify("version", 0)
    assert "version is 0" in refusal(own)


# --- locks ---


def hold(path: Path, mode: str) -> subprocess.Popen[str]:
    code = "import h5py, sys; f = h5py.File(sys.argv[1], sys.argv[2]); print('open', flush=True); sys.stdin.read()"
    arguments = [sys.executable, "-c", code, str(path), mode]
    holder = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "open\n"
    return holder


def test_case_43_read_while_another_reads_or_writes(own: Path) -> None:
    with hold(own, "r") as holder:
        assert len(native.read(own).trace.events) == 300
        holder.communicate()
    with hold(own, "r+") as holder:
        with pytest.raises(TraceError, match="being written by another program"):
            native.read(own)
        holder.communicate()


@pytest.mark.slow
def test_case_43_save_over_a_file_open_elsewhere(own: Path) -> None:
    for mode in ("r", "r+"):
        with hold(own, mode) as holder:
            save.write(own, full_trace(100))
            holder.communicate()
        assert len(native.read(own).trace.events) == 100


@pytest.mark.parametrize("code", [37, 77, 524])
def test_case_43_file_systems_without_locks(own: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    real = h5py.File

    def without_locks(path: Path, mode: str, locking: Any) -> Any:
        if locking:
            raise OSError(code, "no locks here")
        return real(path, mode, locking=locking)

    monkeypatch.setattr(gate.h5py, "File", without_locks)
    got = native.read(own)
    assert len(got.trace.events) == 300
    assert len(got.notes) == 1
    assert "no locks" in got.notes[0]


# --- structure ---


def _soft(file: Any) -> None:
    del file["events/start"]
    file["events/start"] = h5py.SoftLink("/events/duration")


def _external_link(file: Any) -> None:
    del file["events"]
    file["events"] = h5py.ExternalLink("/etc/passwd", "/")


def _external_storage(file: Any) -> None:
    del file["events/start"]
    file.create_dataset("events/start", (300,), np.int64, external=[("/etc/passwd", 0, 2400)])


def _virtual(file: Any) -> None:
    del file["events/start"]
    virtual = h5py.VirtualLayout((300,), np.int64)
    virtual[:] = h5py.VirtualSource(".", "events/duration", (300,))
    file.create_virtual_dataset("events/start", virtual)


def _never_written(file: Any) -> None:
    del file["meta/json"]
    file.create_dataset("meta/json", (1 << 20,), np.uint8, chunks=(1 << 20,), **FILTERS)


def _shape_bomb(file: Any) -> None:
    del file["names/text"]
    file.create_dataset("names/text", (1 << 40,), np.uint8, chunks=(1 << 20,), **FILTERS)


def _masked(file: Any) -> None:
    size = file["events/flags"].shape[0]
    del file["events/flags"]
    made = file.create_dataset("events/flags", (size,), np.uint8, chunks=(size,), **FILTERS)
    made.id.write_direct_chunk((0,), bytes(size), filter_mask=7)


def _ratio_bomb(file: Any) -> None:
    rows = 1 << 24
    del file["names/text"]
    made = file.create_dataset("names/text", (rows,), np.uint8, chunks=(rows,), **FILTERS)
    made.id.write_direct_chunk((0,), b"x" * 100)


def _vlen_marker(file: Any) -> None:
    del file.attrs["format"]
    file.attrs["format"] = "tracescope"


def _set(name: str, data: Any, **how: Any) -> Callable[[Any], None]:
    return lambda file: replaced(file, name, data, **how)


def _without(name: str) -> Callable[[Any], None]:
    return lambda file: file.__delitem__(name)


N = np.arange(300)
STRUCTURE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "soft link": (_soft, "link to somewhere else"),
    "external link": (_external_link, "link to somewhere else"),
    "external storage": (_external_storage, "keeps its data in another file"),
    "virtual": (_virtual, "not stored in chunks"),
    "never written": (_never_written, "declares 1048576 bytes where 0 bytes are stored"),
    "shape bomb": (_shape_bomb, "declares 1099511627776 bytes where 0 bytes are stored"),
    "ratio bomb": (_ratio_bomb, "declares 16777216 bytes where 100 bytes are stored"),
    "filters skipped": (_masked, "has a chunk that skips a filter"),
    "vlen marker": (_vlen_marker, "not a tracescope file"),
    "marker": (lambda file: file.attrs.modify("format", np.bytes_(b"otherscope")), "not a tracescope file"),
    "group missing": (_without("steps"), "the file lacks steps"),
    "column missing": (_without("events/op"), "events lacks op"),
    "object extra": (lambda file: file.create_group("extra"), "'extra', which does not belong"),
    "column extra": (lambda file: file.create_group("events/more"), "'more', which does not belong"),
    "group for a column": (
        lambda file: (file.__delitem__("events/op"), file.create_group("events/op")),
        "op is not what it should be",
    ),
    "rows": (lambda file: file.attrs.modify("steps_rows", 4), "has shape (3,), expected (4,)"),
    "rows missing": (lambda file: file.attrs.__delitem__("steps_rows"), "steps_rows is missing"),
    "rows negative": (lambda file: file.attrs.modify("steps_rows", -1), "steps_rows is out of range"),
    "dtype": (_set("events/op", N.astype(np.int16)), "a type that does not belong"),
    "big endian": (_set("events/op", N.astype(">u2")), "a type that does not belong"),
    "float": (_set("events/start", N.astype(np.float64)), "a type that does not belong"),
    "compound": (_set("events/op", np.zeros(300, "u2,u2")), "a type that does not belong"),
    "text": (_set("events/op", np.full(300, b"ab")), "a type that does not belong"),
    "two dimensions": (_set("events/op", np.zeros((300, 1), np.uint16)), "has shape (300, 1)"),
    "lzf": (
        _set("events/op", N.astype(np.uint16), compression="lzf", compression_opts=None),
        "filter 32000, which is not allowed",
    ),
    "no checksum": (_set("events/op", N.astype(np.uint16), fletcher32=False), "uses filters (2, 1)"),
    "contiguous": (
        _set(
            "events/op",
            N.astype(np.uint16),
            chunks=None,
            compression=None,
            compression_opts=None,
            shuffle=False,
            fletcher32=False,
        ),
        "not stored in chunks",
    ),
    "pyramid name": (
        lambda file: file.move("pyramid/coarse", "pyramid/Co arse"),
        "a name that is not allowed",
    ),
    "pyramid type": (_set("pyramid/coarse", np.zeros(33, bool)), "a type that does not belong"),
    "pyramid cube": (_set("pyramid/coarse", np.zeros((3, 3, 3))), "3 dimensions"),
    "pyramid arrays": (lambda file: file.attrs.modify("pyramid_arrays", 20), "pyramid arrays, expected 20"),
    "pyramid not declared": (lambda file: file.attrs.modify("pyramid_arrays", 0), "'pyramid', which does not belong"),
}


@pytest.mark.parametrize(("change", "words"), STRUCTURE.values(), ids=STRUCTURE)
def test_structure(own: Path, change: Callable[[Any], Any], words: str) -> None:
    with changed(own) as file:
        change(file)
    assert words in refusal(own)


def test_a_vlen_column_is_never_read(own: Path) -> None:
    with changed(own) as file:
        del file["names/text"]
        file.create_dataset("names/text", data=["a", "b"], dtype=h5py.string_dtype())
    assert "a type that does not belong" in refusal(own)


# --- contents ---

VALUES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "category": (_set("events/category", np.full(300, 200, np.uint8)), "out of range in column events/category"),
    "op": (_set("events/op", np.full(300, 999, np.uint16)), "out of range in column events/op"),
    "negative duration": (_set("events/duration", np.full(300, -5)), "out of range in column events/duration"),
    "time": (_set("events/start", np.full(300, (1 << 63) - 1)), "out of range in column events/start"),
    "name": (_set("events/name", np.full(300, 10**6, np.uint32)), "points past the end of a table"),
    "work": (_set("events/work", np.full(300, 77, np.uint32)), "points past the end of a table"),
    "step": (_set("events/step", np.full(300, 3, np.int32)), "names a step that does not exist"),
    "layer": (_set("events/layer", np.full(300, -2, np.int16)), "out of range in column events/layer"),
    "overlap": (_set("events/start", np.zeros(300, np.int64)), "overlap on one lane"),
    "lanes": (_set("lanes/offset", np.arange(2)[::-1].copy()), "has shape (2,)"),
    "labels": (_set("steps/label", np.full(3, 9999, np.uint32)), "label is not among the names"),
    "unknown bytes": (_set("work/kv_read", np.full(4, -2)), "out of range in column work/kv_read"),
    "boolean": (_set("steps/warm_up", np.full(3, 2, np.uint8)), "out of range in column steps/warm_up"),
    "edges": (_set("dependencies/source", np.full(150, 5000, np.uint32)), "names an event that does not exist"),
    "edges unsorted": (_set("dependencies/target", np.arange(150, 0, -1).astype(np.uint32)), "sorted by target"),
    "json": (_set("meta/json", np.frombuffer(b"{" * 5000, np.uint8)), "damaged"),
    "json nested": (_set("meta/json", np.frombuffer(b'{"x":' + b"[" * 50_000, np.uint8)), "damaged"),
    "json types": (_set("meta/json", np.frombuffer(b'{"trace":{"base_ns":"x"},"tracks":[]}', np.uint8)), "base_ns"),
    "no tracks": (_set("meta/json", np.frombuffer(b'{"trace":{},"tracks":[]}', np.uint8)), "a track that does not"),
    "pyramid lacks": (lambda file: file.move("pyramid/fine", "pyramid/other"), "arrays are incomplete"),
    "pyramid misfit": (_set("pyramid/fine_offset", np.array([0, 9, 9])), "arrays do not fit together"),
    "text": (_set("names/text", np.full(10, 0xFF, np.uint8)), "offsets of its names are not in order"),
}


@pytest.mark.parametrize(("change", "words"), VALUES.values(), ids=VALUES)
def test_values(own: Path, change: Callable[[Any], Any], words: str) -> None:
    with changed(own) as file:
        change(file)
    assert words in refusal(own)


def test_names_that_are_not_utf8(own: Path) -> None:
    with changed(own) as file:
        text = file["names/text"][:]
        text[:] = 0xFF
        replaced(file, "names/text", text)
    assert "names are not UTF-8" in refusal(own)


def test_one_flipped_bit_of_data(own: Path) -> None:
    structure = gate.inspect(own)
    chunk = structure.columns["events/duration"].chunks[0]
    data = bytearray(own.read_bytes())
    data[chunk.at + chunk.size // 2] ^= 1
    own.write_bytes(data)
    assert "checksum does not match in column events/duration" in refusal(own)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"base_ns": 1 << 63}, "clock"),
        ({"resolution_ns": 0}, "clock"),
        ({"bandwidth_bytes_per_s": 0}, "bandwidth"),
    ],
)
def test_facts_out_of_range(own: Path, keys: dict[str, int], words: str) -> None:
    with changed(own) as file:
        document = msgspec.json.decode(file["meta/json"][:].tobytes())
        document["trace"] |= keys
        replaced(file, "meta/json", np.frombuffer(msgspec.json.encode(document), np.uint8))
    assert words in refusal(own)
