"""Reads Perfetto's protobuf traces: track events and GPU stages."""
