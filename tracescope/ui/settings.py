"""What is remembered between runs: one dataclass, one JSON file in the user's configuration folder."""

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from tracescope.view.overlays import OVERLAY_KEYS

RECENT_LIMIT = 10
THEMES = ("system", "light", "dark")


@dataclass(frozen=True, slots=True)
class Recent:
    """One trace that was open: enough to list it without opening it again. Unknown is None."""

    path: str
    steps: int | None = None
    events: int | None = None
    floor_share: float | None = None
    opened: str = ""
    """Local time of the last opening, ISO 8601 to the minute."""


@dataclass(frozen=True, slots=True)
class SynthForm:
    """The last values of the form "Synthesize a run"; an empty dtype leaves it to the model."""

    model: str = "llama-3-8b"
    hardware: str = "h100-sxm"
    batch: int = 16
    context: int = 4096
    steps: int = 128
    profile: str = "realistic"
    ranks: int = 1
    weights: str = ""
    kv: str = ""

    @property
    def title(self) -> str:
        """What the run is called until it is saved: all that tells it from another."""
        model = " ".join(filter(None, (self.model, self.weights, self.kv and f"KV {self.kv}")))
        machine = f"{self.ranks} × {self.hardware}" if self.ranks > 1 else self.hardware
        return f"{model} on {machine}, batch {self.batch}, context {self.context:,}"


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting; a new one is one more field with a default. ``geometry`` and ``layout`` are base64 of Qt's own."""

    theme: str = "system"
    wheel_zooms: bool = True
    """Whether the wheel over the graph zooms (Ctrl+wheel always does) or scrolls the tracks."""
    folder: str = ""
    export_scale: int = 2
    overlays: tuple[str, ...] = OVERLAY_KEYS
    """What was shown last; the next trace opens with the same."""
    replay_speed: int = 1_000_000
    """Trace nanoseconds that pass in one second of replay."""
    recent: tuple[Recent, ...] = ()
    synth: SynthForm = SynthForm()
    geometry: str = ""
    layout: str = ""


def settings_path() -> Path:
    """Where the settings lie: ``settings.json`` in the platform's configuration folder."""
    return Path(platformdirs.user_config_dir("tracescope", appauthor=False)) / "settings.json"


class SettingsStore:
    """The settings in memory and on disk. A file that cannot be read is set aside, never overwritten unseen.

    ``problem`` is a sentence for the message bar where reading or writing went wrong, else empty.
    """

    def __init__(self, path: Path, *, fresh_layout: bool = False) -> None:
        self.path = path
        self.problem = ""
        self.value = self._read()
        if fresh_layout:
            self.value = replace(self.value, geometry="", layout="")

    def change(self, **fields: Any) -> None:
        """Replace some fields and write the file; an equal value writes nothing."""
        value = replace(self.value, **fields)
        if value == self.value:
            return
        self.value = value
        self._write()

    def remember(self, recent: Recent) -> None:
        """Put one trace on top of the recent ones."""
        others = tuple(r for r in self.value.recent if r.path != recent.path)
        self.change(recent=(recent, *others)[:RECENT_LIMIT])

    def _read(self) -> Settings:
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return Settings()
        except OSError as error:
            self.problem = f"The settings could not be read ({error.strerror}); defaults are used."
            return Settings()
        try:
            value = msgspec.json.decode(text, type=Settings)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            aside = self.path.with_suffix(".broken.json")
            self.problem = f"The settings file was not readable; it was kept as {aside.name} and defaults are used."
            try:
                os.replace(self.path, aside)
            except OSError:
                self.problem = "The settings file is not readable; defaults are used."
            return Settings()
        return value if value.theme in THEMES else replace(value, theme="system")

    def _write(self) -> None:
        part = self.path.with_suffix(f".{os.getpid()}.part")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(msgspec.json.format(msgspec.json.encode(self.value), indent=1))
            os.replace(part, self.path)
        except OSError as error:
            self.problem = f"The settings could not be saved ({error.strerror})."
            with suppress(OSError):
                part.unlink(missing_ok=True)
