"""Helpers that emit nodes for several operators."""
