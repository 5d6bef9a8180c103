"""Command line interface.

Modules import expensive dependencies inside functions, so that commands start quickly.
"""
