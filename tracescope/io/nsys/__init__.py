"""Reads SQLite exports of NVIDIA Nsight Systems."""
