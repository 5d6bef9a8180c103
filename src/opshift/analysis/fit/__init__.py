"""Conversion of a model to what a runtime implements."""
