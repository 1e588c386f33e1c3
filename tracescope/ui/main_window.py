"""Assembles the window: menus, toolbar, bars, the timeline in the middle, docks around it. It computes nothing."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtGui import (
    QAction,
    QCloseEvent,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDropEvent,
    QGuiApplication,
    QKeyEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QApplication, QHBoxLayout, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from tracescope.core.errors import printable
from tracescope.models import hardware_presets, model_presets
from tracescope.ui import style
from tracescope.ui.commands import Commands
from tracescope.ui.docks import Docks
from tracescope.ui.fonts import elided, font
from tracescope.ui.import_bar import ImportBar
from tracescope.ui.jobs import Jobs
from tracescope.ui.menus import Menus, build_actions
from tracescope.ui.messages import Message, MessageBar, Messages, plain_label
from tracescope.ui.opener import Backend, Opener, sample_paths
from tracescope.ui.paint.geometry import MINIMUM_WINDOW
from tracescope.ui.replay import Replay
from tracescope.ui.session import Session
from tracescope.ui.settings import SettingsStore, SynthForm
from tracescope.ui.status import StatusBar
from tracescope.ui.theme import THEMES, Theme
from tracescope.ui.timeline.timeline import Timeline
from tracescope.ui.toolbar import Toolbar
from tracescope.ui.welcome import Welcome
from tracescope.view.navigation import to_step
from tracescope.view.overlays import shown_overlays

FIRST_SIZE = (1440, 900)
TITLE_PX = 560
"""Room for the name of the trace beside the menus."""


class MainWindow(QMainWindow):
    """The window and everything it holds; ``close`` ends every thread and process that it started."""

    def __init__(self, settings: SettingsStore, messages: Messages, backend: Callable[[], Backend]) -> None:
        super().__init__()
        self.setObjectName("window")
        self.setMinimumSize(*MINIMUM_WINDOW)
        self.resize(*FIRST_SIZE)
        self.setAcceptDrops(True)
        self.settings = settings
        self.messages = messages
        self.jobs = Jobs()
        self.session = Session()
        self.opener = Opener(self.session, messages, self.jobs, settings, backend)
        self.replay = Replay(self.session, settings.value.replay_speed)
        self.commands = Commands(
            self.session, self.opener, self.replay, settings=settings, messages=messages, window=self, surface=self
        )
        self.actions_by_name = build_actions(self, self.commands)
        self.menus = Menus(self.menuBar(), self.actions_by_name, settings)
        self.timeline = Timeline(self.session, settings, lambda name: self.actions_by_name[name].trigger())
        self.welcome = Welcome(settings.value.synth)
        self.message_bar = MessageBar()
        self.import_bar = ImportBar()
        self.toolbar = Toolbar(self.actions_by_name, self.session, self.replay)
        self.status = StatusBar(self.session)
        self.docks = Docks(self, self.session, self.menus.panels)
        self._title = plain_label(name="traceTitle")
        self._saved = plain_label()
        self.theme: Theme | None = None
        self._assemble()
        self._connect()
        self.set_theme(settings.value.theme)
        self._show_document()
        self._show_origin()
        messages.attach(self.message_bar.show_message)
        if settings.problem:
            messages.post(Message(settings.problem))

    # What commands act on ----------------------------------------------------------------------------------------

    def cursor_time(self) -> int | None:
        """Trace time under the mouse pointer, None where it is elsewhere."""
        return self.timeline.cursor_time()

    def cancel_drag(self) -> bool:
        """Stop a drag; False where there is none."""
        return self.timeline.cancel_drag()

    def scroll_tracks(self, rows: int) -> None:
        """Move the tracks."""
        self.timeline.scroll_tracks(rows)

    def copy_rows(self) -> bool:
        """Copy what is selected in a table; False where nothing is."""
        for panel in self.docks.visible_panels():
            text = panel.copied_text()
            if text:
                QGuiApplication.clipboard().setText(text)
                return True
        return False

    def show_synthesis(self) -> None:
        """Show the form; the open trace stays and comes back with Esc or by synthesizing another."""
        self._show_welcome(True)
        self.welcome.card.model.setFocus()

    def show_import_bar(self) -> None:
        """Offer model and machine."""
        document = self.session.document
        model = None if document is None else document.trace.meta.model
        hardware = None if document is None else document.basis.hardware
        self.import_bar.offer(
            model="" if model is None else model.name, hardware="" if hardware is None else hardware.name
        )

    def reset_layout(self) -> None:
        """Put the docks back."""
        self.docks.automatic = True
        self.docks.arrange(narrow=False)
        self.docks.fit(self.width(), self.height())
        if self.session.document is None:
            self.docks.hide()

    # Assembly ----------------------------------------------------------------------------------------------------

    def _assemble(self) -> None:
        centre = QWidget()
        centre.setObjectName("panel")
        self.pages = QStackedWidget()
        self.pages.addWidget(self.welcome)
        self.pages.addWidget(self.timeline)
        layout = QVBoxLayout(centre)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.pages)
        self.setCentralWidget(centre)
        bars = QWidget()
        bar_layout = QVBoxLayout(bars)
        bar_layout.setContentsMargins(0, 0, 0, 0)
        bar_layout.setSpacing(0)
        bar_layout.addWidget(self.message_bar)
        bar_layout.addWidget(self.import_bar)
        layout.insertWidget(0, bars)
        self.menuBar().setFixedHeight(24)
        self.menuBar().setFont(font(12))
        self._title.setFont(font(12, 500))
        # The menu bar asks for the size once, so the size must not depend on the text.
        self._title.setFixedSize(TITLE_PX - 90, 20)
        self._saved.setFixedSize(56, 20)
        self._title.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._saved.setFont(font(11))
        self._saved.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._saved.setProperty("role", "muted")
        # The menu bar does not keep its corner widget alive by itself.
        self._corner = _row(self._title, self._saved)
        self.menuBar().setCornerWidget(self._corner)
        self.addToolBar(Qt.ToolBarArea.TopToolBarArea, self.toolbar)
        self.setStatusBar(self.status)
        self.docks.arrange(narrow=False)
        self.docks.hide()
        self.import_bar.fill(
            [(preset.name, preset.name) for preset in model_presets()],
            [(machine.title, machine.name) for machine in hardware_presets()],
        )
        self.actions_by_name["wheel_zooms"].setChecked(self.settings.value.wheel_zooms)

    def _connect(self) -> None:
        session, opener = self.session, self.opener
        session.document_changed.connect(self._show_document)
        opener.origin_changed.connect(self._show_origin)
        opener.loading_changed.connect(lambda: self.status.show_loading(opener.loading))
        self.status.cancelled.connect(opener.cancel)
        self.toolbar.bandwidth_chosen.connect(self._reprice)
        self.toolbar.step_chosen.connect(self._go_to_step)
        self.welcome.synthesize.connect(self._synthesize)
        self.welcome.open_path.connect(self.commands.open_path)
        self.welcome.open_dialog.connect(self.commands.open_file)
        self.import_bar.chosen.connect(opener.reimport)
        self.replay.speed_changed.connect(lambda speed: self.settings.change(replay_speed=speed))
        self.menus.themes.triggered.connect(self._choose_theme)
        self.menus.recent.aboutToShow.connect(lambda: self.menus.list_recent(self.commands.open_path))
        self.menus.list_samples(sample_paths(), self.commands.open_path)
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._follow_system)

    def set_theme(self, choice: str) -> None:
        """Draw everything with ``light``, ``dark`` or the system's palette."""
        theme = THEMES[style.resolved(choice)]
        for item in self.menus.themes.actions():
            item.setChecked(item.data() == choice)
        if theme is self.theme:
            return
        self.theme = theme
        application = QApplication.instance()
        if isinstance(application, QApplication):
            style.apply(application, theme)
        self.toolbar.set_theme(theme)
        self.timeline.set_theme(theme)
        self.welcome.set_theme(theme)
        self.docks.set_theme(theme)

    def _choose_theme(self, item: QAction) -> None:
        self.settings.change(theme=item.data())
        self.set_theme(item.data())

    def _follow_system(self) -> None:
        if self.settings.value.theme == "system":
            self.set_theme("system")

    def _show_document(self) -> None:
        document = self.session.document
        steps = document is not None and document.has_steps
        overlays = shown_overlays(document) if document is not None else frozenset()
        self.menus.enable(trace=document is not None, steps=steps, overlays=overlays)
        self._show_welcome(document is None)

    def _show_welcome(self, shown: bool) -> None:
        if shown:
            self.welcome.list_traces(self.settings.value.recent, sample_paths())
            self.docks.hide()
            self.pages.setCurrentWidget(self.welcome)
        else:
            self.pages.setCurrentWidget(self.timeline)
            self.docks.show()
            self.docks.fit(self.width(), self.height())
            self.timeline.setFocus()

    def _show_origin(self) -> None:
        origin = self.opener.origin
        self._title.setText(elided(printable(origin.title), TITLE_PX - 90, 12, 500))
        unsaved = origin.path is None or origin.foreign
        self._saved.setText("" if not origin.title else "not saved" if unsaved else "saved")
        self.setWindowTitle(f"{origin.title} — tracescope" if origin.title else "tracescope")
        self.import_bar.hide()
        self.message_bar.hide()
        document = self.session.document
        if origin.foreign and document is not None and (document.trace.meta.model is None or not document.has_floor):
            self.show_import_bar()

    def _synthesize(self, form: SynthForm) -> None:
        self.opener.synthesize(form)

    def _reprice(self, bandwidth: str) -> None:
        self.opener.reprice(bandwidth)
        self.timeline.setFocus()

    def _go_to_step(self, step: int) -> None:
        document, view = self.session.document, self.session.view
        if document is not None and view is not None:
            self.session.look(to_step(document, view, step))

    def restore(self) -> None:
        """Bring back size and docks of the last run; called after the window is shown."""
        if self.settings.value.geometry:
            self.restoreGeometry(QByteArray.fromBase64(self.settings.value.geometry.encode()))
        if self.docks.restore(self.settings.value.layout) and self.session.document is None:
            self.docks.hide()

    def closeEvent(self, event: QCloseEvent) -> None:
        self.replay.pause()
        self.opener.close()
        self.jobs.close()
        geometry = bytes(self.saveGeometry().toBase64().data()).decode("ascii")
        self.settings.change(geometry=geometry, layout=self.docks.state())
        super().closeEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            self.welcome.set_drop_target(True)
            event.acceptProposedAction()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self.welcome.set_drop_target(False)
        super().dragLeaveEvent(event)

    def dropEvent(self, event: QDropEvent) -> None:
        self.welcome.set_drop_target(False)
        paths = [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]
        event.acceptProposedAction()
        self.commands.open_paths(paths)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self.timeline.key_pressed(event):
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        if not self.timeline.key_released(event):
            super().keyReleaseEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.toolbar.fit_width(self.width())
        self.timeline.fit_window(self.width(), self.height())
        self.docks.fit(self.width(), self.height())


def _row(*widgets: QWidget) -> QWidget:
    holder = QWidget()
    layout = QHBoxLayout(holder)
    layout.setContentsMargins(0, 0, 8, 0)
    layout.setSpacing(10)
    layout.addStretch(1)
    for widget in widgets:
        layout.addWidget(widget)
    return holder
