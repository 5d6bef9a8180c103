"""Nodes that return their first input unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from opshift.inference.facts import InferenceScope
from opshift.model.element_types import BY_NUMBER
from opshift.model.node import Node

Test: TypeAlias = Callable[[Node, InferenceScope, int], bool]
"""Test of a node of the default domain, with the version of its operator: true if it changes nothing."""

DROPOUT_WITHOUT_ATTRIBUTE_SINCE = 7
"""First version of Dropout that has no attribute for training."""


def is_no_op(node: Node, scope: InferenceScope) -> bool:
    """Return whether a node of the default domain returns its first input, in every run."""
    test = TESTS.get(node.op_type)
    operator = scope.operator(node.op_type, node.domain)
    if test is None or operator is None or node.has_attribute_references or not node.input(0):
        return False
    return not any(node.outputs[1:]) and test(node, scope, operator.since_version)


def _always(node: Node, scope: InferenceScope, version: int) -> bool:
    return True


def _has_one_input(node: Node, scope: InferenceScope, version: int) -> bool:
    return len(node.inputs) == 1


def _keeps_shape(node: Node, scope: InferenceScope, version: int) -> bool:
    """Return whether the shapes of input and output are equal in every run."""
    before = scope.symbolic_shape(node.input(0))
    return before is not None and None not in before and before == scope.symbolic_shape(node.output(0))


def _casts_to_same_type(node: Node, scope: InferenceScope, version: int) -> bool:
    # Version 1 names the type, version 6 has its number.
    kind = BY_NUMBER.get(node.attribute("to")) if isinstance(node.attribute("to"), int) else None
    return kind is not None and kind.name == scope.element_type(node.input(0))


def _casts_like_same_type(node: Node, scope: InferenceScope, version: int) -> bool:
    source = scope.element_type(node.input(0))
    return source is not None and source == scope.element_type(node.input(1))


def _keeps_axes(node: Node, scope: InferenceScope, version: int) -> bool:
    axes = node.attribute("perm")
    if axes is not None:
        return tuple(axes) == tuple(range(len(axes)))
    rank = scope.rank(node.input(0))
    return rank is not None and rank <= 1


def _slices_everything(node: Node, scope: InferenceScope, version: int) -> bool:
    """Return whether the shape stays; a negative step would reverse an axis."""
    steps = scope.constant(node.input(4)) if node.input(4) else None
    is_forward = not node.input(4) or (steps is not None and all(each > 0 for each in steps.values))
    return is_forward and _keeps_shape(node, scope, version)


def _pads_nothing(node: Node, scope: InferenceScope, version: int) -> bool:
    """Return whether all pads are 0; the shape alone could also stay if a negative one removes an element."""
    if node.input(1):
        pads = scope.constant(node.input(1))
        return pads is not None and not any(pads.values)
    given = node.attribute("pads", node.attribute("paddings"))
    return given is not None and not any(given)


def _drops_nothing(node: Node, scope: InferenceScope, version: int) -> bool:
    """Return whether a Dropout is one of inference."""
    if version < DROPOUT_WITHOUT_ATTRIBUTE_SINCE:
        return bool(node.attribute("is_test", 0))
    if not node.input(2):
        return True
    mode = scope.constant(node.input(2))
    return mode is not None and not any(mode.values)


TESTS: dict[str, Test] = {
    "Identity": _always,
    "Dropout": _drops_nothing,
    "Cast": _casts_to_same_type,
    "CastLike": _casts_like_same_type,
    "Transpose": _keeps_axes,
    "Slice": _slices_everything,
    "Pad": _pads_nothing,
    **dict.fromkeys(("Concat", "Max", "Mean", "Min", "Sum"), _has_one_input),
    **dict.fromkeys(("Expand", "Flatten", "Reshape", "Squeeze", "Tile"), _keeps_shape),
}
"""Test of each operator that may change nothing."""
