"""Where steps are, how far they reach and what each of them is."""
