"""Locations of models: paths of local files, and URLs of objects in stores.

Credentials in URLs are removed from texts that people or files get: messages, reports, ledgers and JSON.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
"""Start of a URL. A scheme has at least two characters, since one letter is a drive of Windows."""


def is_url(location: object) -> bool:
    """Return whether a location is a URL."""
    return isinstance(location, str) and URL.match(location) is not None


def folder_of(model: object) -> Path | None:
    """Return the folder of a model that is given as a path of a local file."""
    is_local = isinstance(model, str | os.PathLike) and not is_url(model)
    return Path(model).parent if is_local else None  # type: ignore[arg-type]


HIDDEN: Final = "***"
"""Text in place of a credential."""

# The lookbehind makes the search linear: a scheme is tried at the start of a word only. One slash, because
# functions for paths remove the second one.
_URL: Final = re.compile(r"""(?<![A-Za-z0-9+.-])([A-Za-z][A-Za-z0-9+.-]++:/{1,2})([^\s"'<>]++)""")

_SECRET: Final = re.compile(
    r"sig|token|secret|key|pass|pw|cred|auth|access|session|code|jwt|policy|cookie", re.IGNORECASE
)
"""Parts of the names of query parameters whose values are credentials."""

_PUBLIC: Final = frozenset(("versionid", "generation"))
"""Names of query parameters that identify a version of an object."""

MAX_PUBLIC_VALUE: Final = 8
"""Characters of the longest query value that is shown: signatures and tokens are longer."""


def without_secrets(text: str) -> str:
    """Return a text with user names, passwords, signatures and tokens of its URLs replaced by `***`.

    Locations keep their credentials until they are shown; connections use the real ones.
    """
    return _URL.sub(_redacted, text) if ":/" in text else text


def _redacted(match: re.Match[str]) -> str:
    address, mark, query = match[2].partition("?")
    authority, slash, path = address.partition("/")
    _, at, host = authority.rpartition("@")
    if at:
        authority = f"{HIDDEN}@{host}"
    elif "@" in path and _has_password(authority):
        # a slash in a password that should be percent-encoded
        authority, slash, path = f"{HIDDEN}@{path.rpartition('@')[2]}", "", ""
    shown = "&".join(map(_redacted_parameter, query.split("&")))
    return f"{match[1]}{authority}{slash}{path}{mark}{shown}"


def _has_password(authority: str) -> bool:
    _, colon, port = authority.rpartition(":")
    return bool(colon) and not port.isdecimal() and not port.endswith("]")


def _redacted_parameter(parameter: str) -> str:
    name, mark, value = parameter.partition("=")
    if not mark:
        return HIDDEN if len(name) > MAX_PUBLIC_VALUE else name
    if not value or name.lower() in _PUBLIC:
        return parameter
    is_public = len(value) <= MAX_PUBLIC_VALUE and not _SECRET.search(name)
    return parameter if is_public else f"{name}={HIDDEN}"
