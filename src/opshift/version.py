"""Version of the package, which its build takes from the tags of the repository."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

VERSION_FILE: Final = Path(__file__).with_name("version.txt")
"""File in wheels with the version: reading it takes a hundredth of the time of reading the metadata."""

UNKNOWN: Final = "0+unknown"
"""Version of sources that are not installed."""

__version__: str


@cache
def package_version() -> str:
    """Return the version of a wheel, or the version that a checkout had when it was installed."""
    try:
        return VERSION_FILE.read_text("ascii")
    except OSError:
        from importlib.metadata import PackageNotFoundError, version  # loads many modules

        try:
            return version("opshift")
        except PackageNotFoundError:
            return UNKNOWN


def __getattr__(name: str) -> str:
    if name == "__version__":
        return package_version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
