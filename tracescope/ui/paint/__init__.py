"""Pure paint functions: no widgets here, and no arithmetic on events."""
