"""Infer element types, ranks, shapes and constants of a model's values."""
