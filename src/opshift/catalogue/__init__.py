"""Operator catalogue: history and signature of operators as text, and a static site of all definitions."""
