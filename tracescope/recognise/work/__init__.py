"""Bytes and FLOPs of ops."""
