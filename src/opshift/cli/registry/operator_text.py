"""Operators as named on the command line: `Conv`, `Softmax:11`, `ai.onnx.ml.LabelEncoder`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from opshift.model.errors import UsageError
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.registry.diff import Change
from opshift.registry.errors import UnknownOperator

if TYPE_CHECKING:
    from opshift.registry.models import OperatorVersion
    from opshift.registry.registry import Registry
    from opshift.registry.type_sets import TypeSets


class OperatorReference(NamedTuple):
    """Parsed name of an operator; the parts that were not given are `None`."""

    op_type: str
    domain: str | None
    opset: int | None


def parse_operator(text: str, domain: str | None, opset: int | None) -> OperatorReference:
    """Parse the name of an operator, and complete it with the options --domain and --opset."""
    qualified, colon, version = text.partition(":")
    prefix, _, op_type = qualified.rpartition(".")
    if not op_type or (colon and not version.isdecimal()):
        remedy = "write it as Conv, Softmax:11 or ai.onnx.Softmax:11"
        raise UsageError(f"invalid operator name {text!r}", remedy=remedy)
    if prefix and domain is not None and prefix != canonical_domain(domain):
        raise UsageError(f"{text!r} contradicts --domain {domain}", remedy="remove one of them")
    if colon and opset is not None and int(version) != opset:
        raise UsageError(f"{text!r} contradicts --opset {opset}", remedy="remove one of them")
    return OperatorReference(op_type, prefix or domain, int(version) if colon else opset)


def find_version(named: OperatorReference, registry: Registry) -> OperatorVersion:
    """Return the operator version that an opset contains, by default the newest opset."""
    try:
        return registry.get_schema(named.op_type, named.opset, named.domain or DEFAULT_DOMAIN)
    except UnknownOperator as error:
        domains = [] if named.domain else domains_with(named.op_type, registry)
        if domains:
            error.remedy = f"use --domain {domains[0]}: the operator belongs to {' and '.join(domains)}"
        raise


def domains_with(op_type: str, registry: Registry) -> list[str]:
    """Return the domains that have an operator of this name."""
    return [domain for domain in registry.domains() if op_type in registry.names(domain)]


_WRAPPED = re.compile(r"((?:\w+\()*)([^()]*)(\)*)")

MAX_PLAIN_TYPES = 4
"""Maximum number of types that are listed without their number and the name of their set."""


def format_types(types: Iterable[str]) -> str:
    """Join types; those of one kind share its brackets, as in `tensor(double, float), seq(tensor(float))`."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for text in sorted(types):
        match = _WRAPPED.fullmatch(text)
        opening, element, closing = match.groups() if match else ("", text, "")
        kinds.setdefault((opening, closing), []).append(element)
    return ", ".join(f"{opening}{', '.join(each)}{closing}" for (opening, closing), each in kinds.items())


def summarize_types(types: tuple[str, ...], sets: TypeSets) -> str:
    """Join types; more than `MAX_PLAIN_TYPES` are preceded by their number and the name of an equal set."""
    if len(types) <= MAX_PLAIN_TYPES:
        return format_types(types)
    name = next((name for name in sets.names() if sets.expand(name) == tuple(sorted(types))), None)
    return f"{len(types)} types{f', {name}' if name else ''}: {format_types(types)}"


def change_text(change: Change) -> str:
    """Return a change as one line; a change of types lists the added and removed types only.

    Example: `input types: X: also tensor(bfloat16)`.
    """
    if not change.kind.endswith("_types"):
        return str(change)
    types = types_change_text(change.new - change.old, change.old - change.new)
    return f"{change.kind.replace('_', ' ')}: {change.subject}: {types}"


def types_change_text(added: Iterable[str], removed: Iterable[str], verb: str = "") -> str:
    """Return a change of types, such as `also tensor(double), no longer tensor(float)`."""
    parts = [f"also {verb}{format_types(added)}"] if added else []
    parts += [f"no longer {verb}{format_types(removed)}"] if removed else []
    return ", ".join(parts)
