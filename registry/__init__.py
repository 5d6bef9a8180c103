"""Typed, immutable access to the operator definitions in `opsets/`."""
