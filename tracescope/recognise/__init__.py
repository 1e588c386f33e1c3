"""From a RawTrace to a Trace: steps, layers, ops, bytes, dependencies. Pure."""
