"""Comparison of two versions of a model, and the version increment that the changes require."""
