"""Operator proposals: folders to create, check, review, sign, and accept into a tree of definitions."""
