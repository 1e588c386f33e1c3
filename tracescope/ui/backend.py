"""What opening, synthesizing and saving need and the first paint does not: loaded by a job, not with the window."""

from pathlib import Path

from tracescope.core.errors import printable
from tracescope.core.trace import Trace
from tracescope.io import native
from tracescope.load import ImportOptions, open_trace, save_trace
from tracescope.recognise.names.kernel_rules import Rule
from tracescope.recognise.names.user_rules import FAMILIES, append_rule, pattern_for, user_rules_path
from tracescope.synth.decode import synthesize
from tracescope.ui.asked import asked_of
from tracescope.ui.settings import SynthForm
from tracescope.view.document import Document


def is_native(path: Path) -> bool:
    """Whether ``path`` is a native file."""
    return native.is_native(path)


def open_document(path: Path, shown_path: Path | None = None) -> Document:
    """The document of a native file; ``shown_path`` is the file it was imported from. TraceError where it is bad."""
    opened = open_trace(path, ImportOptions())
    return prepared(Document(opened.trace, opened.basis, shown_path or path, opened.pyramid))


def synthesize_document(form: SynthForm, title: str) -> Document:
    """The document of a run made from a form. TraceError where it cannot be made."""
    asked = asked_of(form)
    trace = synthesize(asked.model, asked.basis, asked.workload, steps=form.steps, profile=form.profile)
    return prepared(Document(trace, asked.basis, Path(title)))


def save(path: Path, trace: Trace) -> None:
    """Save a trace as a native file. TraceError where that fails."""
    save_trace(path, trace)


def rules_path() -> Path | None:
    """The user's kernel rules, None where there are none yet."""
    path = user_rules_path()
    return path if path.exists() else None


def families() -> tuple[str, ...]:
    """What a kernel may be classified as."""
    return tuple(FAMILIES)


def add_rule(name: str, family: str) -> str:
    """Put kernels like ``name`` into ``family`` in the user's rules; a sentence for it. TraceError on failure."""
    pattern, path = pattern_for(name), user_rules_path()
    append_rule(path, Rule(FAMILIES[family], pattern))
    return f"Kernels like {printable(name[:60])} are {family.replace('_', ' ')} now, by the first rule in {path}."


def prepared(document: Document) -> Document:
    """``document`` with what the first frame needs already computed, off the GUI thread."""
    view = document.initial_view()
    assert document.pyramid is not None
    if view.step >= 0:
        assert document.floor_parts is not None
        document.off_the_floor(view.step)
    return document
