"""Modules with the names, signatures and errors of other packages, implemented by opshift."""
