"""The widgets around the paint functions."""
