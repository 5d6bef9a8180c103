"""Measurement of the operator versions and types that a runtime implements."""
