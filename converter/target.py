"""What to convert to: opsets by domain, and an IR version if the target names one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from opshift.converter.errors import UsageError
from opshift.registry.catalogue import Registry
from opshift.registry.errors import OpshiftError, UnknownOpset
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain

TargetLike = int | str | Mapping[str, int] | Iterable[str]


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
    if isinstance(target, bool):
        raise UsageError(f"{target!r} is no target", remedy="give an opset version such as 17")
    if isinstance(target, int):
        return _checked({DEFAULT_DOMAIN: target}, None, registry)
    if isinstance(target, Mapping):
        return _checked({canonical_domain(d): v for d, v in target.items()}, None, registry)
    opsets: dict[str, int] = {}
    ir_version = None
    for text in (target,) if isinstance(target, str) else target:
        named, ir = _read_text(str(text).strip(), registry)
        twice = next((domain for domain in named if opsets.get(domain, named[domain]) != named[domain]), None)
        if twice:
            raise UsageError(
                f"{twice} has two targets, {opsets[twice]} and {named[twice]}", remedy="give one"
            )
        opsets |= named
        ir_version = ir or ir_version
    if not opsets:
        raise UsageError("no target is given", remedy="give an opset version such as 17")
    return _checked(opsets, ir_version, registry)


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
    return text.removeprefix("-").isdecimal()


def _checked(opsets: Mapping[str, int], ir_version: int | None, registry: Registry) -> Target:
    for domain, opset in opsets.items():
        newest = registry.newest_opset(domain)
        if not 1 <= opset <= newest:
            raise UnknownOpset(
                f"there is no opset {opset} of {domain}", remedy=f"the registry knows opsets 1 to {newest}"
            )
    return Target(dict(opsets), ir_version)
