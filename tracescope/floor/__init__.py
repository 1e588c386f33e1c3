"""What decode costs by formula: bytes, FLOPs, prices, capacity, energy and what binds; no trace is needed."""
