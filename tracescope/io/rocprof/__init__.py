"""Reads the JSON that rocprofv3 (rocprofiler-sdk) writes."""
