"""Version of the package. Builds take the version from the git tags of the repository."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

VERSION_FILE: Final = Path(__file__).with_name("version.txt")
"""File with the version, in wheels only: a hundred times faster to read than the package metadata."""

UNKNOWN: Final = "0+unknown"
"""Version of a source tree without an installation."""

__version__: str


@cache
def package_version() -> str:
    """Return the version of the wheel; for a checkout, its version when it was installed, or `UNKNOWN`."""
    try:
        return VERSION_FILE.read_text("ascii")
    except OSError:
        from importlib.metadata import PackageNotFoundError, version  # imported here: loads many modules

        try:
            return version("opshift")
        except PackageNotFoundError:
            return UNKNOWN


def __getattr__(name: str) -> str:
    if name == "__version__":
        return package_version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
