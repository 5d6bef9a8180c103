"""Whether onnx.reference computes what a node says.

Of many operators it has the newest version alone, and computes older nodes as that one, also where the two
mean different things.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from opshift.converter.verification.parts import parts_of
from opshift.registry.catalogue import Registry
from opshift.registry.models import OperatorVersion
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain
from opshift.registry.steps import Answer, IgnoreAttribute

NEWEST = 2**31
"""The version of an implementation that does not say of which it is."""
_OF_A_VERSION = re.compile(r"_(\d+)$")


def unimplemented(model: Any, registry: Registry) -> Iterator[str]:
    """Of each operator that may be computed as a newer version of it: why that is not the same."""
    functions = {(canonical_domain(each.domain), each.name) for each in model.functions}
    calls = {
        (canonical_domain(node.domain), node.op_type, part.opsets.get(canonical_domain(node.domain), 0))
        for part in parts_of(model)
        for node in part.container.node
    }
    for domain, op_type, opset in sorted(calls):
        operator = registry.at(op_type, opset, domain)
        if operator is not None and (domain, op_type) not in functions:
            yield from _changes(operator, _implemented(operator, opset), registry)


def _changes(operator: OperatorVersion, implemented: int, registry: Registry) -> Iterator[str]:
    whole = registry.operator(operator.name, operator.domain)
    assert whole is not None
    for version in whole.versions:
        is_between = operator.since_version < version.since_version <= implemented
        if is_between and version.step is not None and not _means_the_same(version.step.up):
            yield f"it computes {operator.id} as version {version.since_version}, which means something else"


def _means_the_same(up: Answer | None) -> bool:
    """Whether every node of the older version is a node of the newer one with the same results."""
    if isinstance(up, tuple):
        return all(isinstance(verb, IgnoreAttribute) for verb in up)
    return up in (None, "compatible")


def _implemented(operator: OperatorVersion, opset: int) -> int:
    """The version that its implementation is of."""
    if operator.domain != DEFAULT_DOMAIN:
        return NEWEST
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.ops import load_op

    try:
        name = load_op("", operator.name, opset, evaluator_cls=ReferenceEvaluator).__name__
    except Exception:  # there is none, or one that depends on the node: opening the model tells
        return operator.since_version
    if name == "<lambda>":  # the function that defines this very version
        return operator.since_version
    stated = _OF_A_VERSION.search(name)
    return int(stated[1]) if stated else NEWEST
