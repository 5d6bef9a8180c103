"""Findings of commands over several models: SARIF, and annotations of code hosts."""
