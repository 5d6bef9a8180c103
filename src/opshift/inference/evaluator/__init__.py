"""Evaluate constants, and values computed from shapes, element by element."""
