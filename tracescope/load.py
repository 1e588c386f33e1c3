"""Open and save anything: native files directly, foreign ones through a reader and recognition."""
