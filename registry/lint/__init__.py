"""Lint rules for operator definitions and runtime files; the loader and `opshift lint` apply them."""
