"""Open and save anything: a native file, or a foreign one through its reader and recognition."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tracescope.core.errors import TraceError
from tracescope.core.hardware import Basis, HardwareSpec
from tracescope.core.model import ModelSpec
from tracescope.core.raw import RawTrace
from tracescope.core.trace import Trace, TraceMeta
from tracescope.floor.dtypes import weight_dtype
from tracescope.floor.tensor_parallel import split_notes
from tracescope.io import native, reader_for, save
from tracescope.lod.pyramid import Pyramid, build_pyramid
from tracescope.models import contradiction, hardware_for_device, make_basis
from tracescope.recognise.names.kernel_rules import Rule
from tracescope.recognise.ranks import MAX_RANKS, merge_ranks
from tracescope.recognise.recognise import recognise
from tracescope.recognise.restored import restored
from tracescope.recognise.strip import strip_names

Progress = Callable[[int, int], None]
"""Called now and then with (bytes of the file read, bytes of the file)."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the user says about a file. ``bandwidth``: ``datasheet``, ``sustained`` or a rate such as ``3.0TB/s``.

    ``model``, ``context`` (tokens of a request cached at the first decode step) and ``ranks`` (over how many the model
    is split, 0: nobody said) only matter to a foreign file, ``hardware`` and ``bandwidth`` re-price any.
    ``allow_truncated``: a file that was cut is fine. ``rules`` decide what kernels are before the built-in ones;
    ``capture`` is a recording of the capture of the file's graphs.
    ``strip_names``: names of hosts, users and folders stay out of the trace.
    """

    model: ModelSpec | None = None
    hardware: HardwareSpec | None = None
    bandwidth: str | None = None
    context: int | None = None
    ranks: int = 0
    allow_truncated: bool = False
    rules: tuple[Rule, ...] = ()
    capture: Path | None = None
    strip_names: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Opened:
    """An open file: the trace, what prices it, the pyramid stored with it (None: none), and where it came from.

    ``format_version``: that of a native file, None for a foreign one.
    """

    trace: Trace
    basis: Basis
    pyramid: Pyramid | None
    path: Path
    notes: tuple[str, ...] = ()
    format_version: int | None = None


_NO_OPTIONS = ImportOptions()


def open_trace(path: Path, options: ImportOptions = _NO_OPTIONS, progress: Progress | None = None) -> Opened:
    """The trace in ``path``, whatever its format; a folder holds one file a rank. TraceError where it is none."""
    if path.is_dir():
        trace = import_files([path], options, progress)
        return Opened(trace, basis_of(trace.meta, options), None, path)
    if native.is_native(path):
        held = native.read(path)
        return Opened(held.trace, basis_of(held.trace.meta, options), held.pyramid, path, held.notes, held.version)
    trace = import_file(path, options, progress)
    return Opened(trace, basis_of(trace.meta, options), None, path)


def import_file(path: Path, options: ImportOptions = _NO_OPTIONS, progress: Progress | None = None) -> Trace:
    """A foreign file as a Trace that carries what it was priced with.

    Raises TraceError where it cannot be read, or where the model cannot be split over the ranks that were named.
    """
    split = () if options.model is None else split_notes(options.model, options.ranks)
    raw = reader_for(path).read(path, progress=progress, allow_truncated=options.allow_truncated)
    basis = _import_basis(raw, options)
    captured = options.capture
    own = None
    if options.model is None and not options.rules and captured is None:  # nothing that would be recognised anew
        own = restored(raw, basis)
    trace = own or recognise(
        raw,
        model=options.model,
        hardware=basis.hardware,
        basis=basis,
        context=options.context,
        ranks=options.ranks,
        rules=options.rules,
        capture=None if captured is None else reader_for(captured).read(captured, allow_truncated=True),
    )
    if split:
        trace = replace(trace, meta=replace(trace.meta, notes=(*trace.meta.notes, *split)))
    return strip_names(trace, raw) if options.strip_names else trace


def import_files(
    paths: Sequence[Path], options: ImportOptions = _NO_OPTIONS, progress: Progress | None = None
) -> Trace:
    """Several files as one trace, one a rank; a folder stands for the traces in it. TraceError where there is none.

    What else lies in a folder is left aside and said in the notes; a file that is named must be a trace.
    """
    files = _files_of(paths)
    sizes = [file.stat().st_size if file.exists() else 0 for file, _ in files]
    traces: list[Trace] = []
    aside: list[str] = []
    for i, (file, named) in enumerate(files):
        before = sum(sizes[:i])

        def own(done: int, _total: int, before: int = before) -> None:
            if progress is not None:
                progress(before + done, sum(sizes))

        try:
            traces.append(native.read(file).trace if native.is_native(file) else import_file(file, options, own))
        except TraceError as error:
            if named:
                raise
            aside.append(error.what)
    if not traces:
        raise TraceError(f"{paths[0].name}: no trace is in this folder", action="Give a folder with one file a rank.")
    merged = merge_ranks(traces)
    notes = (*merged.meta.notes, *(f"left aside: {reason}" for reason in aside[:5]))
    if len(aside) > 5:
        notes = (*notes, f"left aside: {len(aside) - 5:,} more files")
    return replace(merged, meta=replace(merged.meta, notes=notes))


def _files_of(paths: Sequence[Path]) -> list[tuple[Path, bool]]:
    """The files among ``paths`` and, in natural order, those inside a folder; whether each was named by itself."""
    files: list[tuple[Path, bool]] = []
    for path in paths:
        if not path.is_dir():
            files.append((path, True))
            continue
        try:
            inside = [p for p in path.iterdir() if p.is_file() and not p.name.startswith(".")]
        except OSError as error:
            raise TraceError(f"{path.name}: cannot be listed: {error.strerror}") from error
        files += [(p, False) for p in sorted(inside, key=_natural)]
    if len(files) > MAX_RANKS:
        raise TraceError(f"{len(files):,} files cannot be merged", action=f"Give at most {MAX_RANKS:,} ranks.")
    return files


def _natural(path: Path) -> list[tuple[int, str]]:
    """Names in the order of the numbers in them: ``rank10`` after ``rank9``."""
    parts = re.split(r"(\d{1,18})", path.name)
    return [(int(part), "") if i % 2 else (0, part) for i, part in enumerate(parts)]


def damage_of(path: Path) -> str | None:
    """What is wrong with the stored columns of a native file, by its SHA-256; None for a sound or a foreign file."""
    if not native.is_native(path):
        return None
    try:
        native.verify_checksum(path)
    except TraceError as error:
        return error.what
    return None


def save_trace(path: Path, trace: Trace) -> None:
    """Save ``trace`` as a native file with its pyramid; TraceError where that fails, and nothing is changed then."""
    save.write(path, trace, build_pyramid(trace, basis_of(trace.meta)))


def basis_of(meta: TraceMeta, options: ImportOptions = _NO_OPTIONS) -> Basis:
    """What prices a trace: the options where they say something, else what the trace was made with.

    A machine that is not the one that was recorded is among its notes.
    """
    basis = _basis_of(meta, options)
    differs = contradiction(basis.hardware, meta.devices)
    return basis if differs is None else replace(basis, notes=(*basis.notes, differs))


def _basis_of(meta: TraceMeta, options: ImportOptions) -> Basis:
    if options.hardware is not None:
        return make_basis(options.hardware, options.bandwidth, meta.compute_dtype)
    if options.bandwidth is not None:
        return make_basis(meta.hardware, options.bandwidth, meta.compute_dtype)
    basis = make_basis(meta.hardware, None, meta.compute_dtype)
    if meta.bandwidth_bytes_per_s is None:
        return basis
    return replace(basis, bandwidth_bytes_per_s=meta.bandwidth_bytes_per_s, bandwidth_source=meta.bandwidth_source)


def _import_basis(raw: RawTrace, options: ImportOptions) -> Basis:
    """The machine that the user names, else the one that the file's device name stands for, else none.

    A bandwidth that the file itself records comes before a preset's.
    """
    compute = weight_dtype(options.model.weights).compute if options.model else "bf16"
    named = {device.name: device for device in raw.devices if device.name}
    hardware = options.hardware
    if hardware is None and len(named) == 1:
        hardware = hardware_for_device(next(iter(named)))
    basis = make_basis(hardware, options.bandwidth, compute)
    recorded = {device.memory_bandwidth for device in raw.devices if device.memory_bandwidth}
    if options.hardware is None and options.bandwidth is None and len(recorded) == 1:
        return replace(basis, bandwidth_bytes_per_s=recorded.pop(), bandwidth_source="file")
    return basis
