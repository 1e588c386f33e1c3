"""What texts mean: kernel names, markers, shapes, messages of collectives."""
