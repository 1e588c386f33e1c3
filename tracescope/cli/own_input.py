"""What a command reads, so that what it writes is refused to go over it."""

from collections.abc import Iterable
from pathlib import Path

from tracescope.core.errors import TraceError
from tracescope.io.atomic import refuse_own_input

_MODEL_FILES = (".json", ".safetensors", ".gguf")


def refuse_to_overwrite(
    out: Path, traces: Iterable[Path] = (), *, model: str | None = None, hardware: str | None = None
) -> None:
    """Raise TraceError where ``out`` is one of the traces, or in a folder of them, or what describes the model.

    ``model`` and ``hardware``: as given on the command line, names of presets or files.
    """
    described = [Path(given) for given in (model, hardware) if given is not None]
    refuse_own_input(out, [*(found for path in traces for found in _traces(path, out)), *described])
    if model is not None and out.suffix.lower() in _MODEL_FILES and _is_in(out, Path(model)):
        refuse_own_input(out, [out])


def _traces(path: Path, out: Path) -> list[Path]:
    """``path``; where it is a folder, ``out`` if it is a trace in there, for whatever else lies there is not read."""
    return [out] if _is_in(out, path) and _is_trace(out) else [path]


def _is_in(out: Path, folder: Path) -> bool:
    """Whether ``out`` is a file directly in ``folder``, itself or by what it links to."""
    try:
        return folder.is_dir() and out.is_file() and folder.resolve() in (out.parent.resolve(), out.resolve().parent)
    except (OSError, ValueError, RuntimeError):  # a name that no file system takes, a circle of links
        return False


def _is_trace(path: Path) -> bool:
    from tracescope.io import native, reader_for

    try:
        if not native.is_native(path):
            reader_for(path).read(path, allow_truncated=True)  # any table looks like a list of events from outside
    except TraceError:
        return False
    return True
