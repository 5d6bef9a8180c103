"""Locations of models: paths of local files, and URLs of objects in stores.

Credentials in URLs are removed from all texts that are shown or written: messages, reports, ledgers, JSON.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
"""Pattern of the start of a URL. A scheme has at least two letters: a single letter is a drive on Windows."""


def is_url(location: object) -> bool:
    """Return whether a location is a URL."""
    return isinstance(location, str) and URL.match(location) is not None


def is_web_url(location: str) -> bool:
    """Return whether a location is on a web server."""
    return location.lower().startswith(("http://", "https://"))


def is_missing(path: str | os.PathLike[str], *, follow_symlinks: bool = True) -> bool:
    """Return whether a local file does not exist; False in an inaccessible folder: reading reports that."""
    try:
        os.stat(path, follow_symlinks=follow_symlinks)
    except PermissionError:
        return False
    except (OSError, ValueError):  # ValueError: a null character
        return True
    return False


def folder_of(model: object) -> Path | None:
    """Return the folder of a model that is given as the path of a local file; else `None`."""
    is_local = isinstance(model, str | os.PathLike) and not is_url(model)
    return Path(model).parent if is_local else None  # type: ignore[arg-type]


HIDDEN: Final = "***"
"""Text in place of a credential."""

# The lookbehind makes the search linear: a scheme is tried at the start of a word only. One slash suffices,
# because functions for paths remove the second slash. A password that is not percent-encoded may have spaces
# and quotes, but it does not start like a port, and a quote that ends a JSON string ends the password.
_URL: Final = re.compile(
    r"""(?<![A-Za-z0-9+.-])([A-Za-z][A-Za-z0-9+.-]++:/{1,2})"""
    r"""((?:[^/\s"'<>@:?#]*+:(?!\d*(?:[\s"'<>),;:]|\Z))(?:[^"/\n@]|"(?![\s,:}\]]|\Z))*+@)?[^\s"'<>]++)"""
)

_SECRET: Final = re.compile(
    r"sig|token|secret|key|pass|pw|cred|auth|access|session|code|jwt|policy|cookie", re.IGNORECASE
)
"""Parts of the names of query parameters whose values are credentials."""

_PUBLIC: Final = frozenset(("versionid", "generation"))
"""Names of query parameters that identify a version of an object."""

MAX_PUBLIC_VALUE: Final = 8
"""Maximum number of characters of a query value that stays visible; signatures and tokens are longer."""


def without_secrets(text: str) -> str:
    """Return a text with the user names, passwords, signatures and tokens in URLs replaced by `***`.

    Locations keep their credentials until they are shown, because connections need them.
    """
    return _URL.sub(_redacted_url, text) if ":/" in text else text


def json_without_secrets(
    data: object, *, indent: int | None = None, separators: tuple[str, str] | None = None
) -> str:
    """Return data as JSON in ASCII, with keys and strings as `without_secrets` returns them.

    Each string is changed before it becomes JSON: in JSON, a secret may end in the backslash of an escape.
    Keys that differ only in secrets become one key, with the last value.
    """
    text = json.dumps(data, indent=indent, separators=separators, allow_nan=False)
    if ":/" not in text:  # Most documents contain no URL and need no walk through their data.
        return text
    return json.dumps(_data_without_secrets(data), indent=indent, separators=separators, allow_nan=False)


def _data_without_secrets(data: object) -> object:
    if isinstance(data, str):
        return without_secrets(data)
    if isinstance(data, Mapping):
        return {_data_without_secrets(key): _data_without_secrets(value) for key, value in data.items()}
    return list(map(_data_without_secrets, data)) if isinstance(data, list | tuple) else data


def _redacted_url(match: re.Match[str]) -> str:
    user_info, rest = _split_user_info(match[2])
    address, mark, query = rest.partition("?")
    shown = "&".join(map(_redacted_parameter, query.split("&")))
    return f"{match[1]}{f'{HIDDEN}@' if user_info is not None else ''}{address}{mark}{shown}"


def _split_user_info(rest: str) -> tuple[str | None, str]:
    """Split a URL without its scheme into `user:password` (or `None`) and the rest after the `@`."""
    address = rest.partition("?")[0]
    authority = address.partition("/")[0]
    place = authority
    if "@" not in authority:
        if "@" not in rest or not _has_password(authority):
            return None, rest
        # The password contains a slash or a question mark that its author should have percent-encoded.
        place = address if "@" in address else rest
    user_info = place.rpartition("@")[0]
    return user_info, rest[len(user_info) + 1 :]


def without_user_info(url: str) -> str:
    """Return a URL without its scheme, user name and password."""
    return _split_user_info(url.partition("://")[2])[1]


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


MIN_INNER_SECRET: Final = 4
"""Minimum length of a secret that is also replaced inside words: shorter texts occur in many words."""


MAX_LOCATION: Final = 4096
"""Maximum length of a location that is searched for credentials; model names may look like long URLs."""


def without_secrets_of(location: str, text: str) -> str:
    """Return a library's message about a location, with `***` for the credentials of the location.

    Libraries quote parts of a URL, decode the parts, or mistake a password for a bucket name or a port.

    Args:
        location: a text with the URL that was used, or an address without a scheme.
        text: the message.
    """
    pattern = _secrets_pattern(location) if len(location) <= MAX_LOCATION else None
    return without_secrets(pattern.sub(HIDDEN, text) if pattern else text)


@lru_cache(maxsize=64)
def _secrets_pattern(location: str) -> re.Pattern[str] | None:
    found = URL.search(location)
    user_info, rest = _split_user_info(location[found.end() :] if found else location)
    secrets = set((user_info or "").split(":", 1)) - {""}
    # a user name may be a common word or one letter, so it is replaced only as a whole word
    name = user_info.partition(":")[0] if user_info else ""
    for parameter in rest.partition("?")[2].split("&"):
        if _redacted_parameter(parameter) != parameter:
            secrets.add(parameter.partition("=")[2] or parameter)
    if not secrets:
        return None
    from base64 import b64encode  # imported here: few locations have credentials
    from urllib.parse import quote, unquote, unquote_plus

    # the percent-encoded forms of secrets, and their parts: parsers split a password at reserved characters
    decoded = secrets | {unquote(each) for each in secrets} | {unquote_plus(each) for each in secrets}
    coded = {quote(each, safe, errors="replace") for each in decoded for safe in ("/", "")}
    coded |= decoded | {repr(each)[1:-1] for each in decoded}
    names = {name, unquote(name)}
    inner = {each for each in coded - names if len(each) >= MIN_INNER_SECRET}
    words = names | (coded - inner) | {part for each in decoded for part in re.split(r"[/?#@:&\s]", each)}
    if user_info:  # In an HTTP Authorization header, credentials are in base64.
        both = {user_info, unquote(user_info)}
        inner |= both | {b64encode(each.encode(errors="replace")).decode() for each in both}
    inner -= names  # without a password, `user_info` is only the user name
    parts = [re.escape(each) for each in sorted(inner, key=len, reverse=True)]
    parts += [
        rf"(?<![A-Za-z0-9]){re.escape(each)}(?![A-Za-z0-9])"
        for each in sorted(words - {""}, key=len, reverse=True)
    ]
    return re.compile("|".join(parts), re.IGNORECASE)
