"""Operators as people type them: `Conv`, `Softmax:11`, `ai.onnx.ml.LabelEncoder`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opshift.converter.errors import UsageError
from opshift.registry.errors import UnknownOperator
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain

if TYPE_CHECKING:
    from opshift.registry.catalogue import Registry
    from opshift.registry.models import OperatorVersion


class Named(NamedTuple):
    """What was typed; `None` for a part that was not."""

    op_type: str
    domain: str | None
    opset: int | None


def read_name(text: str, domain: str | None, opset: int | None) -> Named:
    """An operator's name, with what the options add to it.

    Raises:
        UsageError: the name is none, or says something else than the options.
    """
    qualified, colon, version = text.partition(":")
    prefix, _, op_type = qualified.rpartition(".")
    if not op_type or (colon and not version.isdecimal()):
        raise UsageError(
            f"{text!r} is no operator", remedy="write it as Conv, Softmax:11 or ai.onnx.Softmax:11"
        )
    if prefix and domain is not None and prefix != canonical_domain(domain):
        raise UsageError(f"{text!r} is not of --domain {domain}", remedy="leave one of them out")
    if colon and opset is not None and int(version) != opset:
        raise UsageError(f"{text!r} is not of --opset {opset}", remedy="leave one of them out")
    return Named(op_type, prefix or domain, int(version) if colon else opset)


def find(named: Named, registry: Registry) -> OperatorVersion:
    """The version in force, by default at the newest opset.

    Raises:
        ResolveError: there is none.
    """
    try:
        return registry.get_schema(named.op_type, named.opset, named.domain or DEFAULT_DOMAIN)
    except UnknownOperator as error:
        others = [] if named.domain else homes(named.op_type, registry)
        if others:
            error.remedy = f"it is an operator of {' and '.join(others)}: say --domain {others[0]}"
        raise


def homes(op_type: str, registry: Registry) -> list[str]:
    """The domains that have an operator of this name."""
    return [domain for domain in registry.domains() if op_type in registry.names(domain)]
