"""Shape inference rules, by the name that definitions use (`shape: broadcast`).

A rule returns only facts that are certain: an output of unknown rank, or an unknown dimension, is `None`.
Sizes may be symbols, so rules use the functions of `sizes` to round and compare sizes.
"""
