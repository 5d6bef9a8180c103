"""Locations of models: paths of local files, and URLs of objects in stores."""

import os
import re
from pathlib import Path

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
"""Start of a URL. A scheme has at least two characters, since one letter is a drive of Windows."""


def is_url(location: object) -> bool:
    """Return whether a location is a URL."""
    return isinstance(location, str) and URL.match(location) is not None


def folder_of(model: object) -> Path | None:
    """Return the folder of a model that is given as a path of a local file."""
    is_local = isinstance(model, str | os.PathLike) and not is_url(model)
    return Path(model).parent if is_local else None  # type: ignore[arg-type]
