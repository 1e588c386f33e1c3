"""The trace model and the decode arithmetic. Numpy only."""
