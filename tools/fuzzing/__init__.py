"""Mutations, public calls and workers of `tools/fuzz.py`."""
