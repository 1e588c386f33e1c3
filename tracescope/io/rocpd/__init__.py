"""Reads the SQLite databases that rocprofv3 writes (rocpd)."""
