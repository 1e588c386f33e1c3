"""The docks around the timeline: one for every panel, tabbed below and stacked at the right, with their own titles."""

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QMainWindow, QMenu, QTabWidget, QToolButton, QWidget

from tracescope.ui.fonts import font
from tracescope.ui.icons import icon
from tracescope.ui.messages import plain_label
from tracescope.ui.paint.geometry import COMPACT, Sizes, sizes_for
from tracescope.ui.panels import PANELS
from tracescope.ui.panels.panel import PanelWidget
from tracescope.ui.session import Session
from tracescope.ui.theme import Theme

LAYOUT_VERSION = 1
"""Raise it when docks are added or removed: a layout of another version is not restored."""
LOW_WINDOW = 700
"""Below this height the tables give two rows to the lanes."""
_RIGHT = Qt.DockWidgetArea.RightDockWidgetArea
_BOTTOM = Qt.DockWidgetArea.BottomDockWidgetArea
_TAB_BAR, _TABLE_HEAD, _ROW = 27, 22, 20


class DockTitle(QWidget):
    """The 24 px bar of a dock: its name, and buttons to float and close it."""

    def __init__(self, dock: QDockWidget, title: str) -> None:
        super().__init__(dock)
        self.setObjectName("dockTitle")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedHeight(24)
        label = plain_label(title)
        label.setFont(font(12, 600))
        self._float = QToolButton()
        self._float.setAccessibleName(f"Float {title}")
        self._float.clicked.connect(lambda: dock.setFloating(not dock.isFloating()))
        self._close = QToolButton()
        self._close.setAccessibleName(f"Close {title}")
        self._close.clicked.connect(dock.close)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(10, 0, 6, 0)
        layout.setSpacing(4)
        layout.addWidget(label)
        layout.addStretch(1)
        layout.addWidget(self._float)
        layout.addWidget(self._close)

    def set_theme(self, theme: Theme) -> None:
        """Draw the buttons in the theme's colours."""
        self._float.setIcon(icon("float", theme.text2, theme.muted))
        self._close.setIcon(icon("close", theme.text2, theme.muted))


class Docks:
    """Makes, arranges, hides and restores the docks of a main window."""

    def __init__(self, window: QMainWindow, session: Session, menu: QMenu) -> None:
        self._window = window
        self._hidden: list[QDockWidget] | None = None
        self._narrow: bool | None = None
        self.automatic = True
        """Whether the arrangement still follows the window's size: until somebody moves a dock."""
        self._arranging = False
        self.panels: dict[str, PanelWidget] = {}
        self._docks: dict[str, QDockWidget] = {}
        self._titles: dict[str, DockTitle] = {}
        self._blanks: dict[str, QWidget] = {}
        window.setCorner(Qt.Corner.BottomRightCorner, _RIGHT)
        window.setTabPosition(_BOTTOM, QTabWidget.TabPosition.North)
        options = QMainWindow.DockOption
        window.setDockOptions(options.AllowTabbedDocks | options.AllowNestedDocks | options.GroupedDragging)
        for panel in PANELS:
            widget = panel.make(session)
            widget.setAccessibleName(panel.title)
            dock = QDockWidget(panel.title, window)
            dock.setObjectName(f"dock.{panel.key}")
            dock.setWidget(widget)
            title = DockTitle(dock, panel.title)
            dock.setTitleBarWidget(title)
            dock.topLevelChanged.connect(self._moved)
            dock.dockLocationChanged.connect(self._moved)
            menu.addAction(dock.toggleViewAction())
            self.panels[panel.key] = widget
            self._docks[panel.key] = dock
            self._titles[panel.key] = title
            self._blanks[panel.key] = QWidget(dock)
            self._blanks[panel.key].setFixedHeight(0)
            self._blanks[panel.key].hide()

    def arrange(self, *, narrow: bool) -> None:
        """Put every dock where it is at first: right ones stacked (tabbed where narrow), the others tabbed below."""
        self._arranging = True
        self._narrow = narrow
        self.automatic = True
        first: dict[Qt.DockWidgetArea, QDockWidget] = {}
        for panel in PANELS:
            dock = self._docks[panel.key]
            dock.setFloating(False)
            self._window.addDockWidget(panel.area, dock)
            dock.show()
            if panel.area not in first:
                first[panel.area] = dock
            elif panel.area == _BOTTOM or narrow:
                self._window.tabifyDockWidget(first[panel.area], dock)
            else:
                self._window.splitDockWidget(first[panel.area], dock, Qt.Orientation.Vertical)
        for dock in first.values():
            dock.raise_()
        self._arranging = False
        self.show_titles()

    def fit(self, width: int, height: int) -> None:
        """Follow the window's size while nobody has arranged the docks by hand."""
        sizes = sizes_for(width, height)
        narrow = sizes is COMPACT
        for widget in self.panels.values():
            widget.set_narrow(narrow)
        if not self.automatic:
            return
        if narrow != self._narrow:
            self.arrange(narrow=narrow)
            if self._hidden is not None:
                self._hidden = None
                self.hide()
        self.resize(sizes, height)

    def resize(self, sizes: Sizes, height: int) -> None:
        """Give the docks the sizes of the design."""
        right = [self._docks[p.key] for p in PANELS if p.area == _RIGHT]
        bottom = [self._docks[p.key] for p in PANELS if p.area == _BOTTOM]
        horizontal, vertical = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
        self._window.resizeDocks(right[:1], [sizes.right_dock], horizontal)
        rows = sizes.table_rows if height >= LOW_WINDOW else sizes.table_rows - 2
        wanted = _TAB_BAR + _TABLE_HEAD + rows * _ROW - 3
        self._window.resizeDocks(bottom[:1], [wanted], vertical)
        if not self._narrow and len(right) == 2:
            below = 268
            self._window.resizeDocks(right, [max(200, height - 86 - below), below], vertical)

    def hide(self) -> None:
        """Hide the docks until :meth:`show`; which ones were open is kept."""
        if self._hidden is None:
            self._hidden = [dock for dock in self._docks.values() if not dock.isHidden()]
            for dock in self._hidden:
                dock.hide()

    def show(self) -> None:
        """Show what :meth:`hide` hid."""
        if self._hidden is not None:
            for dock in self._hidden:
                dock.show()
            self._hidden = None
            for panel in PANELS:
                if panel.key in ("off_the_floor", "inspector"):
                    self._docks[panel.key].raise_()
            self.show_titles()

    def state(self) -> str:
        """The arrangement as text, empty while it is automatic."""
        if self.automatic:
            return ""
        hidden = self._hidden
        self.show()
        data = self._window.saveState(LAYOUT_VERSION).toBase64().data()
        if hidden is not None:
            self.hide()
        return bytes(data).decode("ascii")

    def restore(self, state: str) -> bool:
        """Bring an arrangement back; False where it is of another version or broken."""
        if not state:
            return False
        self._arranging = True
        done = self._window.restoreState(QByteArray.fromBase64(state.encode()), LAYOUT_VERSION)
        self._arranging = False
        if done:
            self.automatic = False
            self.show_titles()
        return done

    def visible_panels(self) -> list[PanelWidget]:
        """The panels on screen, the focused one first."""
        shown = [panel for panel in self.panels.values() if panel.isVisible()]
        return sorted(shown, key=lambda panel: not panel.isAncestorOf(self._window.focusWidget() or panel))

    def set_theme(self, theme: Theme) -> None:
        """Draw with another palette."""
        for title in self._titles.values():
            title.set_theme(theme)
        for panel in self.panels.values():
            panel.set_theme(theme)

    def show_titles(self) -> None:
        """A dock that shares the bottom with others has its tab as a title; every other one has a title bar."""
        for key, dock in self._docks.items():
            tabbed = bool(self._window.tabifiedDockWidgets(dock)) and not dock.isFloating()
            below = self._window.dockWidgetArea(dock) == _BOTTOM
            wanted = self._blanks[key] if tabbed and below else self._titles[key]
            if dock.titleBarWidget() is not wanted:
                dock.titleBarWidget().hide()
                dock.setTitleBarWidget(wanted)
                wanted.show()

    def _moved(self, *_details: object) -> None:
        if not self._arranging:
            self.automatic = False
            self.show_titles()
