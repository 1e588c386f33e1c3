"""Levels of detail: the pyramid, folding it to pixels, and picking."""
