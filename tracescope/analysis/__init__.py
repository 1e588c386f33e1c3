"""From a Trace and a Basis to small result objects and tables. Pure."""
