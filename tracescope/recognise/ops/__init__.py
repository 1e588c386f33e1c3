"""One op an event: which op, in which layer."""
