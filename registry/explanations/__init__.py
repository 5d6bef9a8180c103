"""Explanations of errors: causes of refusals, and errors of other tools."""
