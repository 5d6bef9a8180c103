"""Locations of files, as URIs."""

import os
from pathlib import Path, PurePath
from urllib.parse import quote

from opshift.model.locations import is_url

SOURCE_ROOT = "%SRCROOT%"
"""Name that SARIF readers use for the root of the sources."""

URL_CHARACTERS = "/:?=&@%"
"""Characters that have a meaning in a URL."""


def absolute_path(file: str) -> Path:
    """Return the path of a file without `..`, so that it can be compared with the working folder."""
    return Path(os.path.abspath(file))


def relative_name(path: PurePath, root: PurePath) -> str | None:
    """Return the path of a file below a folder with slashes, or `None` if it is elsewhere."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else None


def working_folder() -> str:
    """Return the URI of the working folder with a slash at its end, as bases of relative URIs have."""
    return (Path.cwd() / "-").as_uri().removesuffix("-")


def artifact_location(file: str) -> dict[str, str]:
    """Return the location of a file for SARIF: relative to the working folder if it is below it."""
    if is_url(file):
        return {"uri": quote(file, safe=URL_CHARACTERS)}
    return path_location(absolute_path(file), Path.cwd())


def path_location(path: PurePath, root: PurePath) -> dict[str, str]:
    """Return the location of an absolute path for SARIF."""
    name = relative_name(path, root)
    if name is None:
        return {"uri": path.as_uri()}
    return {"uri": quote(os.fsencode(name)), "uriBaseId": SOURCE_ROOT}
