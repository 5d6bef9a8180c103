"""Conversion of a model between opsets: read, survey, plan, apply, rewrite for the IR version, write."""
