"""The palette table keeps its contrasts, and the font is the packaged one with tabular figures."""

import pytest
from PySide6.QtGui import QFontInfo

from tracescope.core.category import KINDS, Category
from tracescope.ui.fonts import elided, font, text_width
from tracescope.ui.theme import DARK, LIGHT, Theme, contrast, mixed

THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])


@THEMES
def test_kind_colours_can_be_told_and_read(theme: Theme) -> None:
    assert set(theme.kinds) == {kind.letter for kind in KINDS}
    for letter, colours in theme.kinds.items():
        assert contrast(colours.label, colours.fill) >= 4.5, letter
        assert contrast(colours.edge, theme.panel) >= 3, letter
        assert contrast(colours.hatch, colours.tint) >= 3.2, letter


@THEMES
def test_text_stays_readable_on_every_ground(theme: Theme) -> None:
    for ground in (theme.panel, theme.band, theme.head):
        assert contrast(theme.text, ground) >= 7
        assert contrast(theme.ink, ground) >= 7
        assert contrast(theme.muted, ground) >= 4.5
    assert contrast(theme.text2, theme.panel) >= 7
    assert contrast(theme.text2, theme.selected) >= 4.5
    assert contrast(theme.on_accent, theme.accent) >= 4.5
    assert contrast(theme.warning_text, theme.warning_fill) >= 4.5
    assert contrast(theme.static_hatch, theme.static_tint) >= 3


@THEMES
def test_every_category_has_colours(theme: Theme) -> None:
    assert theme.of(Category.HOST) is theme.kinds["S"]
    assert all(theme.of(category) in theme.kinds.values() for category in Category)


def test_mixing_is_exact_at_both_ends() -> None:
    assert mixed("#102030", "#FFFFFF", 1) == "#102030"
    assert mixed("#102030", "#FFFFFF", 0) == "#FFFFFF"
    assert mixed("#000000", "#FFFFFF", 0.5) == "#808080"


@pytest.mark.parametrize(("weight", "style"), [(400, "Regular"), (600, "Semibold"), (700, "Bold")])
def test_the_packaged_font_is_used_in_every_weight(qapp: object, weight: int, style: str) -> None:
    info = QFontInfo(font(11, weight))
    assert info.family() == "Source Sans Pro"
    assert info.styleName() == style


def test_figures_are_tabular(qapp: object) -> None:
    widths = {text_width(digit * 3, 11, 600) for digit in "0123456789"}
    assert len(widths) == 1


def test_eliding_fits_and_keeps_the_beginning(qapp: object) -> None:
    full = "void attention_kernel<float>(float const*, int)"
    short = elided(full, 90, 11)
    assert text_width(short, 11) <= 90
    assert short.endswith("…")
    assert full.startswith(short[:-1])
    assert elided(full, 1e4, 11) == full
    assert elided(full, 2, 11) == ""
