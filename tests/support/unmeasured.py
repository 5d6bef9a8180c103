"""Environment of processes whose coverage is not measured."""

from __future__ import annotations

import os


def unmeasured() -> dict[str, str]:
    """Return the environment without the settings of coverage.py.

    A signal handler that raises an exception while coverage.py holds its lock leaves it locked for ever.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_PROCESS")}
