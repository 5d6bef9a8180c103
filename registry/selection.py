"""Queries over all operators: select versions by name, status, type, parameter, attribute and change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from types import UnionType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, get_args

from opshift.model.element_types import BY_NAME
from opshift.model.errors import UsageError
from opshift.model.message_text import did_you_mean
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.registry.errors import UnknownOperator

if TYPE_CHECKING:
    from opshift.registry.models import Operator, OperatorVersion, Parameter
    from opshift.registry.registry import Registry

Status = Literal["active", "preview", "deprecated", "removed"]
STATUSES: Final[tuple[Status, ...]] = get_args(Status)

Versions = Literal["current", "first", "all"]
VERSIONS: Final[tuple[Versions, ...]] = get_args(Versions)

PREVIEW_DOMAIN: Final = "ai.onnx.preview"
"""ONNX's domain for operators in preview, which has subdomains such as `ai.onnx.preview.training`."""

NUMPY_TYPES: Final = {"tensor(float32)": "tensor(float)", "tensor(float64)": "tensor(double)"}
"""Types with NumPy's names, mapped to ONNX's names: `did_you_mean` would suggest another type."""


class Filters(NamedTuple):
    """Properties that an operator version must have, see `Registry.select`; `None` accepts any."""

    accepts: str | None
    produces: str | None
    parameter: str | None
    attribute: str | None
    function: bool | None

    def match(self, version: OperatorVersion) -> bool:
        """Return whether a version has all properties."""
        inputs, outputs = version.inputs, version.outputs
        return (
            (self.accepts is None or self._has_type(version, inputs, self.accepts))
            and (self.produces is None or self._has_type(version, outputs, self.produces))
            and (self.parameter is None or self.parameter in {each.name for each in inputs + outputs})
            and (self.attribute is None or self.attribute in version.attributes)
            and (self.function is None or self.function == version.has_function)
        )

    def _has_type(self, version: OperatorVersion, parameters: Iterable[Parameter], kind: str) -> bool:
        named = (each for each in parameters if self.parameter in (None, each.name))
        return any(kind in version.types_of(each) for each in named)


def select(
    registry: Registry,
    name: str,
    filters: Filters,
    domain: str | None,
    opset: int | None,
    versions: Versions,
    status: Status | Collection[Status] | None,
    changed: tuple[int, int] | None,
) -> tuple[OperatorVersion, ...]:
    """Return the operator versions that match all filters, see `Registry.select`."""
    _require_kind(str, "a string", name)
    _require_kind(str | None, "a string", domain, *filters[:-1])
    _require_kind(bool | None, "True, False or None", filters.function)
    _require_choice("choice of versions", versions, VERSIONS)
    statuses = _parse_statuses(status) or (STATUSES if changed else STATUSES[:-1])
    filters = filters._replace(accepts=_full_type(filters.accepts), produces=_full_type(filters.produces))
    pair = None if changed is None else _opset_pair(changed)
    opsets = opsets_at(registry, domain, pair[-1] if pair and opset is None else opset)
    operators = _operators(registry, opsets, name)
    if pair:
        old, new = (opsets_at(registry, domain, each) for each in pair)
        operators = (each for each in operators if _version_at(old, each) is not _version_at(new, each))
    found: list[OperatorVersion] = []
    for operator in operators:
        at = opsets[operator.domain]
        listed = [each for each in operator.versions if each.since_version <= at]
        matching = [
            each
            for each in (listed[-1:] if versions == "current" else listed)
            if status_at(at, each, operator) in statuses and filters.match(each)
        ]
        found += matching[:1] if versions == "first" else matching
    if not found:
        _require_known_names(registry, domain, name, filters)
    return tuple(found)


def opsets_at(registry: Registry, domain: str | None, opset: int | None) -> dict[str, int]:
    """Return the opset of `domain` or, without a domain, of each domain; by default the newest opsets.

    Without a domain, `opset` is an opset of `ai.onnx`: ONNX's other domains get the opsets of the release
    that introduced this opset, and domains outside ONNX get their newest opsets.

    Raises:
        UnknownDomain, UnknownOpset: the registry lacks the domain or the opset.
    """
    canonical = canonical_domain(domain or "")
    if opset is not None:
        _require_kind(int, "an opset", opset)
        registry.require_opset(opset, canonical)
    if domain is not None:
        return {canonical: opset or registry.newest_opset(canonical)}
    newest = {each: registry.newest_opset(each) for each in registry.domains()}
    release = registry.releases.first_release_with(DEFAULT_DOMAIN, opset) if opset else None
    if opset is None or release is None:
        return newest
    released = {each for onnx_release in registry.releases.onnx.values() for each in onnx_release.opsets}
    added = {each: at for each, at in newest.items() if each not in released}
    return {**release.opsets, DEFAULT_DOMAIN: opset, **added}


def status_at(opset: int, version: OperatorVersion, operator: Operator) -> Status:
    """Return the status of an operator version at an opset that is not older than the version."""
    if operator.at(opset) is None:
        return "removed"
    if version.deprecated:
        return "deprecated"
    is_preview = f"{version.domain}.".startswith(f"{PREVIEW_DOMAIN}.")
    return "preview" if is_preview or version.status == "EXPERIMENTAL" else "active"


def _version_at(opsets: Mapping[str, int], operator: Operator) -> OperatorVersion | None:
    return operator.at(opsets.get(operator.domain, 0))


def _operators(registry: Registry, opsets: Mapping[str, int], pattern: str) -> Iterator[Operator]:
    """Yield the operators with a matching name; in each domain, operators that the opset lacks are last."""
    for domain, opset in opsets.items():
        names = (each for each in registry.names(domain) if fnmatchcase(each, pattern))
        named = filter(None, (registry.operator(each, domain) for each in names))
        yield from sorted(named, key=lambda each: each.at(opset) is None)


def _full_type(text: str | None) -> str | None:
    """Return a type as definitions write it, such as `tensor(int8)` for `int8`; `None` stays `None`."""
    return text if text is None or "(" in text else f"tensor({text})"


def _parse_statuses(status: str | Collection[str] | None) -> Collection[str]:
    statuses = (status,) if isinstance(status, str) else tuple(status or ())
    for each in statuses:
        _require_choice("status", each, STATUSES)
    return statuses


def _opset_pair(changed: Sequence[int]) -> tuple[int, int]:
    match changed:
        case (int(old), int(new)) if old < new:
            return old, new
    raise UsageError(
        f"expected an older and a newer opset, got {changed!r}",
        remedy="name the older one first: changed=(13, 17), --changed 13 17",
    )


def _require_kind(kind: type | UnionType, text: str, *values: object) -> None:
    for each in values:
        if not isinstance(each, kind) or (kind is int and isinstance(each, bool)):
            raise UsageError(f"expected {text}, got {each!r}", remedy="see the arguments of Registry.select")


def _require_choice(kind: str, name: str, choices: Collection[str]) -> None:
    if name not in choices:
        raise UsageError(f"unknown {kind} {name!r}", remedy=f"use {', '.join(choices)}")


def _require_known_names(registry: Registry, domain: str | None, name: str, filters: Filters) -> None:
    """Raise UnknownOperator or UsageError if an operator, type, parameter or attribute does not exist."""
    domains = registry.domains() if domain is None else (domain,)
    names = sorted({each for domain in domains for each in registry.names(domain)})
    if name not in names and not set("*?[").intersection(name):
        remedy = did_you_mean(name, names, "check the name and its domain")
        raise UnknownOperator(f"{domain or 'the registry'} has no operator {name!r}", remedy=remedy)
    every = registry.get_all_schemas_with_history()
    parameters = [(version, each) for version in every for each in version.inputs + version.outputs]
    types = {f"tensor({each})" for each in BY_NAME}.union(*{v.types_of(each) for v, each in parameters})
    parameter_names = {each.name for _, each in parameters}
    attributes = {each for version in every for each in version.attributes}
    for kind, wanted, known in (
        ("type", filters.accepts, types),
        ("type", filters.produces, types),
        ("parameter", filters.parameter, parameter_names),
        ("attribute", filters.attribute, attributes),
    ):
        if wanted in NUMPY_TYPES:
            raise UsageError(f"unknown type {wanted!r}", remedy=f"use {NUMPY_TYPES[wanted]}")
        if wanted is not None and wanted not in known:
            remedy = did_you_mean(wanted, sorted(known), f"`opshift show OPERATOR` lists each {kind}")
            raise UsageError(f"unknown {kind} {wanted!r}", remedy=remedy)
