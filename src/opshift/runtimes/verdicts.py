"""Verdicts on a model and a runtime."""

RUNS, MAY_RUN, AFTER_CONVERSION, DOES_NOT_RUN = VERDICTS = (
    "runs",
    "may run",
    "after conversion",
    "does not run",
)
"""Verdicts, the most favourable first; `may run` if some facts are unknown."""
