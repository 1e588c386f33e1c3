"""Documents and pictures for the drawing tests: small synthesised runs, and reading pixels back."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QImage, QPainter

from tests.kit.traces import FAST
from tracescope.core.model import Workload
from tracescope.core.trace import Trace
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.synth.decode import synthesize
from tracescope.ui.theme import Theme, colour
from tracescope.view.document import Document

Painted = Callable[[QPainter], None]


@lru_cache(maxsize=4)
def llama(profile: str = "realistic", steps: int = 6) -> Document:
    """Llama-3-8B on an H100 at batch 16, context 4,096."""
    basis = make_basis(load_hardware("h100-sxm"))
    trace = synthesize(load_model("llama-3-8b"), basis, Workload(16, 4096), steps=steps, profile=profile, seed=3)
    return Document(trace, basis, Path("llama.tscope.h5"))


def document_of(trace: Trace) -> Document:
    """A hand-made trace, priced at 1 TB/s."""
    return Document(trace, FAST, Path("made.json"))


def painted(width: int, height: int, theme: Theme, paint: Painted, scale: float = 1.0) -> NDArray[np.uint8]:
    """The pixels of what ``paint`` draws on the panel colour, uint8[height, width, 3] as red, green, blue."""
    image = QImage(round(width * scale), round(height * scale), QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(scale)
    image.fill(colour(theme.panel))
    painter = QPainter(image)
    paint(painter)
    painter.end()
    return pixels(image)


def pixels(image: QImage) -> NDArray[np.uint8]:
    """An image as uint8[height, width, 3]."""
    image = image.convertToFormat(QImage.Format.Format_RGB32)
    flat = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine() // 4, 4)
    return flat[:, : image.width(), 2::-1].copy()


def rgb(hex_colour: str) -> tuple[int, int, int]:
    """A hex colour as red, green, blue."""
    return int(hex_colour[1:3], 16), int(hex_colour[3:5], 16), int(hex_colour[5:7], 16)


def is_colour(row: NDArray[np.uint8], hex_colour: str) -> NDArray[np.bool_]:
    """Which pixels have exactly this colour."""
    found: NDArray[np.bool_] = (row == np.array(rgb(hex_colour))).all(axis=-1)
    return found
