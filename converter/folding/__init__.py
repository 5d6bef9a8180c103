"""Folding on request: known values become constants, and nodes without an effect are removed."""
