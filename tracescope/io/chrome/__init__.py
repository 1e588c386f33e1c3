"""Chrome trace JSON as Kineto and other writers produce it."""
