"""Evaluator of constants and shape elements, element by element."""
