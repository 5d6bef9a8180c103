"""Conversion of a model to operator versions that a runtime implements."""
