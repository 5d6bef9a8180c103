"""Helpers shared by tests: small models, and functions that run them."""
