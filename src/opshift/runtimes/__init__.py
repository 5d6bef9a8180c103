"""Check whether a runtime implements all nodes of a model and accepts its other properties."""
