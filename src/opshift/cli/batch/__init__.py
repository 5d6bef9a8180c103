"""Conversion of several models in parallel processes."""
