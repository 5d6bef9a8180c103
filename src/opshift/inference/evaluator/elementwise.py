"""Evaluator rules of operators that combine elements: at the same position, or along axes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import cache, reduce
from typing import Any

from opshift.inference.constants import INTEGER_RANGES
from opshift.inference.evaluator import numbers
from opshift.inference.evaluator.elements import (
    Element,
    Elements,
    broadcast_dims,
    expand,
    positions,
    strides_of,
)
from opshift.inference.evaluator.numbers import FLOAT_TYPES, Operation
from opshift.inference.evaluator.rule_table import EvaluatedNode, Outputs, UnknownValue, axes_of, rule
from opshift.inference.symbols import is_symbol
from opshift.model.node import Tensor
from opshift.registry.shapes.sizes import minimum

ON_INTEGERS: dict[str, tuple[Callable[[int, int], int | None], Operation]] = {
    "Add": (operator.add, numbers.add_sizes),
    "Sub": (operator.sub, numbers.subtract_sizes),
    "Mul": (operator.mul, numbers.multiply_sizes),
    "Div": (numbers.divide_integers, numbers.divide_sizes),
    "Mod": (numbers.remainder, numbers.remainder_of_sizes),
    "FMod": (numbers.truncated_remainder, numbers.remainder_of_sizes),
    "Min": (min, minimum),
    "Max": (max, numbers.larger_size),
}
"""Two functions by operator: for integers, and for sizes if at least one is a symbol."""

ON_FLOATS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Div": operator.truediv,
}  # fmt: skip

COMPARISONS: dict[str, Operation] = {
    "Equal": numbers.EQUAL,
    "Less": numbers.LESS,
    "Greater": numbers.swapped(numbers.LESS),
    "LessOrEqual": numbers.LESS_OR_EQUAL,
    "GreaterOrEqual": numbers.swapped(numbers.LESS_OR_EQUAL),
}

LOGICAL: dict[str, Operation] = {"And": operator.and_, "Or": operator.or_, "Xor": operator.xor}

DECISIVE = {"And": False, "Or": True}
"""Maps And and Or to the element that determines the result, whatever the other element is."""


@cache
def operation_of(op_type: str, element_type: str) -> Operation:
    """Return the operation on two known elements; raise `UnknownValue` if the type has none."""
    if element_type in INTEGER_RANGES and op_type in ON_INTEGERS:
        return numbers.integer_operation(*ON_INTEGERS[op_type], element_type)
    if element_type in FLOAT_TYPES and op_type in ON_FLOATS:
        return numbers.exact_float(ON_FLOATS[op_type], element_type)
    if element_type in FLOAT_TYPES and op_type in ("Min", "Max"):
        return numbers.choose_float(min if op_type == "Min" else max)
    raise UnknownValue


def _operands(node: EvaluatedNode, first: int = 0) -> list[Elements]:
    """Return all inputs, broadcast to the same dimensions; inputs from `first` on must have equal types."""
    given = [node.elements(position) for position in range(len(node.inputs))]
    if not given or len({each.element_type for each in given[first:]}) > 1:
        raise UnknownValue
    dims = broadcast_dims([each.dims for each in given])
    is_plain = all(each.dims == dims for each in given)
    # Old versions do not broadcast, or only the second input by `broadcast`: dimensions must be equal.
    if dims is None or (
        not is_plain and (node.version.since_version < 7 or "broadcast" in node.version.attributes)
    ):
        raise UnknownValue
    node.require_size(dims)
    return [expand(each, dims) for each in given]


def _combine_elements(first: Elements, second: Elements, apply: Operation, element_type: str) -> Elements:
    values = tuple(
        [
            None if a is None or b is None else apply(a, b)
            for a, b in zip(first.values, second.values, strict=True)
        ]
    )
    return Tensor(element_type, first.dims, values)


@rule("Add", "Sub", "Mul", "Div", "Mod")
def arithmetic(node: EvaluatedNode) -> Outputs:
    """Apply an arithmetic operator; results that need rounding or overflow a signed type are unknown."""
    first, second = _operands(node)
    op_type = "FMod" if node.node.op_type == "Mod" and node.integer("fmod", 0) else node.node.op_type
    apply = operation_of(op_type, first.element_type)
    return [_combine_elements(first, second, apply, first.element_type)]


@rule("Min", "Max")
def extremum(node: EvaluatedNode) -> Outputs:
    """Return the elementwise minimum or maximum of any number of inputs."""
    operands = _operands(node)
    if node.version.since_version < 8 and len({each.dims for each in node.inputs if each}) > 1:
        raise UnknownValue
    result = operands[0]
    apply = operation_of(node.node.op_type, result.element_type)
    for each in operands[1:]:
        result = _combine_elements(result, each, apply, result.element_type)
    return [result]


@rule(*COMPARISONS)
def compare(node: EvaluatedNode) -> Outputs:
    """Compare numbers; Equal also compares booleans and strings."""
    first, second = _operands(node)
    return [_combine_elements(first, second, COMPARISONS[node.node.op_type], "bool")]


@rule(*LOGICAL)
def logical(node: EvaluatedNode) -> Outputs:
    """Combine booleans by And, Or or Xor; for And and Or, one decisive element determines the result."""
    first, second = _operands(node)
    if first.element_type != "bool":
        raise UnknownValue
    apply, decisive = LOGICAL[node.node.op_type], DECISIVE.get(node.node.op_type)

    def combine(a: Element, b: Element) -> Element:
        if decisive is not None and decisive in (a, b):
            return decisive
        return None if a is None or b is None else apply(a, b)

    return [Tensor("bool", first.dims, tuple(map(combine, first.values, second.values)))]


@rule("Where")
def where(node: EvaluatedNode) -> Outputs:
    """Choose elements; where the condition is unknown, only equal integers give a known element."""
    condition, first, second = _operands(node, first=1)
    kind = first.element_type
    if condition.element_type != "bool":
        raise UnknownValue
    values = [
        (a if chooses else b) if chooses is not None else a if a == b and kind in INTEGER_RANGES else None
        for chooses, a, b in zip(condition.values, first.values, second.values, strict=True)
    ]
    return [Tensor(kind, first.dims, tuple(values))]


@rule("Not")
def not_(node: EvaluatedNode) -> Outputs:
    """Negate booleans."""
    return _map_elements(node, ("bool",), operator.not_)


@rule("Neg")
def negate(node: EvaluatedNode) -> Outputs:
    """Negate numbers; the negation of a symbol is unknown."""
    kind = node.elements(0).element_type

    def apply(number: Any) -> Element:
        if isinstance(number, float):
            return -number
        return None if is_symbol(number) else numbers.in_range(-number, kind)

    return _map_elements(node, (*SIGNED_TYPES, *FLOAT_TYPES), apply)


@rule("Abs")
def absolute(node: EvaluatedNode) -> Outputs:
    """Return absolute values; symbols are never negative."""
    kind = node.elements(0).element_type

    def apply(number: Any) -> Element:
        if isinstance(number, float):
            return math.fabs(number)
        return number if is_symbol(number) else numbers.in_range(abs(number), kind)

    return _map_elements(node, (*INTEGER_RANGES, *FLOAT_TYPES), apply)


@rule("Floor", "Ceil")
def round_(node: EvaluatedNode) -> Outputs:
    """Round floats down (Floor) or up (Ceil); the results of infinities and NaN are unknown."""
    to_integer = math.floor if node.node.op_type == "Floor" else math.ceil

    def apply(number: float) -> float | None:
        # The sign of a zero comes from the number: Ceil of -0.5 is -0.0.
        return math.copysign(float(to_integer(number)), number) if math.isfinite(number) else None

    return _map_elements(node, FLOAT_TYPES, apply)


SIGNED_TYPES = tuple(name for name in INTEGER_RANGES if name.startswith("int"))


def _map_elements(node: EvaluatedNode, types: Sequence[str], apply: Callable[[Any], Element]) -> Outputs:
    data = node.elements(0)
    if data.element_type not in types:
        raise UnknownValue
    node.require_size(data.dims)
    values = tuple([None if each is None else apply(each) for each in data.values])
    return [Tensor(data.element_type, data.dims, values)]


OPERATIONS: dict[str, tuple[str, int | None]] = {
    "ReduceSum": ("Add", 0), "ReduceProd": ("Mul", 1), "ReduceMin": ("Min", None), "ReduceMax": ("Max", None),
}  # fmt: skip
"""By operator: the operation on two elements, and the result for no elements; `None` if undefined."""


@rule(*OPERATIONS)
def reduce_(node: EvaluatedNode) -> Outputs:
    """Reduce integers along the given axes, by default all (none if `noop_with_empty_axes` is set)."""
    data = node.elements(0)
    if data.element_type not in INTEGER_RANGES:
        raise UnknownValue
    axes = _reduced_axes(node, len(data.dims))
    if axes is None:
        return [data]
    node.require_size(data.dims)
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(data.dims))
    strides = [0 if axis in axes else stride for axis, stride in enumerate(strides_of(kept))]
    count = 1
    for size in kept:
        count *= size
    groups: list[list[Element]] = [[] for _ in range(count)]
    for target, element in zip(positions(data.dims, strides), data.values, strict=True):
        groups[target].append(element)
    values = tuple(_reduce_group(group, node.node.op_type, data.element_type) for group in groups)
    dims = (
        kept if node.integer("keepdims", 1) else tuple(s for axis, s in enumerate(kept) if axis not in axes)
    )
    return [Tensor(data.element_type, dims, values)]


def _reduced_axes(node: EvaluatedNode, rank: int) -> set[int] | None:
    """Return the axes to reduce; `None` if the operator returns its input (`noop_with_empty_axes`)."""
    given = node.setting("axes")
    if given:
        # For empty data, onnxruntime ignores `axes`, unlike the specification: the result is unknown.
        return set(axes_of(given, rank)) if node.elements(0).values else node.reject()
    # the specification does not define the meaning of an empty attribute
    if given is not None and "axes" in node.version.attributes:
        raise UnknownValue
    return None if node.integer("noop_with_empty_axes", 0) else set(range(rank))


def _reduce_group(group: list[Element], op_type: str, element_type: str) -> Element:
    name, empty = OPERATIONS[op_type]
    if not group:
        if empty is None:
            raise UnknownValue
        return empty
    apply = operation_of(name, element_type)

    def combine(first: Any, second: Any) -> Element:
        return None if first is None or second is None else apply(first, second)

    return reduce(combine, group)
