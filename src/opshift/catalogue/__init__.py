"""Operator catalogue: operators, their history and kernels as text, as JSON data, and as a static site."""
