"""Sessions with web servers that follow redirects to other hosts only if these are allowed.

Otherwise, a server could make this machine send requests to hosts of an internal network.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from opshift.model.errors import InvalidModel

if TYPE_CHECKING:
    import aiohttp

HOSTS_VARIABLE = "OPSHIFT_REDIRECT_HOSTS"
"""Environment variable with the allowed hosts, separated by commas; `*` allows all."""


async def client_of_one_host(**options: object) -> aiohttp.ClientSession:
    """Return a session for `HTTPFileSystem` that refuses redirects to other hosts."""
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
    if is_secure and (target.host, target.port) == (redirect.url.host, redirect.url.port):
        return
    hosts = os.environ.get(HOSTS_VARIABLE, "").split(",")
    if target.scheme in ("http", "https") and ("*" in hosts or target.host in hosts):
        return
    named = target.authority or str(target)
    reason = f"{redirect.url.authority} redirects to {named}, which is not the same server"
    remedy = "download the file with another program"
    if target.scheme in ("http", "https"):
        remedy = f"allow the host with opshift --redirect-host, or the environment variable {HOSTS_VARIABLE}"
    raise InvalidModel(reason, place=str(redirect.url), remedy=remedy)
