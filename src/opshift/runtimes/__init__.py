"""Support of a model by a runtime: whether it implements all nodes."""
