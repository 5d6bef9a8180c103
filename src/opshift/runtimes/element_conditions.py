"""Conditions on the elements of values."""

from __future__ import annotations

from collections.abc import Collection

from opshift.inference.constants import INTEGER_RANGES
from opshift.inference.facts import InferenceScope
from opshift.runtimes.model_nodes import ModelNode


def elements_are(name: str, elements: Collection[object], node: ModelNode) -> bool | None:
    """Return whether all elements of a present input are in `elements`; `None` if it is not constant."""
    if name not in node.values:
        return False
    constant = node.scope.constant(node.values[name])
    return None if constant is None else set(constant.values) <= set(elements)


def has_negative(name: str, node: ModelNode) -> bool | None:
    """Return whether a present input has a negative element; `None` if it is not constant."""
    if name not in node.values:
        return False
    constant = node.scope.constant(node.values[name])
    return None if constant is None else any(each < 0 for each in constant.values)


def may_exceed_int32(value: str, node: ModelNode) -> bool:
    """Return whether integers may be outside the range of int32; results of sizes alone count as inside."""
    kept = INTEGER_RANGES["int32"]
    constant = node.scope.constant(value)
    if constant is not None:
        return not all(each in kept for each in constant.values)
    bounds = node.scope.element_bounds(value)
    if bounds is not None and bounds.low in kept and bounds.high in kept:
        return False
    # ignore values that depend on sizes alone: a tensor with a size of 2 ** 31 is too large in practice
    return not node.constants.contain(node.scope, value, knows_sizes=True)


def differ(value: str, scope: InferenceScope) -> bool | None:
    """Return whether some elements of a value differ; `None` if this is unknown."""
    constant, shape = scope.constant(value), scope.shape(value)
    if constant is not None:
        return len(set(constant.values)) > 1
    return False if shape is not None and all(size == 1 for size in shape) else None
