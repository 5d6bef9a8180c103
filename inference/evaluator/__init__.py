"""Evaluator of constants and shape elements: what is known about each element of a value."""
