"""Conversion of a model between opsets: read, survey, plan, apply, IR version, write."""
