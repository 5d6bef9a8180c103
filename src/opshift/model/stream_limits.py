"""Limits of pipes and web servers: the size of their content, and the hosts of redirects.

The length of a stream is unknown before its end. A server that redirects to another host could make this
machine send requests to hosts of an internal network. Such redirects, and redirects from HTTPS to HTTP, are
refused unless the host is allowed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from opshift.model.errors import InvalidModel, UsageError
from opshift.model.locations import without_secrets_of
from opshift.model.wire_format import MAX_HEAD_SIZE, read_head

if TYPE_CHECKING:
    import aiohttp


LIMIT_VARIABLE = "OPSHIFT_MAX_STREAM"
"""Environment variable with the maximum size of a stream in bytes; worker processes inherit it."""

DEFAULT_LIMIT = 16 << 30

MAX_RATIO, FREE_BYTES = 100, 1 << 20
"""Maximum size of decompressed content per received byte, and bytes that are always accepted.

Deflate compresses data to a thousandth at best, but weights hardly at all, and graphs to about a tenth.
"""

MAX_UNREADABLE = 1 << 26
"""Number of bytes to read from a stream that is not a model, so that the error can name its format."""

LIMIT_REMEDY = f"raise the limit with opshift --max-stream or the environment variable {LIMIT_VARIABLE}"


def max_stream() -> int:
    """Return the maximum number of bytes of a stream.

    Raises:
        UsageError: the environment variable is not a number of bytes.
    """
    text = os.environ.get(LIMIT_VARIABLE, str(DEFAULT_LIMIT))
    if not (text.isdecimal() and text.isascii() and len(text) < 20):
        raise UsageError(
            f"expected a number of bytes, got {text!r}",
            place=LIMIT_VARIABLE,
            remedy="set it to a number such as 17179869184",
        )
    return int(text)


def limited(blocks: Iterable[bytes], place: str, compressed: int | None = None) -> Iterator[bytes]:
    """Yield the blocks of a stream as long as they can be a model within the limits.

    A protobuf field starts with its size, so a field that exceeds the limit is refused at once. Only a
    part of a stream that is not a model is yielded: parsing this part as a model raises the error.

    Args:
        blocks: the stream.
        place: name of the stream for messages.
        compressed: number of transferred bytes if the content is compressed; otherwise `None`.

    Raises:
        InvalidModel: the stream exceeds the limits.
    """
    limit = most = max_stream()
    if compressed is not None:
        most = min(limit, MAX_RATIO * compressed + FREE_BYTES)
    received = field = 0
    window, start = b"", 0
    groups: list[int] = []
    is_model = True
    for block in blocks:
        window, start = window[-MAX_HEAD_SIZE:] + block, received - len(window[-MAX_HEAD_SIZE:])
        received += len(block)
        while is_model and field <= received - MAX_HEAD_SIZE:
            try:
                field = start + read_head(window, field - start, start, groups)[2]
            except InvalidModel:
                is_model = False
        if max(field, received) > limit:
            raise InvalidModel(f"has more than {limit:,} bytes", place=place, remedy=LIMIT_REMEDY)
        if received > most:
            reason = f"grows to more than {MAX_RATIO} times the size of its compressed content"
            raise InvalidModel(reason, place=place, remedy="download and decompress it with another program")
        yield block
        if not is_model and received > MAX_UNREADABLE:
            return


HOSTS_VARIABLE = "OPSHIFT_REDIRECT_HOSTS"
"""Environment variable with the hosts to which redirects may lead, separated by commas; `*` allows all."""


async def client_of_one_host(**options: object) -> aiohttp.ClientSession:
    """Return a session for `HTTPFileSystem` that refuses redirects as this module describes."""
    import aiohttp

    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(_require_allowed)
    return aiohttp.ClientSession(trace_configs=[trace], **options)  # type: ignore[arg-type]


async def _require_allowed(
    session: aiohttp.ClientSession, context: object, redirect: aiohttp.TraceRequestRedirectParams
) -> None:
    headers = redirect.response.headers
    target = redirect.url.join(type(redirect.url)(headers.get("Location") or headers.get("URI") or ""))
    is_secure = target.scheme == "https" or target.scheme == redirect.url.scheme == "http"
    is_same = (target.host, target.port) == (redirect.url.host, redirect.url.port)
    if is_secure and is_same:
        return
    hosts = os.environ.get(HOSTS_VARIABLE, "").split(",")
    if target.scheme in ("http", "https") and ("*" in hosts or target.host in hosts):
        return
    named = without_secrets_of(str(target), target.authority or str(target))
    reason = (
        f"{redirect.url.authority} redirects to {'an insecure URL' if is_same else 'another server'}: {named}"
    )
    remedy = "download the file with another program"
    if target.scheme in ("http", "https"):
        remedy = f"allow the host with opshift --redirect-host, or the environment variable {HOSTS_VARIABLE}"
    raise InvalidModel(reason, place=str(redirect.url), remedy=remedy)
