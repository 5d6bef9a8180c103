"""Generators of files: `files` of each module returns the content of its files by path."""
