"""Differences between two models: properties, and nodes with their surroundings."""
