"""Shape inference rules, by the name that definitions use (`shape: broadcast`).

A rule returns only facts that are certain: an output of unknown rank, or an unknown dimension, is `None`.
Sizes may be symbols: rules round and compare them with the functions of `sizes`.
"""
