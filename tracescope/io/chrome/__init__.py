"""Chrome trace JSON as torch.profiler, JAX, viztracer and others write it; plain or gzip."""
