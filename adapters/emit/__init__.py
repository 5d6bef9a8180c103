"""Helpers that emit nodes, shared by the adapters of several operators."""
