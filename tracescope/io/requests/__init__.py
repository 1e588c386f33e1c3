"""Reads files of requests (when each arrived, how long its prompt was, how many tokens it generated)."""

from tracescope.io.requests.reader import read_requests

__all__ = ["read_requests"]
