"""Operators as named on the command line: `Conv`, `Softmax:11`, `ai.onnx.ml.LabelEncoder`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opshift.converter.errors import UsageError
from opshift.registry.errors import UnknownOperator
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain

if TYPE_CHECKING:
    from opshift.registry.catalogue import Registry
    from opshift.registry.models import OperatorVersion


class Named(NamedTuple):
    """Parsed name of an operator; the parts that were not given are `None`."""

    op_type: str
    domain: str | None
    opset: int | None


def read_name(text: str, domain: str | None, opset: int | None) -> Named:
    """Parse the name of an operator, and complete it with the options --domain and --opset.

    Raises:
        UsageError: the name is malformed or contradicts an option.
    """
    qualified, colon, version = text.partition(":")
    prefix, _, op_type = qualified.rpartition(".")
    if not op_type or (colon and not version.isdecimal()):
        raise UsageError(
            f"invalid operator name {text!r}", remedy="write it as Conv, Softmax:11 or ai.onnx.Softmax:11"
        )
    if prefix and domain is not None and prefix != canonical_domain(domain):
        raise UsageError(f"{text!r} contradicts --domain {domain}", remedy="remove one of them")
    if colon and opset is not None and int(version) != opset:
        raise UsageError(f"{text!r} contradicts --opset {opset}", remedy="remove one of them")
    return Named(op_type, prefix or domain, int(version) if colon else opset)


def find(named: Named, registry: Registry) -> OperatorVersion:
    """Return the operator version that an opset contains, by default the newest opset.

    Raises:
        ResolveError: the opset does not contain the operator.
    """
    try:
        return registry.get_schema(named.op_type, named.opset, named.domain or DEFAULT_DOMAIN)
    except UnknownOperator as error:
        domains = [] if named.domain else homes(named.op_type, registry)
        if domains:
            error.remedy = f"use --domain {domains[0]}: the operator belongs to {' and '.join(domains)}"
        raise


def homes(op_type: str, registry: Registry) -> list[str]:
    """Return the domains that have an operator of this name."""
    return [domain for domain in registry.domains() if op_type in registry.names(domain)]
