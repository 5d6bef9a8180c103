"""What to convert to: opsets by domain, and an IR version if the target names one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from opshift.converter.errors import UsageError
from opshift.registry.catalogue import Registry
from opshift.registry.errors import OpshiftError, UnknownOpset
from opshift.registry.ir_versions import ir_versions
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain

KEEP: Literal["keep"] = "keep"
IrVersionLike = int | str | None
TargetLike = int | str | Mapping[str, int] | Iterable[str]
EXAMPLE = "give an opset version such as 17"
MOST_DIGITS = 20
"""More than any opset version has."""


@dataclass(frozen=True)
class Target:
    """What to convert to.

    Attributes:
        opsets: by domain, spelled as the registry does.
        ir_version: the newest that the named release takes.
        wanted_ir_version: what the caller asks for, or `KEEP`.
    """

    opsets: Mapping[str, int]
    ir_version: int | None = None
    wanted_ir_version: int | Literal["keep"] | None = None


def read_target(target: TargetLike | None, registry: Registry, ir_version: IrVersionLike = None) -> Target:
    """Read an int (default domain), a mapping, `"17"`, `"ai.onnx.ml=3"`, `"onnx-1.12"`, or several of these.

    `ir_version` is a number or `"keep"`; with it there need not be a target, and the opsets stay.

    Raises:
        UsageError: it is none of these, or names one domain twice.
        UnknownOpset: an opset is below 1, or newer than the registry knows.
        UnknownDomain: the registry has no definitions for a domain.
    """
    opsets: dict[str, int] = {}
    newest = None
    wanted = read_ir_version(ir_version)
    for named, ir in _parts(() if target is None else target, registry):
        for domain, opset in named.items():
            if opsets.setdefault(canonical_domain(domain), opset) != opset:
                both = f"{opsets[canonical_domain(domain)]} and {opset}"
                raise UsageError(f"{canonical_domain(domain)} has two targets, {both}", remedy="give one")
        newest = min(filter(None, (ir, newest)), default=None)
    if not opsets and (wanted is None or target is not None):
        raise UsageError("no target is given", remedy=EXAMPLE)
    return Target(_checked(opsets, registry), newest, wanted)


def read_ir_version(wanted: IrVersionLike) -> int | Literal["keep"] | None:
    """Read a number, also as text, or `"keep"`.

    Raises:
        UsageError: it is neither, or no IR version that a model can be converted to.
    """
    if wanted is None or wanted == KEEP:
        return wanted and KEEP
    known = ir_versions()
    text = str(wanted).strip()
    if not _is_number(text) or int(text) not in known.versions:
        remedy = f"give one of {known.oldest} to {known.newest}, or keep"
        raise UsageError(f"{wanted!r} is no IR version to convert to", remedy=remedy)
    return int(text)


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


def _checked(opsets: Mapping[str, Any], registry: Registry) -> dict[str, int]:
    for domain, opset in opsets.items():
        if not isinstance(opset, int) or isinstance(opset, bool):
            raise UsageError(f"{opset!r} is no opset version of {domain}", remedy=EXAMPLE)
        newest = registry.newest_opset(domain)
        if not 1 <= opset <= newest:
            raise UnknownOpset(
                f"there is no opset {opset} of {domain}", remedy=f"the registry knows opsets 1 to {newest}"
            )
    return dict(opsets)
