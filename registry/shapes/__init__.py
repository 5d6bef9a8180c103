"""Shape inference rules, by the name that definitions use (`shape: broadcast`).

A rule returns certain facts only: an output of unknown rank is `None`, and so is each unknown dimension.
"""
