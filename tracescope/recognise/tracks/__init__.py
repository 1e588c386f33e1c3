"""Where events ran, and who launched them."""
