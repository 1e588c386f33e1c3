"""What each action of the ACTIONS table does: one method a name."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QMenu, QMessageBox, QWidget

import tracescope
from tracescope.core.errors import TraceError, printable
from tracescope.io import SUFFIXES
from tracescope.ui.export_image import copy_image, export_image
from tracescope.ui.key_overlay import KeyOverlay
from tracescope.ui.messages import Message, Messages
from tracescope.ui.opener import Opener
from tracescope.ui.picture import view_in_picture
from tracescope.ui.replay import Replay
from tracescope.ui.session import Session
from tracescope.ui.settings import SettingsStore
from tracescope.view import navigation
from tracescope.view.document import Document
from tracescope.view.picture_words import sha256_of
from tracescope.view.view_state import ViewState

ZOOM = 1.25
PAN = 0.12
FAST = 4
FILES = f"Traces ({' '.join(f'*{s}' for s in ('.tscope.h5', '.h5', *SUFFIXES, '.gz'))});;All files (*)"
"""What the Open dialog shows, as Qt wants it."""


class Surface(Protocol):
    """What commands need from the window they act on."""

    def cursor_time(self) -> int | None:
        """Trace time under the mouse pointer, None where it is elsewhere."""

    def cancel_drag(self) -> bool:
        """Stop a drag; False where there is none."""

    def scroll_tracks(self, rows: int) -> None:
        """Move the tracks."""

    def copy_rows(self) -> bool:
        """Copy the selected rows of the visible table; False where there are none."""

    def show_synthesis(self) -> None:
        """Show the form."""

    def show_import_bar(self) -> None:
        """Offer model and machine."""

    def reset_layout(self) -> None:
        """Put the docks back."""


class Commands(QObject):
    """Acts on the session, the opener and the window."""

    def __init__(
        self,
        session: Session,
        opener: Opener,
        replay: Replay,
        *,
        settings: SettingsStore,
        messages: Messages,
        window: QWidget,
        surface: Surface,
    ) -> None:
        super().__init__()
        self._session = session
        self._opener = opener
        self._replay = replay
        self._settings = settings
        self._messages = messages
        self._window = window
        self._surface = surface

    # Files ------------------------------------------------------------------------------------------------------

    def open_file(self) -> None:
        """Ask for a file and open it."""
        dialog = QFileDialog(self._window, "Open a trace", self._settings.value.folder, FILES)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(self.open_path)
        self._show(dialog)

    def open_path(self, path: str | Path) -> None:
        """Open one file and remember its folder for the next dialog."""
        self._settings.change(folder=str(Path(path).absolute().parent))
        self._opener.open(Path(path))

    def open_paths(self, paths: Sequence[Path]) -> None:
        """Open what was dropped; a picture made here brings its view back instead."""
        if len(paths) == 1 and paths[0].suffix.lower() == ".png":
            self.restore_view(paths[0])
        else:
            self._opener.open_several(paths)

    def restore_view(self, path: Path) -> None:
        """Look at the open trace as a picture of it does."""
        try:
            view, content = view_in_picture(path)
        except TraceError as error:
            self._messages.refuse(error)
            return
        document = self._session.document
        if document is None or sha256_of(document) != content.get("sha256") or not view_fits(document, view):
            named = printable(str(content.get("name", "")))
            text, advice = f"This picture shows {named}.", "Open that trace first, then drop it again."
            self._messages.post(Message(text, advice, "Open…", self.open_file))
            return
        self._session.look(view)

    def synthesize(self) -> None:
        """Show the form."""
        self._surface.show_synthesis()

    def reimport(self) -> None:
        """Offer model and machine of a foreign file."""
        if self._opener.origin.foreign:
            self._surface.show_import_bar()
            return
        text = "This trace was not imported: its model and machine are what it was made with."
        self._messages.post(Message(text, "Choose another bandwidth in the toolbar.", warning=False))

    def save_trace(self) -> None:
        """Ask for a name and save the trace as a native file."""
        dialog = QFileDialog(self._window, "Save the trace", self._settings.value.folder, "Traces (*.tscope.h5)")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.selectFile(f"{self.document_name()}.tscope.h5")
        dialog.fileSelected.connect(lambda path: self._opener.save(with_suffix(path, ".tscope.h5")))
        self._show(dialog)

    def export_image(self) -> None:
        """Ask for a name and write the picture."""
        dialog = QFileDialog(self._window, "Export the picture", self._settings.value.folder, "PNG pictures (*.png)")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.selectFile(f"{self.document_name()}.png")
        dialog.fileSelected.connect(lambda path: self.export_to(with_suffix(path, ".png")))
        self._show(dialog)

    def export_to(self, path: Path) -> None:
        """Write the picture of the current view."""
        document, view = self._session.document, self._session.view
        if document is None or view is None:
            return
        try:
            export_image(path, document, view, self._settings.value.export_scale)
        except TraceError as error:
            self._messages.refuse(error)
        else:
            self._settings.change(folder=str(path.absolute().parent))
            self._messages.post(Message(f"Wrote {path.name}.", warning=False))

    def copy_image(self) -> None:
        """Put the picture of the current view on the clipboard."""
        document, view = self._session.document, self._session.view
        if document is not None and view is not None:
            QGuiApplication.clipboard().setImage(copy_image(document, view, self._settings.value.export_scale))
            self._messages.post(Message("The picture is on the clipboard.", warning=False))

    def copy_table(self) -> None:
        """Copy the selected table rows as tab-separated text with units."""
        if not self._surface.copy_rows():
            self._messages.post(Message("No rows are selected.", "Select some in a table below.", warning=False))

    def classify(self) -> None:
        """Offer what the selected kernel may be; choosing writes a rule and recognises the trace again."""
        document, view = self._session.document, self._session.view
        families = self._opener.families()
        if document is None or view is None or view.event < 0 or not families:
            text = "Select a kernel first." if families else "Only kernels of an imported trace can be classified."
            self._messages.post(
                Message(text, "Click an event, or walk with , and ." if families else "", warning=False)
            )
            return
        name = document.trace.names[int(document.trace.events.name[view.event])]
        menu = QMenu(self._window)
        menu.setObjectName("families")
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addSection("Classify as")
        for family in families:
            choice = menu.addAction(family.replace("_", " "))
            choice.triggered.connect(lambda _checked=False, family=family: self._opener.classify(name, family))
        menu.popup(self._window.mapToGlobal(self._window.rect().center()))

    def close_trace(self) -> None:
        """Go back to the welcome panel."""
        self._opener.close_document()

    def quit(self) -> None:
        """Close the window."""
        self._window.close()

    def document_name(self) -> str:
        """A file name for what is open, without suffixes."""
        name = self._opener.origin.title.split(".")[0] or "trace"
        return "".join(c if c.isalnum() or c in "-_" else "_" for c in name)[:80]

    # Looking ----------------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """Cancel, in this order: a drag, a job, the replay, the selection."""
        if self._surface.cancel_drag() or self._opener.cancel():
            return
        if self._replay.playing:
            self._replay.pause()
            return
        if self._session.view is not None:
            view = self._session.view
            self._session.look(view.with_(event=-1, layer=-1, selection=None, playhead=None))

    def zoom_in(self) -> None:
        """Zoom in at the pointer."""
        self._zoom(1 / ZOOM)

    def zoom_out(self) -> None:
        """Zoom out at the pointer."""
        self._zoom(ZOOM)

    def zoom_in_fast(self) -> None:
        """Zoom in four times as much."""
        self._zoom(ZOOM**-FAST)

    def zoom_out_fast(self) -> None:
        """Zoom out four times as much."""
        self._zoom(ZOOM**FAST)

    def pan_left(self) -> None:
        """Pan to earlier times."""
        self._pan(-PAN)

    def pan_right(self) -> None:
        """Pan to later times."""
        self._pan(PAN)

    def pan_left_fast(self) -> None:
        """Pan to earlier times, four times as far."""
        self._pan(-PAN * FAST)

    def pan_right_fast(self) -> None:
        """Pan to later times, four times as far."""
        self._pan(PAN * FAST)

    pan_left_arrow = pan_left
    pan_right_arrow = pan_right

    def scroll_up(self) -> None:
        """Scroll the tracks."""
        self._surface.scroll_tracks(-1)

    def scroll_down(self) -> None:
        """Scroll the tracks."""
        self._surface.scroll_tracks(1)

    def fit_selection(self) -> None:
        """Centre what is selected, then fit it."""
        self._look(navigation.fit_selection)

    def fit_step(self) -> None:
        """Fill the view with the current step."""
        self._look(navigation.fit_step)

    def fit_all(self) -> None:
        """Show the whole trace."""
        self._look(navigation.fit_all)

    def view_back(self) -> None:
        """Back in the history of views."""
        self._session.back()

    def view_forward(self) -> None:
        """Forward in the history of views."""
        self._session.forward()

    def wheel_zooms(self) -> None:
        """Let the wheel over the graph zoom, or scroll."""
        self._settings.change(wheel_zooms=not self._settings.value.wheel_zooms)

    def reset_layout(self) -> None:
        """Put the docks back where they were at first."""
        self._surface.reset_layout()

    def previous_step(self) -> None:
        """One step back."""
        self._look(lambda document, view: navigation.to_step(document, view, view.step - 1))

    def next_step(self) -> None:
        """One step on."""
        self._look(lambda document, view: navigation.to_step(document, view, view.step + 1))

    def previous_layer(self) -> None:
        """One layer back."""
        self._look(lambda document, view: navigation.step_by_layer(document, view, -1))

    def next_layer(self) -> None:
        """One layer on."""
        self._look(lambda document, view: navigation.step_by_layer(document, view, 1))

    def previous_event(self) -> None:
        """One event back on its track."""
        self._look(lambda document, view: navigation.next_event(document, view, -1))

    def next_event(self) -> None:
        """One event on, on its track."""
        self._look(lambda document, view: navigation.next_event(document, view, 1))

    def previous_on_path(self) -> None:
        """One event back in device time."""
        self._look(lambda document, view: navigation.next_on_path(document, view, -1))

    def next_on_path(self) -> None:
        """One event on in device time."""
        self._look(lambda document, view: navigation.next_on_path(document, view, 1))

    def play(self) -> None:
        """Play or pause."""
        self._replay.toggle()

    def slower(self) -> None:
        """Replay slower."""
        self._replay.slower()

    def toggle(self, overlay: str) -> None:
        """Switch one overlay and remember what is shown for the next trace."""
        self._look(lambda _document, view: view.toggled(overlay))
        if self._session.view is not None:
            self._settings.change(overlays=tuple(sorted(self._session.view.overlays)))

    # Help -------------------------------------------------------------------------------------------------------

    def show_keys(self) -> None:
        """Show the key overlay."""
        overlay = KeyOverlay(self._window)
        overlay.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        overlay.open()

    def about(self) -> None:
        """Say what this is."""
        box = QMessageBox(self._window)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setWindowTitle("About tracescope")
        box.setText(f"tracescope {tracescope.__version__}")
        box.setInformativeText("Decode traces against their memory-bandwidth floor. Nothing leaves this machine.")
        box.open()

    def _show(self, dialog: QFileDialog) -> None:
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def _look(self, move: navigation.Move) -> None:
        document, view = self._session.document, self._session.view
        if document is not None and view is not None:
            self._session.look(move(document, view))

    def _zoom(self, factor: float) -> None:
        anchor = self._surface.cursor_time()
        self._look(lambda document, view: navigation.zoomed(document, view, anchor, factor))

    def _pan(self, share: float) -> None:
        self._look(lambda document, view: navigation.panned_by(document, view, share))


def view_fits(document: Document, view: ViewState) -> bool:
    """Whether steps and events that a view names exist: a picture may come from anywhere."""
    steps, events = len(document.trace.steps), len(document.trace.events)
    return -1 <= view.step < steps and -1 <= view.event < events and abs(view.visible.start) < 1 << 62


def with_suffix(path: str, suffix: str) -> Path:
    """``path`` ending in ``suffix``, added where it is missing."""
    return Path(path if path.lower().endswith(suffix) else path + suffix)
