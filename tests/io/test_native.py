"""The native file: what is saved is what is read, to the byte, and any HDF5 reader can read it too."""

import dataclasses
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tests.kit.native import MODEL, empty_trace, full_trace, some_pyramid, traces
from tracescope.core.category import BytesFrom, Category, EdgeKind, Op, StepKind, TrackKind
from tracescope.core.errors import TraceError
from tracescope.core.trace import Trace
from tracescope.floor.kv_cache import kv_bytes_per_token
from tracescope.floor.state import state_is_known
from tracescope.io import native, native_layout, save
from tracescope.io.gate import h5py
from tracescope.io.native_chunks import fletcher32
from tracescope.io.older_models import with_older_windows
from tracescope.lod.pyramid import Pyramid


def assert_same(a: Trace, b: Trace) -> None:
    """Every column, string and fact of two traces is equal, dtypes included."""
    assert a.meta == b.meta
    assert (a.tracks, a.names, a.details) == (b.tracks, b.names, b.details)
    for table in ("lanes", "events", "work", "steps", "requests", "dependencies"):
        left, right = getattr(a, table), getattr(b, table)
        for field in dataclasses.fields(left):
            x, y = getattr(left, field.name), getattr(right, field.name)
            assert x.dtype == y.dtype, f"{table}.{field.name}"
            assert np.array_equal(x, y), f"{table}.{field.name}"
            assert not y.flags.writeable


def test_everything_survives_a_round_trip(tmp_path: Path) -> None:
    path, trace, pyramid = tmp_path / "a.tscope.h5", full_trace(), some_pyramid()
    save.write(path, trace, pyramid)
    got = native.read(path)
    assert_same(trace, got.trace)
    assert got.notes == ()
    assert got.pyramid is not None
    read_back = got.pyramid.to_arrays()
    assert read_back.keys() == pyramid.to_arrays().keys()
    for name, array in pyramid.to_arrays().items():
        assert read_back[name].dtype == array.dtype
        assert np.array_equal(read_back[name], array)
    assert list(tmp_path.iterdir()) == [path]


def test_an_empty_trace_survives(tmp_path: Path) -> None:
    path = tmp_path / "empty.tscope.h5"
    save.write(path, empty_trace())
    got = native.read(path)
    assert_same(empty_trace(), got.trace)
    assert got.pyramid is None


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trace=traces())
def test_any_trace_survives(tmp_path: Path, trace: Trace) -> None:
    path = tmp_path / "any.tscope.h5"
    save.write(path, trace)
    assert_same(trace, native.read(path).trace)


def test_more_rows_than_a_chunk(tmp_path: Path) -> None:
    path, trace = tmp_path / "big.tscope.h5", full_trace(native_layout.CHUNK_ROWS + 7)
    save.write(path, trace)
    assert_same(trace, native.read(path).trace)


def test_100_000_names(tmp_path: Path) -> None:
    names = tuple(f"void kernel_{i}<float, {i % 7}>(int)" for i in range(100_000))
    path, trace = tmp_path / "names.tscope.h5", full_trace(names=(*names, "é"))
    save.write(path, trace)
    assert native.read(path).trace.names == (*names, "é")


@pytest.mark.slow
def test_the_same_data_gives_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "a.tscope.h5"
    save.write(path, full_trace(), some_pyramid())
    code = (
        "import sys; from pathlib import Path; from tests.kit.native import full_trace, some_pyramid;"
        "from tracescope.io import save; save.write(Path(sys.argv[1]), full_trace(), some_pyramid())"
    )
    other = tmp_path / "b.tscope.h5"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONHASHSEED": "7"}
    subprocess.run([sys.executable, "-c", code, str(other)], check=True, env=environment)
    assert path.read_bytes() == other.read_bytes()


def test_hdf5_itself_reads_every_column(tmp_path: Path) -> None:
    """The chunks are coded here; HDF5's own filters must agree with each of them."""
    path, trace = tmp_path / "a.tscope.h5", full_trace(native_layout.CHUNK_ROWS + 7)
    save.write(path, trace, some_pyramid())
    with h5py.File(path, "r") as file:
        assert np.array_equal(file["events/start"][:], trace.events.start)
        assert np.array_equal(file["events/category"][:], trace.events.category)
        assert np.array_equal(file["pyramid/fine"][:], some_pyramid().fine)
        for name in native_layout.COLUMNS:
            assert len(file[name][:]) == file[name].shape[0]
            assert file[name].dtype == native_layout.COLUMNS[name]
        assert not any(h5py.check_string_dtype(file[name].dtype) for name in native_layout.COLUMNS)


@pytest.mark.parametrize("data", [b"", b"\0\0", b"a", b"abcde", b"\xff" * 3001, bytes(range(256)) * 3000])
def test_fletcher32_by_hand(data: bytes) -> None:
    words = [int.from_bytes(data[i : i + 2].ljust(2, b"\0"), "big") for i in range(0, len(data), 2)]
    first = second = 0
    for word in words:
        first += word
        first = (first & 0xFFFF) + (first >> 16)
        second += first
        second = (second & 0xFFFF) + (second >> 16)
    assert fletcher32(data) == (second << 16) | first


def test_text_that_is_not_unicode_is_repaired(tmp_path: Path) -> None:
    trace = full_trace(names=("ok", "lone \ud800", "pair \ud83d\ude00", *"x" * 50))
    meta = dataclasses.replace(trace.meta, source=dataclasses.replace(trace.meta.source, name="bad\udcffname.json"))
    path = tmp_path / "a.tscope.h5"
    save.write(path, dataclasses.replace(trace, meta=meta))
    got = native.read(path).trace
    assert got.names[:3] == ("ok", "lone \ufffd", "pair 😀")
    assert got.meta.source.name == "bad\ufffdname.json"


@pytest.mark.parametrize("name", ["é tude", "naïve ☃ 😀", "trace #1 (50%) & co", "нейро", "bad\udcffname"])
def test_any_file_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "Ünïcode 试验 — dir"
    folder.mkdir()
    path = folder / f"{name}.tscope.h5"
    save.write(path, full_trace(20))
    assert_same(full_trace(20), native.read(path).trace)
    assert os.listdir(os.fsencode(folder)) == [os.fsencode(path.name)]


def test_the_checksum_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.tscope.h5"
    save.write(path, full_trace(), some_pyramid())
    native.verify_checksum(path)
    with h5py.File(path, "r+") as file:
        file.attrs.modify("columns_sha256", np.bytes_(b"0" * 64))
    native.read(path)
    with pytest.raises(TraceError, match="SHA-256 of its columns"):
        native.verify_checksum(path)


def test_the_checksum_as_documented(tmp_path: Path) -> None:
    """Computed from docs/FORMAT.md alone, through HDF5's own reading."""
    path = tmp_path / "a.tscope.h5"
    save.write(path, full_trace(), some_pyramid())
    digest = hashlib.sha256()
    with h5py.File(path, "r") as file:
        found: list[str] = []
        file.visititems(lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) else None)
        for name in sorted(found):
            array = file[name][()]
            digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode() + array.tobytes())
        assert file.attrs["columns_sha256"] == digest.hexdigest().encode()


def test_the_format_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "FORMAT.md").read_text()
    names = {part for column in native_layout.COLUMNS for part in column.split("/")}
    names |= {f"{table}_rows" for table in native_layout.COUNTED}
    names |= set(some_pyramid().to_arrays())
    assert not [name for name in sorted(names) if not re.search(rf"[`/]{name}[`/]", text)]
    for labels in (Category, Op, BytesFrom, StepKind, TrackKind, EdgeKind):
        for label in labels:
            assert re.search(rf"\b{label.value} {label.name.lower()}\b", text), label
    assert f"version {native_layout.VERSION}" in text.splitlines()[0]


def test_a_file_of_version_1_opens_with_what_came_later_filled_in() -> None:
    old = native.read(Path(__file__).parent / "data" / "format_1.tscope.h5")
    work = old.trace.work
    assert old.version == 1
    assert (old.pyramid is None, len(old.trace.events), len(old.trace.graph_nodes)) == (False, 60, 0)
    assert work.index_read.tolist() == np.where(work.kv_read < 0, -1, 0).tolist()
    assert work.state_write.tolist() == np.where(work.kv_append < 0, -1, 0).tolist()
    assert work.link_reduced.tolist() == work.link.tolist()
    assert set(work.recorded.tolist()) == {-1}
    assert old.trace.meta.tensor_parallel == 0


def described(windows: list[int | None]) -> bytes:
    """A description as files had it that named a window for each layer."""
    older = {**msgspec.to_builtins(MODEL), "windows": windows}
    for key in ("kinds", "pattern"):
        del older[key]
    return msgspec.json.encode({"trace": {"model": older}, "tracks": []})


def test_windows_of_an_older_file_are_those_of_its_layers() -> None:
    found = with_older_windows(MODEL, described([64, None]))
    assert found is not None
    assert found.windows == (64, None)
    assert with_older_windows(MODEL, described([])) == MODEL
    assert with_older_windows(found, described([None, None])) == found
    assert with_older_windows(None, b'{"trace": {"model": null}}') is None
    stateful = with_older_windows(MODEL, described([0, None]))
    assert stateful is not None
    assert kv_bytes_per_token(stateful) * 2 == kv_bytes_per_token(MODEL)
    assert not state_is_known(stateful)
    with pytest.raises(ValueError, match="windows of 3 layers in a model of 2"):
        with_older_windows(MODEL, described([1, 2, 3]))
    with pytest.raises(ValueError, match="window of -5"):
        with_older_windows(MODEL, described([-5, None]))


def test_what_is_native(tmp_path: Path) -> None:
    path = tmp_path / "a.tscope.h5"
    save.write(path, empty_trace())
    text = tmp_path / "trace.json"
    text.write_text("{}")
    renamed = tmp_path / "renamed.json"
    renamed.write_bytes(path.read_bytes())
    assert native.is_native(path)
    assert native.is_native(renamed)
    assert native.is_native(tmp_path / "absent.tscope.h5")
    assert not native.is_native(text)
    assert not native.is_native(tmp_path / "absent.json")


@pytest.mark.parametrize("bad", [{"Up": np.zeros(3)}, {"flag": np.zeros(3, bool)}, {"cube": np.zeros((2, 2, 2))}])
def test_an_array_that_cannot_be_stored_is_a_bug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: dict[str, np.ndarray[Any, Any]]
) -> None:
    monkeypatch.setattr(Pyramid, "to_arrays", lambda self: bad)
    with pytest.raises(ValueError, match="cannot be stored"):
        save.write(tmp_path / "a.tscope.h5", empty_trace(), some_pyramid())
    assert not list(tmp_path.iterdir())
