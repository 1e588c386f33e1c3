"""Reads XPlane protobuf, as JAX and XLA profilers write it."""
