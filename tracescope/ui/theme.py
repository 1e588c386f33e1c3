"""The two palettes: one table of hex values that every view, table and picture takes its colours from."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from PySide6.QtGui import QColor

from tracescope.core.category import KIND_OF_CATEGORY, Category


@dataclass(frozen=True, slots=True)
class KindColours:
    """Colours of one kind: ``fill`` up to the floor, ``hatch`` lines on ``tint`` above it, ``edge``, ``label`` text."""

    fill: str
    edge: str
    hatch: str
    tint: str
    label: str


@dataclass(frozen=True, eq=False, slots=True)
class Theme:
    """A palette. Every field is a hex colour except ``name``, ``kinds`` (by kind letter) and ``hatch_weight``.

    ``ink`` is kept for what physics allows (floors, roofs, brackets), ``accent`` for where the reader is; nothing else
    may use either. ``hatch_weight`` scales the width of hatch lines (thinner on dark).
    """

    name: str
    kinds: dict[str, KindColours]
    window: str
    panel: str
    field: str
    band: str
    head: str
    text: str
    text2: str
    muted: str
    ink: str
    accent: str
    on_accent: str
    selected: str
    wedge: str
    hover: str
    border: str
    grid: str
    warning_text: str
    warning_fill: str
    static_hatch: str
    static_tint: str
    hatch_weight: float

    @property
    def dark(self) -> bool:
        """Whether this is the dark palette."""
        return self.name == "dark"

    def of(self, category: int) -> KindColours:
        """The colours of a ``Category`` value."""
        return self.kinds[KIND_OF_CATEGORY[Category(category)].letter]


LIGHT: Final = Theme(
    name="light",
    kinds={
        "W": KindColours("#0072B2", "#00507D", "#00649D", "#D6E8F3", "#FFFFFF"),
        "K": KindColours("#E69F00", "#A16F00", "#AF7900", "#FBF0D6", "#14181D"),
        "A": KindColours("#C24E00", "#883700", "#AB4500", "#F5E3D6", "#FFFFFF"),
        "C": KindColours("#009E73", "#006F50", "#007857", "#D6EFE9", "#0B0F13"),
        "X": KindColours("#B3568A", "#7D3C61", "#9E4C79", "#F3E4EC", "#FFFFFF"),
        "S": KindColours("#56B4E9", "#3C7EA3", "#4189B1", "#E4F3FB", "#14181D"),
    },
    window="#ECEEF1",
    panel="#FFFFFF",
    field="#FFFFFF",
    band="#F4F6F8",
    head="#F6F7F9",
    text="#171B21",
    text2="#4A535E",
    muted="#66707C",
    ink="#14181D",
    accent="#5B3FD6",
    on_accent="#FFFFFF",
    selected="#EAE6FB",
    wedge="#EFEBFD",
    hover="#E3E6EA",
    border="#C9CFD6",
    grid="#E2E6EA",
    warning_text="#8A4B00",
    warning_fill="#FFF4DE",
    static_hatch="#66707C",
    static_tint="#EDEFF2",
    hatch_weight=1.0,
)

DARK: Final = Theme(
    name="dark",
    kinds={
        "W": KindColours("#3B8FD4", "#76B1E1", "#539CD9", "#233344", "#0E1217"),
        "K": KindColours("#F0AE1E", "#F4C662", "#F2B839", "#403826", "#0E1217"),
        "A": KindColours("#F07A3A", "#F4A275", "#F28A52", "#40302B", "#0E1217"),
        "C": KindColours("#1FB88A", "#62CDAD", "#3AC198", "#1E3A38", "#0E1217"),
        "X": KindColours("#E093BE", "#E9B3D2", "#E4A0C6", "#3D3440", "#0E1217"),
        "S": KindColours("#9AD3F7", "#B8E0F9", "#A6D8F8", "#323E49", "#0E1217"),
    },
    window="#15181C",
    panel="#1E2228",
    field="#171A1F",
    band="#252A31",
    head="#262B32",
    text="#ECEFF3",
    text2="#BAC2CC",
    muted="#96A0AC",
    ink="#F4F6F8",
    accent="#B7A8FF",
    on_accent="#14181D",
    selected="#37325A",
    wedge="#2A2742",
    hover="#323842",
    border="#3C444F",
    grid="#333A43",
    warning_text="#FFC35C",
    warning_fill="#3A2F18",
    static_hatch="#96A0AC",
    static_tint="#2A3038",
    hatch_weight=0.8,
)

THEMES: Final[dict[str, Theme]] = {theme.name: theme for theme in (LIGHT, DARK)}


@lru_cache(maxsize=512)
def colour(hex_value: str) -> QColor:
    """The shared QColor of a hex value; callers must not change it."""
    return QColor(hex_value)


@lru_cache(maxsize=512)
def mixed(hex_value: str, into: str, share: float) -> str:
    """``hex_value`` at ``share`` (0 to 1) over ``into``, as an opaque hex colour: pale fills, dimmed bars."""
    top, bottom = (tuple(int(value[i : i + 2], 16) for i in (1, 3, 5)) for value in (hex_value, into))
    parts = (round(a * share + b * (1 - share)) for a, b in zip(top, bottom, strict=True))
    return "#" + "".join(f"{part:02X}" for part in parts)


def luminance(hex_value: str) -> float:
    """Relative luminance by WCAG 2.1, 0 to 1."""
    linear = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (int(hex_value[i : i + 2], 16) / 255 for i in (1, 3, 5))
    )
    r, g, b = linear
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours by WCAG 2.1, 1 to 21."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)
