"""The release in preparation, to which an accepted operator belongs."""

from __future__ import annotations

import re
from pathlib import Path

from opshift.registry.catalogue import Registry
from opshift.registry.yaml_files import line_of


def with_opset(path: Path, registry: Registry, domain: str, opset: int) -> str | None:
    """`releases.yaml` with an unreleased release that has the opset; `None` if nothing is to be written.

    A domain that no release names, a company's own, has none.
    """
    known = registry.releases.onnx
    if not path.is_file() or not any(domain in each.opsets for each in known.values()):
        return None
    name, newest = list(known.items())[-1]
    if newest.opsets.get(domain, 0) >= opset:
        return None
    lines = path.read_text("utf-8").splitlines()
    at = line_of(path, ("onnx", name)) - 1
    if not newest.released:
        lines[at] = re.sub(rf"(?<=[ {{]){re.escape(domain)}: \d+", f"{domain}: {opset}", lines[at])
        return "\n".join([*lines, ""])
    opsets = ", ".join(f"{each}: {number}" for each, number in {**newest.opsets, domain: opset}.items())
    stated = f"{{ir_version: {newest.ir_version}, opsets: {{{opsets}}}, released: false}}"
    return "\n".join([*lines[: at + 1], f'  "{_after(name)}": {stated}', *lines[at + 1 :], ""])


def _after(name: str) -> str:
    """`1.24` after `1.23`."""
    major, minor = name.split(".")[:2]
    return f"{major}.{int(minor) + 1}"
