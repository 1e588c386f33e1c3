"""The one font of window and pictures: registered from a dependency, so that every machine draws the same glyphs."""

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from PySide6.QtGui import QFont, QFontDatabase, QFontMetricsF

from tracescope.core.errors import TraceError

FAMILY: Final = "Source Sans Pro"
_WEIGHTS: Final = ("Regular", "Semibold", "Bold")
OPTICAL_PX: Final = 1
"""Added to every nominal size: this face has a smaller x-height than the one the sizes were designed with."""


@lru_cache(maxsize=1)
def register_fonts() -> None:
    """Register the three weights with Qt; needs a QGuiApplication. Raises TraceError where the font is missing."""
    # Found by path: importing the package would list its folder twice for nothing.
    spec = find_spec("font_source_sans_pro")
    folder = Path(spec.origin).parent / "files" if spec is not None and spec.origin else None
    for weight in _WEIGHTS:
        path = folder / f"SourceSansPro-{weight}.ttf" if folder is not None else None
        if path is None or not path.is_file() or QFontDatabase.addApplicationFont(str(path)) < 0:
            raise TraceError(
                "The font Source Sans Pro is missing, so every label would be an empty box.",
                action="Install it: pip install font-source-sans-pro",
            )


@lru_cache(maxsize=256)
def font(px: float, weight: int = 400) -> QFont:
    """The product's font at a nominal size in px, with tabular figures; callers must not change the result."""
    register_fonts()
    result = QFont(FAMILY)
    result.setPixelSize(round(px + OPTICAL_PX))
    result.setWeight(QFont.Weight(weight))
    result.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    result.setFeature(QFont.Tag("tnum"), 1)
    result.setFeature(QFont.Tag("kern"), 1)
    return result


@lru_cache(maxsize=256)
def metrics(px: float, weight: int = 400) -> QFontMetricsF:
    """Metrics of :func:`font`."""
    return QFontMetricsF(font(px, weight))


@lru_cache(maxsize=8192)
def text_width(text: str, px: float, weight: int = 400) -> float:
    """Advance width of ``text`` in logical px."""
    return metrics(px, weight).horizontalAdvance(text)


@lru_cache(maxsize=4096)
def elided(text: str, width: float, px: float, weight: int = 400) -> str:
    """``text``, or its beginning and an ellipsis, so that it is at most ``width`` px wide; empty where nothing fits."""
    if text_width(text, px, weight) <= width:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if text_width(text[:middle].rstrip() + "…", px, weight) <= width:
            low = middle
        else:
            high = middle - 1
    return text[:low].rstrip() + "…" if low else ""
