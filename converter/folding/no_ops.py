"""Nodes that return an input unchanged, and reshaping nodes that a later Reshape makes unnecessary."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from opshift.inference.constants import INTEGER_RANGES
from opshift.inference.evaluator.rule_table import MAX_ELEMENTS
from opshift.inference.scope import Scope
from opshift.inference.symbols import is_symbol
from opshift.model.element_types import BY_NUMBER
from opshift.model.graphs import NodeRecord
from opshift.model.node import Node, Tensor
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.tensors import element_count
from opshift.model.types import Shape

Test: TypeAlias = Callable[[Node, Scope, int], bool]
"""Function (node, scope, version) that returns whether the node returns its first input unchanged."""

DROPOUT_WITHOUT_ATTRIBUTE_SINCE = 7
"""First version of Dropout that has no attribute `is_test`."""


BROADCAST_SINCE = 7
"""First version of arithmetic operators that broadcasts both operands as in NumPy."""


def unchanged_input(node: Node, scope: Scope) -> str | None:
    """Return the input that a node of the default domain always returns unchanged, or `None`."""
    operator = scope.operator(node.op_type, node.domain)
    if operator is None or node.has_attribute_references or not node.input(0) or any(node.outputs[1:]):
        return None
    if node.op_type in NEUTRAL_OPERANDS:
        return _other_operand(node, scope) if operator.since_version >= BROADCAST_SINCE else None
    test = TESTS.get(node.op_type)
    return node.input(0) if test is not None and test(node, scope, operator.since_version) else None


def reshaped_source(node: Node, scope: Scope) -> str | None:
    """Return the value that a Reshape can read directly, without the reshaping nodes before it.

    Return `None` without a reshaping node before it, or if a 0 in the new shape may copy a size of the first
    input. A value with other readers is not skipped: this would save no node, and hide the producer.
    """
    if node.has_attribute_references or len(node.inputs) != 2:
        return None
    if not node.attribute("allowzero", 0):
        sizes = scope.elements(node.inputs[1])
        if sizes is None or not all(each and not is_symbol(each) for each in sizes.values):
            return None
    source = node.inputs[0]
    while (record := scope.producing_records.get(source)) is not None and _is_reshape(record, scope):
        if not _has_only_reshapes(source, scope):
            break
        source = record[3][0]
    return source if source != node.inputs[0] else None


def _has_only_reshapes(value: str, scope: Scope) -> bool:
    """Return whether all uses of a value are nodes of its graph that change its shape or become constants."""
    is_read_outside = value in scope.outputs or scope.is_captured(value) or scope.is_read_indirectly(value)
    return not is_read_outside and all(
        _is_reshape(each, scope) or all(scope.constant(name) for name in each[4] if name)
        for each in scope.readers(value)
    )


def _is_reshape(record: NodeRecord, scope: Scope) -> bool:
    """Return whether a node changes only the shape of its first input."""
    _, domain, op_type, inputs, _ = record
    is_standard = canonical_domain(domain) == DEFAULT_DOMAIN and not scope.is_call(record)
    return is_standard and op_type in RESHAPES and bool(inputs and inputs[0])


def _other_operand(node: Node, scope: Scope) -> str | None:
    """Return the operand that equals the result, such as `X` in `Mul(X, 1)`; `None` if it is unknown."""
    number, is_commutative = NEUTRAL_OPERANDS[node.op_type]
    first, second = node.inputs
    for value, neutral in ((first, second), (second, first))[: 1 + is_commutative]:
        dims = scope.shape(neutral)
        if dims is None or not _keeps_shape_of(value, dims, scope):
            continue
        found = None if _has_different_bytes(neutral, scope) else scope.constant(neutral)
        if found is not None and _is_filled_with(number, found, node.op_type):
            return value
    return None


def _has_different_bytes(name: str, scope: Scope) -> bool:
    """Return whether the bytes of an initializer show that its elements differ.

    The initializer is not decoded: decoding all weights would spend the budget of evaluated elements.
    """
    stored = scope.initializer(name)
    raw, count = (b"", None) if stored is None else (stored.raw_data, element_count(stored))
    size = len(raw) // count if count else 0
    return size > 0 and raw != raw[:size] * (count or 0)


def _keeps_shape_of(value: str, dims: Shape, scope: Scope) -> bool:
    """Return whether broadcasting with `dims` (at most `MAX_ELEMENTS` elements) surely keeps a shape."""
    shape = scope.shape(value)
    if shape is None or len(dims) > len(shape):
        return False
    count = 1
    for size, other in zip(reversed(shape), reversed(dims), strict=False):
        if other is None or other not in (1, size):
            return False
        count *= other
    return count <= MAX_ELEMENTS


def _is_filled_with(number: int, tensor: Tensor, op_type: str) -> bool:
    """Return whether all elements are neutral: equal to `number`, with the right sign for float zeros."""
    if not all(each == number for each in tensor.values):
        return False
    if number or tensor.element_type in INTEGER_RANGES:
        return True
    # Only -0.0 is neutral for Add, and only 0.0 for Sub: -0.0 + 0.0 and -0.0 - -0.0 give 0.0, not -0.0.
    sign = -1 if op_type == "Add" else 1
    return all(isinstance(each, float) and math.copysign(1, each) == sign for each in tensor.values)


def _always_unchanged(node: Node, scope: Scope, version: int) -> bool:
    return True


def _has_one_input(node: Node, scope: Scope, version: int) -> bool:
    return len(node.inputs) == 1


def _keeps_shape(node: Node, scope: Scope, version: int) -> bool:
    """Return whether the shapes of input and output are known to be equal in every run."""
    before = scope.symbolic_shape(node.input(0))
    return before is not None and None not in before and before == scope.symbolic_shape(node.output(0))


def _casts_to_same_type(node: Node, scope: Scope, version: int) -> bool:
    # Only numbers are compared: in version 1, the attribute `to` is the name of the type.
    kind = BY_NUMBER.get(node.attribute("to")) if isinstance(node.attribute("to"), int) else None
    return kind is not None and kind.name == scope.element_type(node.input(0))


def _casts_like_same_type(node: Node, scope: Scope, version: int) -> bool:
    source = scope.element_type(node.input(0))
    return source is not None and source == scope.element_type(node.input(1))


def _keeps_axes(node: Node, scope: Scope, version: int) -> bool:
    axes = node.attribute("perm")
    if axes:  # onnx.reference treats an empty list like an absent attribute.
        return tuple(axes) == tuple(range(len(axes)))
    rank = scope.rank(node.input(0))
    return rank is not None and rank <= 1


def _slices_everything(node: Node, scope: Scope, version: int) -> bool:
    """Return whether a Slice surely keeps the shape, without a negative step, which would reverse an axis."""
    steps = scope.constant(node.input(4)) if node.input(4) else None
    is_forward = not node.input(4) or (steps is not None and all(each > 0 for each in steps.values))
    return is_forward and _keeps_shape(node, scope, version)


def _pads_nothing(node: Node, scope: Scope, version: int) -> bool:
    """Return whether all pads are known to be 0; equal shapes do not suffice: pads may be negative."""
    if node.input(1):
        pads = scope.constant(node.input(1))
        return pads is not None and not any(pads.values)
    given = node.attribute("pads", node.attribute("paddings"))
    return given is not None and not any(given)


def _drops_nothing(node: Node, scope: Scope, version: int) -> bool:
    """Return whether a Dropout surely runs in inference mode."""
    if version < DROPOUT_WITHOUT_ATTRIBUTE_SINCE:
        return bool(node.attribute("is_test", 0))
    if not node.input(2):
        return True
    mode = scope.constant(node.input(2))
    return mode is not None and not any(mode.values)


RESHAPES = frozenset(("Flatten", "Reshape", "Squeeze", "Unsqueeze"))
"""Operators that change only the shape of their first input."""

NEUTRAL_OPERANDS = {"Add": (0, True), "Div": (1, False), "Mul": (1, True), "Sub": (0, False)}
"""Neutral second operand of each operator, and whether it is also neutral as the first operand."""

TESTS: dict[str, Test] = {
    "Identity": _always_unchanged,
    "Dropout": _drops_nothing,
    "Cast": _casts_to_same_type,
    "CastLike": _casts_like_same_type,
    "Transpose": _keeps_axes,
    "Slice": _slices_everything,
    "Pad": _pads_nothing,
    **dict.fromkeys(("Concat", "Max", "Mean", "Min", "Sum"), _has_one_input),
    **dict.fromkeys(("Expand", "Flatten", "Reshape", "Squeeze", "Tile"), _keeps_shape),
}
"""Tests, by operator, of whether a node returns its first input unchanged."""
