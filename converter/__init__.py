"""Conversion of a model between opsets: read it, plan and apply the changes, and write the result."""
