"""Parse operator names of the command line, such as `Conv`, `Softmax:11` or `ai.onnx.ml.LabelEncoder`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opshift.model.errors import UsageError
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.registry.errors import UnknownOperator

if TYPE_CHECKING:
    from opshift.registry.models import OperatorVersion
    from opshift.registry.registry import Registry


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
    """Return the operator version in effect at `named.opset`, by default at the newest opset."""
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
