"""Unreleased release, to which accepted operators are added."""

from __future__ import annotations

import re
from pathlib import Path

from opshift.registry.catalogue import Registry
from opshift.registry.yaml_files import line_of


def with_opset(path: Path, registry: Registry, domain: str, opset: int) -> str | None:
    """Return the text of `releases.yaml` with the opset in an unreleased release.

    Returns:
        `None` if the file is to stay unchanged: it does not exist, a release already includes the opset, or
        no release lists the domain, as for custom domains.
    """
    releases = registry.releases.onnx
    if not path.is_file() or not any(domain in each.opsets for each in releases.values()):
        return None
    name, newest = list(releases.items())[-1]
    if newest.opsets.get(domain, 0) >= opset:
        return None
    lines = path.read_text("utf-8").splitlines()
    index = line_of(path, ("onnx", name)) - 1
    if not newest.released:
        lines[index] = re.sub(rf"(?<=[ {{]){re.escape(domain)}: \d+", f"{domain}: {opset}", lines[index])
        return "\n".join([*lines, ""])
    opsets = ", ".join(f"{each}: {number}" for each, number in {**newest.opsets, domain: opset}.items())
    entry = f"{{ir_version: {newest.ir_version}, opsets: {{{opsets}}}, released: false}}"
    return "\n".join([*lines[: index + 1], f'  "{_next_release(name)}": {entry}', *lines[index + 1 :], ""])


def _next_release(name: str) -> str:
    """Return the next minor release, such as `1.24` for `1.23`."""
    major, minor = name.split(".")[:2]
    return f"{major}.{int(minor) + 1}"
