"""The style sheet of the widgets, made from the palette that the pictures use."""

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QWidget

from tracescope.ui.theme import Theme, mixed

SPIN_INSET = (4, 0, 0, 0)
"""Text margins of the field in a spin box, which a style sheet does not reach: with its border, 6 px as in fields."""


def apply(application: QApplication, theme: Theme) -> None:
    """Give the whole application another palette and style sheet, and nothing but that."""
    # Qt drops the fonts that some widgets were given when the application's style sheet changes.
    fonts = [(w, w.font()) for w in application.allWidgets() if w.testAttribute(Qt.WidgetAttribute.WA_SetFont)]
    application.setPalette(palette(theme))
    application.setStyleSheet(style_sheet(theme))
    for widget, its_font in fonts:
        widget.setFont(its_font)


def palette(theme: Theme) -> QPalette:
    """The Qt palette of a theme, for what a style sheet does not reach."""
    result = QPalette()
    group = QPalette.ColorRole
    for role, value in (
        (group.Window, theme.window),
        (group.Base, theme.field),
        (group.AlternateBase, theme.band),
        (group.Button, theme.panel),
        (group.Text, theme.text),
        (group.WindowText, theme.text),
        (group.ButtonText, theme.text),
        (group.PlaceholderText, theme.muted),
        (group.Highlight, theme.accent),
        (group.HighlightedText, theme.on_accent),
        (group.ToolTipBase, theme.panel),
        (group.ToolTipText, theme.text),
        (group.Light, theme.grid),
        (group.Mid, theme.border),
        (group.Dark, theme.border),
        (group.Link, theme.text),
    ):
        result.setColor(role, QColor(value))
    for role in (group.Text, group.WindowText, group.ButtonText):
        result.setColor(QPalette.ColorGroup.Disabled, role, QColor(disabled_colour(theme)))
    return result


def disabled_colour(theme: Theme) -> str:
    """The text and icon colour of a disabled control (38 % of the text)."""
    return mixed(theme.text, theme.head, 0.38)


def resolved(choice: str) -> str:
    """``light`` or ``dark`` for a setting that may be ``system``."""
    if choice in ("light", "dark"):
        return choice
    from_system = QGuiApplication.palette()
    return "dark" if from_system.color(QPalette.ColorRole.Window).lightness() < 128 else "light"


def style_sheet(t: Theme) -> str:
    """The style sheet of a theme. Sizes are those of the design; colours come from the palette alone."""
    off = disabled_colour(t)
    # A style sheet takes pictures from files only; forward slashes on every system.
    arrows = (Path(__file__).parent / "arrows" / t.name).as_posix()
    return f"""
QMainWindow, QDialog {{ background: {t.window}; }}
QMainWindow::separator {{ background: {t.window}; width: 4px; height: 4px; }}
QMenuBar {{ background: {t.head}; color: {t.text}; border: 0; padding: 0 4px; }}
QMenuBar::item {{ padding: 3px 9px; background: transparent; }}
QMenuBar::item:selected {{ background: {t.hover}; border-radius: 3px; }}
QMenu {{ background: {t.panel}; color: {t.text}; border: 1px solid {t.border}; padding: 4px 0; }}
QMenu::item {{ padding: 4px 28px 4px 24px; }}
QMenu::item:selected {{ background: {t.hover}; }}
QMenu::item:disabled {{ color: {off}; }}
QMenu::separator {{ height: 1px; background: {t.grid}; margin: 4px 0; }}
QToolBar {{ background: {t.head}; border: 0; border-bottom: 1px solid {t.border}; border-top: 1px solid {t.grid};
  spacing: 2px; padding: 0 8px; }}
QToolBar::separator {{ background: {t.border}; width: 1px; margin: 4px 6px; }}
QToolButton {{ color: {t.text}; border: 0; border-radius: 4px; padding: 2px 6px; min-height: 22px;
  border-bottom: 2px solid transparent; }}
QToolButton[words="true"] {{ padding: 2px 0 2px 12px; }}
QToolButton:hover {{ background: {t.hover}; }}
QToolButton:focus {{ border: 2px solid {t.accent}; padding: 0 4px; }}
QToolButton[words="true"]:focus {{ padding: 0 0 0 10px; }}
QToolButton:checked {{ background: {t.hover}; border-bottom: 2px solid {t.accent}; border-radius: 2px; }}
QToolButton:disabled {{ color: {off}; }}
QToolButton:checked:disabled {{ border-bottom-color: {mixed(t.accent, t.head, 0.38)}; }}
QToolButton#exportButton {{ border: 1px solid {t.border}; padding: 1px 5px 1px 11px; background: {t.panel}; }}
QToolButton::menu-indicator {{ image: none; }}
QStatusBar {{ background: {t.head}; color: {t.text2}; border-top: 1px solid {t.border}; }}
QStatusBar::item {{ border: 0; }}
QLabel {{ color: {t.text}; background: transparent; }}
QLabel:disabled {{ color: {off}; }}
QLabel[role="text2"] {{ color: {t.text2}; }}
QLabel[role="muted"] {{ color: {t.muted}; }}
QLabel[role="warning"] {{ color: {t.warning_text}; }}
QComboBox, QSpinBox, QLineEdit {{ background: {t.field}; color: {t.text}; border: 1px solid {t.border};
  border-radius: 4px; padding: 1px 6px; min-height: 20px; selection-background-color: {t.accent};
  selection-color: {t.on_accent}; }}
QComboBox:focus, QSpinBox:focus, QLineEdit:focus {{ border: 2px solid {t.accent}; padding: 0 5px; }}
QComboBox:disabled, QSpinBox:disabled, QLineEdit:disabled {{ color: {off}; background: {t.head};
  border-color: {t.grid}; }}
QLineEdit[invalid="true"] {{ border: 2px solid {t.warning_text}; }}
QComboBox::drop-down {{ border: 0; width: 20px; }}
QComboBox::down-arrow {{ image: url("{arrows}-down.svg"); width: 10px; height: 10px; }}
QComboBox::down-arrow:disabled {{ image: url("{arrows}-down-off.svg"); }}
QSpinBox QLineEdit {{ border: 0; padding: 0; background: transparent; }}
QSpinBox::up-button, QSpinBox::down-button {{ border: 0; width: 18px; background: transparent; }}
QSpinBox::up-arrow {{ image: url("{arrows}-up.svg"); width: 10px; height: 10px; }}
QSpinBox::down-arrow {{ image: url("{arrows}-down.svg"); width: 10px; height: 10px; }}
QSpinBox::up-arrow:disabled {{ image: url("{arrows}-up-off.svg"); }}
QSpinBox::down-arrow:disabled {{ image: url("{arrows}-down-off.svg"); }}
QCheckBox {{ color: {t.text2}; spacing: 6px; }}
QCheckBox::indicator {{ width: 12px; height: 12px; border: 1px solid {t.border}; border-radius: 2px;
  background: {t.field}; }}
QCheckBox::indicator:checked {{ background: {t.accent}; border-color: {t.accent}; }}
QCheckBox:focus {{ color: {t.text}; }}
QCheckBox::indicator:focus {{ border: 2px solid {t.accent}; }}
QComboBox QAbstractItemView {{ background: {t.panel}; color: {t.text}; border: 1px solid {t.border};
  selection-background-color: {t.selected}; selection-color: {t.text}; outline: 0; }}
QPushButton {{ background: {t.panel}; color: {t.text}; border: 1px solid {t.border}; border-radius: 4px;
  padding: 3px 12px; min-height: 20px; }}
QPushButton:hover {{ background: {t.hover}; }}
QPushButton:focus {{ border: 2px solid {t.accent}; padding: 2px 11px; }}
QPushButton:disabled {{ color: {off}; }}
QPushButton#primary {{ background: {t.accent}; color: {t.on_accent}; border-color: {t.accent}; font-weight: 600; }}
QPushButton#primary:focus {{ border: 2px solid {t.ink}; }}
QPushButton#primary:disabled {{ background: {mixed(t.accent, t.panel, 0.38)}; border-color: {t.panel}; }}
QPushButton#row {{ border: 0; border-radius: 0; text-align: left; padding: 6px 0; }}
QDockWidget {{ color: {t.text}; }}
QWidget#dockTitle {{ background: {t.head}; border-bottom: 1px solid {t.border}; }}
QWidget#dockTitle QToolButton {{ padding: 0; min-height: 16px; min-width: 16px; border: 0; }}
QTabBar {{ background: {t.head}; }}
QTabBar::tab {{ background: {t.head}; color: {t.text2}; padding: 3px 14px 4px 14px; border: 0;
  border-top: 2px solid transparent; border-bottom: 1px solid {t.border}; min-height: 18px; }}
QTabBar::tab:selected {{ background: {t.panel}; color: {t.text}; border-top: 2px solid {t.accent};
  border-bottom-color: {t.panel}; }}
QTabBar::tab:hover:!selected {{ background: {t.hover}; }}
QTabBar::tab:focus {{ color: {t.text}; }}
QTableView {{ background: {t.panel}; color: {t.text}; border: 0; gridline-color: transparent; outline: 0;
  selection-background-color: {t.selected}; selection-color: {t.text}; alternate-background-color: {t.band}; }}
QTableView:focus {{ border: 2px solid {t.accent}; }}
QDialog#keyOverlay QTableView::item {{ padding-left: 3px; }}
QDialog#keyOverlay QLineEdit {{ padding-left: 3px; }}
QHeaderView {{ background: {t.panel}; border: 0; }}
QHeaderView::section {{ background: {t.panel}; color: {t.text2}; border: 0; border-bottom: 1px solid {t.border};
  padding: 2px 6px; }}
QScrollBar:vertical {{ background: {t.panel}; width: 10px; margin: 0; }}
QScrollBar:horizontal {{ background: {t.panel}; height: 10px; margin: 0; }}
QScrollBar#tracks {{ width: 6px; }}
QScrollBar::handle {{ background: {t.border}; border-radius: 4px; min-height: 24px; min-width: 24px; margin: 1px; }}
QScrollBar::handle:hover {{ background: {t.muted}; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
QScrollArea, QScrollArea > QWidget > QWidget {{ background: {t.panel}; border: 0; }}
QProgressBar {{ background: {t.field}; border: 1px solid {t.border}; border-radius: 3px; max-height: 10px;
  text-align: center; }}
QProgressBar::chunk {{ background: {t.ink}; }}
QWidget#messageBar {{ background: {t.warning_fill}; border-bottom: 1px solid {t.border}; }}
QLabel#messageText {{ color: {t.warning_text}; }}
QWidget#messageBar[warning="false"] {{ background: {t.panel}; }}
QWidget#messageBar[warning="false"] QLabel#messageText {{ color: {t.text}; }}
QWidget#panel, QWidget#welcome {{ background: {t.panel}; }}
QFrame#card {{ background: {t.panel}; border: 1px solid {t.border}; border-radius: 6px; }}
QFrame#drop {{ background: {t.panel}; border: 2px dashed {t.border}; border-radius: 4px; }}
QFrame#drop[target="true"] {{ border-color: {t.accent}; background: {t.wedge}; }}
QFrame#tick {{ background: {t.border}; border: 0; }}
QFrame#rule {{ background: {t.grid}; border: 0; max-height: 1px; }}
QToolTip {{ background: {t.panel}; color: {t.text}; border: 1px solid {t.border}; padding: 4px 6px; }}
"""


def in_role(label: QWidget, role: str) -> None:
    """Give a label another role (``text2``, ``muted``, ``warning``); a style sheet looks only when it is told to."""
    if label.property("role") == role:
        return
    label.setProperty("role", role)
    label.style().unpolish(label)
    label.style().polish(label)
