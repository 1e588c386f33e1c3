"""Opens, imports, synthesizes, reprices and saves traces, and tells the session what is open."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QObject, Signal

import tracescope
from tracescope.core.errors import TraceError
from tracescope.core.trace import Trace
from tracescope.models import make_basis
from tracescope.ui.import_job import ImportJob
from tracescope.ui.jobs import Cancelled, Jobs
from tracescope.ui.messages import Message, Messages
from tracescope.ui.session import Session
from tracescope.ui.settings import Recent, SettingsStore, SynthForm
from tracescope.view.arrival import arrival_notes, one_at_a_time
from tracescope.view.document import Document
from tracescope.view.view_state import ViewState

KIND = "open"
"""The job kind of everything that replaces the document: the latest wins."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the open document came from. ``model`` and ``hardware`` are the presets given at import, else empty.

    ``others`` are further ranks that were merged with ``path``.
    """

    path: Path | None = None
    foreign: bool = False
    model: str = ""
    hardware: str = ""
    title: str = ""
    others: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Loading:
    """What is being opened; ``total`` is 0 while the amount of work is not known."""

    title: str
    done: int = 0
    total: int = 0


def sample_folder() -> Path | None:
    """The folder of sample traces: inside the installed package, or beside it in a checkout."""
    package = Path(tracescope.__file__).parent
    for folder in (package / "sample_traces", package.parent / "sample_traces"):
        if any(folder.glob("*.tscope.h5")):
            return folder
    return None


def sample_paths() -> list[Path]:
    """The sample traces, by name."""
    folder = sample_folder()
    return sorted(folder.glob("*.tscope.h5")) if folder else []


class Backend(Protocol):
    """What opens, makes and saves documents: the module ``ui.backend``, which is loaded when it is first needed."""

    def is_native(self, path: Path) -> bool:
        """Whether ``path`` is a native file."""

    def open_document(self, path: Path, shown_path: Path | None = None) -> Document:
        """The document of a native file."""

    def synthesize_document(self, form: SynthForm, title: str) -> Document:
        """The document of a run made from a form."""

    def save(self, path: Path, trace: Trace) -> None:
        """Save a trace as a native file."""

    def rules_path(self) -> Path | None:
        """The user's kernel rules, None where there are none yet."""

    def families(self) -> tuple[str, ...]:
        """What a kernel may be classified as."""

    def add_rule(self, name: str, family: str) -> str:
        """Put kernels like ``name`` into ``family`` in the user's rules; the sentence that says so."""


class Opener(QObject):
    """Everything that changes which document is open. The old one stays until the new one is whole."""

    loading_changed = Signal()
    origin_changed = Signal()

    def __init__(
        self,
        session: Session,
        messages: Messages,
        jobs: Jobs,
        settings: SettingsStore,
        backend: Callable[[], Backend],
    ) -> None:
        super().__init__()
        self._backend = backend
        self._session = session
        self._messages = messages
        self._jobs = jobs
        self._settings = settings
        self._import: ImportJob | None = None
        self.loading: Loading | None = None
        self.origin = Origin()
        self._opening = Origin()
        self._to_say = ""
        """A sentence for when the file that is being opened is there."""
        self._queued: tuple[Path, ...] = ()
        """Files that were asked for together with the one that is being opened."""
        self._kept: ViewState | None = None
        """The view to come back to, where the same file is recognised again."""

    def warm_up(self) -> None:
        """Load the backend now, so that the first file opens without waiting for it."""
        self._jobs.start("warm up", lambda _cancelled: self._backend(), lambda _backend: None, self._fail)

    def open(self, path: Path, *, model: str = "", hardware: str = "", others: Sequence[Path] = ()) -> None:
        """Open any file. A foreign one is imported by a child process first; ``model`` and ``hardware`` are presets.

        A folder holds one file a rank; so do ``path`` and ``others`` together.
        """
        self._stop()
        path = path.absolute()
        title = path.name if not others else f"{path.name} and {len(others):,} more"
        ranks = tuple(other.absolute() for other in others)
        self._opening = Origin(path, model=model, hardware=hardware, title=title, others=ranks)
        self._set_loading(Loading(f"Opening {path.name}"))

        def work(_cancelled: Cancelled) -> Document | None:
            missing = next((p for p in (path, *ranks) if not p.exists()), None)
            if missing is not None:
                raise TraceError(f"{missing.name} does not exist.", action="Check the path.")
            backend = self._backend()
            if ranks or path.is_dir() or not backend.is_native(path):
                return None
            return backend.open_document(path)

        self._jobs.start(KIND, work, self._opened_or_foreign, self._fail)

    def open_several(self, paths: Sequence[Path], *, ranks: bool = False) -> None:
        """Open the first of ``paths``, or all of them as ``ranks`` of one run.

        One trace is shown at a time: a button brings the next one, and then the one after that.
        """
        if ranks and len(paths) > 1:
            self.open(paths[0], others=paths[1:])
        elif paths:
            self.open(paths[0])
            self._queued = tuple(paths[1:])

    def reimport(self, model: str, hardware: str) -> None:
        """Import the open foreign file again, with a model and a machine (preset names, empty where unknown)."""
        if self.origin.path is not None:
            self.open(self.origin.path, model=model, hardware=hardware, others=self.origin.others)

    def families(self) -> tuple[str, ...]:
        """What a kernel of an imported trace may be classified as; nothing where the trace was not imported."""
        return self._backend().families() if self.origin.foreign else ()

    def classify(self, name: str, family: str) -> None:
        """Write a rule that kernels like ``name`` are of ``family``, and recognise the open foreign file again."""
        if not self.origin.foreign:
            return
        try:
            said = self._backend().add_rule(name, family)
        except TraceError as error:
            self._messages.refuse(error)
            return
        self.reimport(self.origin.model, self.origin.hardware)
        self._to_say, self._kept = said, self._session.view

    def synthesize(self, form: SynthForm) -> None:
        """Make a run from a model and a machine and open it."""
        self._stop()
        title = form.title
        self._opening = Origin(title=title)
        self._set_loading(Loading("Synthesizing"))
        self._settings.change(synth=form)

        self._jobs.start(
            KIND, lambda _cancelled: self._backend().synthesize_document(form, title), self._opened, self._fail
        )

    def reprice(self, bandwidth: str) -> bool:
        """Price the open trace with ``datasheet``, ``sustained`` or an amount (``3.0 TB/s``); False if refused."""
        document, view = self._session.document, self._session.view
        if document is None or view is None:
            return False
        try:
            basis = make_basis(document.basis.hardware, bandwidth, document.basis.compute_dtype)
        except TraceError as error:
            self._messages.refuse(error)
            return False
        if basis != document.basis:
            self._show_repriced(document, document.repriced(basis))
        return True

    def _show_repriced(self, document: Document, repriced: Document) -> None:
        """Show ``repriced`` in the place of ``document``: at once, unless its pyramid must be built first."""

        def show(_pyramid: object) -> None:
            if self._session.document is document and self._session.view is not None:
                self._session.set_document(repriced, self._session.view, keep_history=True)

        if repriced.given_pyramid is not None:
            show(None)
        else:
            self._jobs.start("reprice", lambda _cancelled: repriced.pyramid, show, self._fail)

    def save(self, path: Path) -> None:
        """Write the open trace as a native file, in a thread."""
        document = self._session.document
        if document is None:
            return
        trace = document.trace

        def saved(_result: object) -> None:
            if self._session.document is not None and self._session.document.trace is trace:
                self._set_origin(replace(self.origin, path=path, foreign=False, title=path.name))
                self._remember()
            self._messages.post(Message(f"Saved {path.name}.", warning=False))

        self._jobs.start("save", lambda _cancelled: self._backend().save(path, trace), saved, self._messages.refuse)

    def close_document(self) -> None:
        """Show the welcome panel again."""
        self._stop()
        self._set_origin(Origin())
        self._session.set_document(None)

    def cancel(self) -> bool:
        """Stop what is being opened; False where nothing was."""
        if self.loading is None:
            return False
        self._stop()
        self._set_loading(None)
        return True

    def close(self) -> None:
        """Kill a running import and wait for its end."""
        self._stop()

    def _stop(self) -> None:
        self._jobs.cancel(KIND)
        self._to_say, self._kept, self._queued = "", None, ()
        if self._import is not None:
            self._import.cancel()
            self._import.deleteLater()
            self._import = None

    def _opened_or_foreign(self, document: Document | None) -> None:
        if document is not None:
            self._opened(document)
            return
        source = self._opening.path
        if source is None:
            return
        self._opening = replace(self._opening, foreign=True)
        self._start_import(source)

    def _start_import(self, source: Path) -> None:
        words = []
        if self._opening.model:
            words += ["--model", self._opening.model]
        if self._opening.hardware:
            words += ["--hardware", self._opening.hardware]
        rules = self._backend().rules_path()
        if rules is not None:
            words += ["--rules", str(rules)]
        job = ImportJob(source, words, self, self._opening.others)
        self._import = job
        job.progressed.connect(self._progress)
        job.imported.connect(lambda path: self._imported(path, source, from_cache=job.from_cache))
        job.failed.connect(self._fail)
        self._set_loading(Loading(f"Importing {source.name}"))
        job.start()

    def _imported(self, path: Path, source: Path, *, from_cache: bool) -> None:
        self._set_loading(Loading(f"Opening {self._opening.title}"))

        def failed(error: TraceError) -> None:
            path.unlink(missing_ok=True)
            if from_cache:
                # What an earlier run left there is damaged or of another version: the source itself is not.
                self._start_import(source)
            else:
                self._fail(error)

        self._jobs.start(KIND, lambda _cancelled: self._backend().open_document(path, source), self._opened, failed)

    def _progress(self, done: int, total: int) -> None:
        if self.loading is not None:
            self._set_loading(replace(self.loading, done=done, total=total))

    def _opened(self, document: Document) -> None:
        self._set_loading(None)
        # The document first: who listens to the origin looks at both.
        self.origin = self._opening
        kept, before = self._kept, self._session.document
        view = document.initial_view().with_(overlays=frozenset(self._settings.value.overlays))
        if kept is not None and before is not None and _same_rows(before, document):
            view = kept
        self._session.set_document(document, view)
        self.origin_changed.emit()
        self._remember()
        said = arrival_notes(document.trace, document.basis, foreign=self.origin.foreign)
        if self._to_say:
            said = [self._to_say, *said]
        following, self._queued = self._queued, ()
        self._to_say, self._kept = "", None
        losses = self.origin.foreign and document.trace.meta.report.has_losses
        if following:
            said = [one_at_a_time(document.name, following), *said]
            button = f"Open {following[0].name}"
            self._messages.post(
                Message(" ".join(said), button=button, pressed=lambda: self.open_several(following), warning=losses)
            )
        elif said:
            self._messages.post(Message(" ".join(said), warning=losses))

    def _fail(self, error: TraceError) -> None:
        self._set_loading(None)
        self._messages.refuse(error)

    def _set_loading(self, loading: Loading | None) -> None:
        if loading != self.loading:
            self.loading = loading
            self.loading_changed.emit()

    def _set_origin(self, origin: Origin) -> None:
        if origin != self.origin:
            self.origin = origin
            self.origin_changed.emit()

    def _remember(self) -> None:
        document, path = self._session.document, self.origin.path
        if document is None or path is None or path.parent == sample_folder():
            return
        self._settings.remember(
            Recent(
                path=str(path),
                steps=len(document.trace.steps),
                events=len(document.trace.events),
                floor_share=floor_share(document),
                opened=datetime.now().isoformat(timespec="minutes"),
            )
        )


def _same_rows(before: Document, after: Document) -> bool:
    """Whether ids of events and steps of one document mean the same in the other."""
    counts = [(len(d.trace.events), len(d.trace.steps), len(d.trace.tracks)) for d in (before, after)]
    return counts[0] == counts[1]


def floor_share(document: Document) -> float | None:
    """Op floor of the decode steps by their time; None where any floor or every step is missing."""
    if not document.has_floor or not document.has_steps:
        return None
    steps, series = document.trace.steps, document.series
    counted = steps.decode & (steps.duration > 0)
    total, floor = int(steps.duration[counted].sum()), series.floor_ops_ns[counted]
    return float(floor.sum()) / total if total and (floor >= 0).all() else None
