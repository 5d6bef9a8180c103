"""Verdicts on whether a runtime runs a model."""

RUNS, MAY_RUN, AFTER_CONVERSION, DOES_NOT_RUN = VERDICTS = (
    "runs",
    "may run",
    "after conversion",
    "does not run",
)
"""Verdicts, the most favourable first; `may run` if facts on which the verdict depends are unknown."""
