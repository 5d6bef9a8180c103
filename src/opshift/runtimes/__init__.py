"""Check whether a runtime implements all nodes of a model."""
