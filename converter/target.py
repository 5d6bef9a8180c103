"""What to convert to: opsets by domain, and an IR version if the target names one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from opshift.converter.errors import UsageError
from opshift.registry.catalogue import Registry
from opshift.registry.errors import OpshiftError, UnknownOpset
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain

TargetLike = int | str | Mapping[str, int] | Iterable[str]
EXAMPLE = "give an opset version such as 17"
MOST_DIGITS = 20
"""More than any opset version has."""


@dataclass(frozen=True)
class Target:
    """Opsets by domain (spelled as the registry does), and the IR version of a named release."""

    opsets: Mapping[str, int]
    ir_version: int | None = None


def read_target(target: TargetLike, registry: Registry) -> Target:
    """Read an int (default domain), a mapping, `"17"`, `"ai.onnx.ml=3"`, `"onnx-1.12"`, or several of these.

    Raises:
        UsageError: it is none of these, or names one domain twice.
        UnknownOpset: an opset is below 1, or newer than the registry knows.
        UnknownDomain: the registry has no definitions for a domain.
    """
    opsets: dict[str, int] = {}
    ir_version = None
    for named, ir in _parts(target, registry):
        for domain, opset in named.items():
            if opsets.setdefault(canonical_domain(domain), opset) != opset:
                both = f"{opsets[canonical_domain(domain)]} and {opset}"
                raise UsageError(f"{canonical_domain(domain)} has two targets, {both}", remedy="give one")
        ir_version = ir or ir_version
    if not opsets:
        raise UsageError("no target is given", remedy=EXAMPLE)
    return _checked(opsets, ir_version, registry)


def _parts(target: TargetLike, registry: Registry) -> Iterator[tuple[Mapping[str, int], int | None]]:
    if isinstance(target, Mapping):
        yield target, None
    elif isinstance(target, int) and not isinstance(target, bool):
        yield {DEFAULT_DOMAIN: target}, None
    elif isinstance(target, str):
        yield _read_text(target.strip(), registry)
    elif isinstance(target, Iterable) and not isinstance(target, bytes | bytearray | memoryview):
        for text in target:
            yield _read_text(str(text).strip(), registry)
    else:
        raise UsageError(f"{target!r} is no target", remedy=EXAMPLE)


def _read_text(text: str, registry: Registry) -> tuple[dict[str, int], int | None]:
    domain, equals, version = text.rpartition("=")
    if _is_number(version) and (equals or not domain):
        return {canonical_domain(domain): int(version)}, None
    if equals:
        raise UsageError(f"{text!r} is no target", remedy="write a domain's opset as ai.onnx.ml=3")
    try:
        release = registry.releases.named(text)
    except OpshiftError as error:
        raise UsageError(error.reason, remedy=error.remedy) from error
    return dict(release.opsets), release.ir_version


def _is_number(text: str) -> bool:
    return len(text) < MOST_DIGITS and text.removeprefix("-").isdecimal()


def _checked(opsets: Mapping[str, Any], ir_version: int | None, registry: Registry) -> Target:
    for domain, opset in opsets.items():
        if not isinstance(opset, int) or isinstance(opset, bool):
            raise UsageError(f"{opset!r} is no opset version of {domain}", remedy=EXAMPLE)
        newest = registry.newest_opset(domain)
        if not 1 <= opset <= newest:
            raise UnknownOpset(
                f"there is no opset {opset} of {domain}", remedy=f"the registry knows opsets 1 to {newest}"
            )
    return Target(dict(opsets), ir_version)
