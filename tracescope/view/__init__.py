"""What is looked at, without Qt: one trace with its view, and what is said of it in words and numbers."""
