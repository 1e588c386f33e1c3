"""Makes a Trace from a model, a machine and a workload."""
