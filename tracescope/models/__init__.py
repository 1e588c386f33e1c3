"""Models and machines, from built-in presets and from files that others wrote."""

from tracescope.models.machines import (
    contradiction,
    energy_presets,
    hardware_for_device,
    hardware_presets,
    load_hardware,
    make_basis,
)
from tracescope.models.presets import ModelPreset, load_model, model_presets

__all__ = [
    "ModelPreset",
    "contradiction",
    "energy_presets",
    "hardware_for_device",
    "hardware_presets",
    "load_hardware",
    "load_model",
    "make_basis",
    "model_presets",
]
