"""Decide what a conversion changes and collect every refusal."""
