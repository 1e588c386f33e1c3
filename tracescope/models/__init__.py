"""Reads a ModelSpec from a preset or a config.json, and a HardwareSpec from a table."""
