"""One dock a file, listed in PANELS."""
