"""Compare two versions of a model."""
