"""Every command of the window in one table: menus, toolbar, shortcuts and the ``?`` overlay come from it."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from tracescope.view.overlays import OVERLAYS


class Needs(Enum):
    """What must be there for an action to be enabled."""

    NOTHING = "nothing"
    TRACE = "trace"
    STEPS = "steps"


class Scope(Enum):
    """Where the keys of an action are listened to."""

    WINDOW = "window"
    """Everywhere, unless a text field takes the key as text."""
    TIMELINE = "timeline"
    """While no table or field has the focus: keys that those use themselves."""
    SCAN_CODE = "scan code"
    """By the place of the key on the keyboard, so that W A S D are a cross on every layout."""


@dataclass(frozen=True, slots=True)
class Action:
    """One command; ``menu`` is empty for what only has keys.

    ``name`` is the method of ``Commands`` that does it; an ``overlay`` is switched.
    """

    name: str
    title: str
    menu: str
    keys: tuple[str, ...] = ()
    needs: Needs = Needs.TRACE
    scope: Scope = Scope.WINDOW
    icon: str = ""
    checkable: bool = False
    overlay: str = ""
    """The key of the overlay that a checkable action switches."""
    group: str = ""
    """Actions of one group stand between the same two separators of a menu."""


MENUS: Final = ("File", "Edit", "View", "Go", "Overlays", "Help")

_N, _T, _S = Needs.NOTHING, Needs.TRACE, Needs.STEPS
_LOCAL, _SCAN = Scope.TIMELINE, Scope.SCAN_CODE

ACTIONS: Final[tuple[Action, ...]] = (
    Action("open_file", "Open…", "File", ("Ctrl+O",), _N, icon="open"),
    Action("synthesize", "Synthesize a run…", "File", ("Ctrl+N",), _N, icon="synthesize"),
    Action("reimport", "Model and machine of this trace…", "File", ("Ctrl+I",), _T),
    Action("save_trace", "Save trace as…", "File", ("Ctrl+Shift+S",), _T, group="save"),
    Action("export_image", "Export image…", "File", ("Ctrl+E",), _T, icon="export", group="export"),
    Action("close_trace", "Close trace", "File", ("Ctrl+W",), _T, group="end"),
    Action("quit", "Quit", "File", ("Ctrl+Q",), _N, group="end"),
    Action("copy_table", "Copy selected rows", "Edit", ("Ctrl+C",), _T),
    Action("copy_image", "Copy image", "Edit", ("Ctrl+Shift+C",), _T),
    Action("classify", "Classify the selected kernel as…", "Edit", ("Ctrl+K",), _T, group="classify"),
    Action("cancel", "Cancel, then clear the selection", "Edit", ("Esc",), _N, group="cancel"),
    Action("zoom_in", "Zoom in", "View", ("W",), _T, _SCAN),
    Action("zoom_out", "Zoom out", "View", ("S",), _T, _SCAN),
    Action("pan_left", "Pan left", "View", ("A",), _T, _SCAN),
    Action("pan_right", "Pan right", "View", ("D",), _T, _SCAN),
    Action("zoom_in_fast", "Zoom in four times as fast", "", ("Shift+W",), _T, _SCAN),
    Action("zoom_out_fast", "Zoom out four times as fast", "", ("Shift+S",), _T, _SCAN),
    Action("pan_left_fast", "Pan left four times as fast", "", ("Shift+A", "Shift+Left"), _T, _SCAN),
    Action("pan_right_fast", "Pan right four times as fast", "", ("Shift+D", "Shift+Right"), _T, _SCAN),
    Action("pan_left_arrow", "Pan left", "", ("Left",), _T, _LOCAL),
    Action("pan_right_arrow", "Pan right", "", ("Right",), _T, _LOCAL),
    Action("scroll_up", "Scroll the tracks up", "", ("Up",), _T, _LOCAL),
    Action("scroll_down", "Scroll the tracks down", "", ("Down",), _T, _LOCAL),
    Action("fit_selection", "Centre, then fit the selection", "View", ("F",), _T, group="fit"),
    Action("fit_step", "Fit the step", "View", ("Shift+F",), _S, group="fit"),
    Action("fit_all", "Fit the whole trace", "View", ("0", "Home"), _T, group="fit"),
    Action("view_back", "Back", "View", ("Alt+Left",), _T, group="history"),
    Action("view_forward", "Forward", "View", ("Alt+Right",), _T, group="history"),
    Action("wheel_zooms", "Wheel zooms (Ctrl+wheel always does)", "View", (), _N, checkable=True, group="setting"),
    Action("reset_layout", "Reset layout", "View", (), _N, group="layout"),
    Action("previous_step", "Previous step", "Go", ("PgUp",), _S, icon="previous", group="step"),
    Action("next_step", "Next step", "Go", ("PgDown",), _S, icon="next", group="step"),
    Action("previous_layer", "Previous layer", "Go", ("Ctrl+PgUp",), _S, group="layer"),
    Action("next_layer", "Next layer", "Go", ("Ctrl+PgDown",), _S, group="layer"),
    Action("previous_event", "Previous event on the track", "Go", (",",), _T, group="event"),
    Action("next_event", "Next event on the track", "Go", (".",), _T, group="event"),
    Action("previous_on_path", "Previous in device time", "Go", ("[", "Alt+Up"), _S, group="path"),
    Action("next_on_path", "Next in device time", "Go", ("]", "Alt+Down"), _S, group="path"),
    Action("play", "Play or pause the replay", "Go", ("Space",), _T, _LOCAL, icon="play", group="replay"),
    Action("slower", "Replay slower", "Go", ("Shift+Space",), _T, _LOCAL, group="replay"),
    *(
        Action(f"toggle_{o.key}", o.title, "Overlays", o.keys, _T, icon=o.icon, checkable=True, overlay=o.key)
        for o in OVERLAYS
    ),
    Action("show_keys", "Keys", "Help", ("?",), _N),
    Action("about", "About tracescope", "Help", (), _N),
)

MOUSE: Final[tuple[tuple[str, str], ...]] = (
    ("Wheel, Ctrl+wheel", "Zoom at the cursor"),
    ("Shift+wheel", "Pan in time"),
    ("Wheel over the labels", "Scroll the tracks"),
    ("Drag", "Select a time range, snapping to event edges (Alt: no snapping)"),
    ("Middle drag, Space+drag, Shift+drag", "Pan"),
    ("Ctrl+drag", "Zoom to the dragged range"),
    ("Click", "Select an event, a layer or a step"),
    ("Double-click", "Zoom to the event"),
    ("Drag in the run strip", "Show several steps"),
    ("Drop a file", "Open it; a picture exported here brings its view back"),
)
"""What the mouse does, for the ``?`` overlay."""


def action(name: str) -> Action:
    """The action called ``name``; KeyError where there is none."""
    return next(a for a in ACTIONS if a.name == name)
