"""The widgets around the paint functions: they turn the mouse and the keys into views, and nothing else."""
