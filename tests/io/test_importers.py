"""The table of readers: which of them takes which file, gzip or not, and what the README and the dialog say."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit import nsys, perfetto, rocprof
from tests.kit.rocpd import RocpdFile
from tests.kit.xplane import space
from tracescope.core.errors import TraceError
from tracescope.core.raw import RawTrace
from tracescope.io import IMPORTERS, SUFFIXES, reader_for
from tracescope.ui.commands import FILES

README = Path(__file__).resolve().parents[2] / "README.md"


def written(path: Path, data: bytes | str) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def rocpd(path: Path) -> Path:
    file = RocpdFile()
    file.kernel("gemm", 100, 160, file.call("hipLaunchKernel", 10, 20))
    return file.build(path)


SLICE = '{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1,"dur":2}'
SAMPLES: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "object": ("Chrome trace JSON", lambda p: written(p / "a.json", f'{{"traceEvents":[{SLICE}]}}')),
    "array": ("Chrome trace JSON", lambda p: written(p / "a.trace", f"[{SLICE}]")),
    "utf-16": ("Chrome trace JSON", lambda p: written(p / "a.json", f"[{SLICE}]".encode("utf-16"))),
    "rocprofv3": (
        "rocprofiler-sdk JSON",
        lambda p: written(p / "a.json", json.dumps(rocprof.everything())),
    ),
    "nsight": ("Nsight Systems SQLite", lambda p: nsys.build(p / "a.sqlite", nsys.everything())),
    "rocpd": ("rocprofiler-sdk SQLite (rocpd)", lambda p: rocpd(p / "a.db")),
    "xplane": ("XPlane protobuf", lambda p: written(p / "a.xplane.pb", space())),
    "perfetto": (
        "Perfetto protobuf",
        lambda p: written(p / "a.pftrace", perfetto.trace(perfetto.begin(1, 7, "a"), perfetto.end(5, 7))),
    ),
    "csv": ("events CSV or TSV", lambda p: written(p / "a.csv", "name,start_ns,duration_ns\ngemm,10,5\n")),
    "tsv": ("events CSV or TSV", lambda p: written(p / "a.txt", "name\tstart_us\tend_us\ngemm\t10\t15\n")),
}
"""The importer that reads each sample, and a function that writes it into a folder."""


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("importer", IMPORTERS, ids=lambda importer: importer.name)
def test_every_importer_knows_its_own_samples_and_no_other(tmp_path: Path, sample: str, importer) -> None:
    """The name says nothing here, so that only the content can."""
    wanted, write = SAMPLES[sample]
    path = write(tmp_path).rename(tmp_path / "file")
    takers = [one.name for one in IMPORTERS if one.sniff(path.read_bytes()[: 1 << 16], path)]
    assert takers[0] == wanted
    # What is JSON at all, or a database at all, its general reader would take too: it stands behind the special one.
    general = {
        "rocprofiler-sdk JSON": {"Chrome trace JSON"},
        "rocprofiler-sdk SQLite (rocpd)": {"Nsight Systems SQLite"},
    }
    assert (importer.name in takers) == (importer.name in {wanted} | general.get(wanted, set()))
    assert reader_for(path).name == wanted


@pytest.mark.parametrize("sample", SAMPLES)
def test_gzip_changes_nothing(tmp_path: Path, sample: str) -> None:
    path = SAMPLES[sample][1](tmp_path)
    plain = reader_for(path).read(path)
    packed = written(tmp_path / f"{path.name}.gz", gzip.compress(path.read_bytes()))
    raw = reader_for(packed).read(packed)
    assert rows(raw) == rows(plain)
    assert raw.source.name == packed.name
    assert raw.source.bytes == packed.stat().st_size
    assert raw.source.sha256 != plain.source.sha256
    assert raw.flagged == plain.flagged


@pytest.mark.parametrize("sample", SAMPLES)
def test_what_follows_the_gzip_data_is_said(tmp_path: Path, sample: str) -> None:
    path = SAMPLES[sample][1](tmp_path)
    packed = written(tmp_path / f"{path.name}.gz", gzip.compress(path.read_bytes()) + b"and something else")
    raw = reader_for(packed).read(packed)
    assert raw.flagged.get("trailing_text") == 1
    assert len(raw.events)


@pytest.mark.parametrize("sample", ["nsight", "rocpd", "xplane", "csv"])
def test_packed_data_that_are_cut_are_refused(tmp_path: Path, sample: str) -> None:
    path = SAMPLES[sample][1](tmp_path)
    packed = written(tmp_path / f"{path.name}.gz", gzip.compress(path.read_bytes())[:-9])
    with pytest.raises(TraceError, match="cut short"):
        reader_for(packed).read(packed)


def rows(raw: RawTrace) -> list[tuple[str, int, int]]:
    e = raw.events
    columns = zip(e.name.tolist(), e.start.tolist(), e.duration.tolist(), strict=True)
    return [(raw.names[name], start, duration) for name, start, duration in columns]


def test_the_readme_and_the_dialog_list_every_importer() -> None:
    text = README.read_text()
    for importer in IMPORTERS:
        assert f"| {importer.name} | {importer.about} |\n" in text
        assert all(f"*{suffix}" in FILES for suffix in importer.suffixes)
    assert set(SUFFIXES) == {suffix for importer in IMPORTERS for suffix in importer.suffixes}
    assert {importer.name for importer in IMPORTERS} == {name for name, _ in SAMPLES.values()}
