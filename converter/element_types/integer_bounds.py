"""Bounds of int64 values, to find out which fit in int32."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from opshift.inference.constants import INTEGER_RANGES
from opshift.inference.infer_types import parameter_at
from opshift.inference.scope import Scope
from opshift.model.node import Node
from opshift.model.tensors import read_tensor
from opshift.registry.models import OperatorVersion


class Bounds(NamedTuple):
    """Least and greatest possible element of a value, both included."""

    low: int
    high: int

    @property
    def fits(self) -> bool:
        """Whether int32 has all numbers between the bounds."""
        return self.low >= INT32.low and self.high <= INT32.high


INT32 = Bounds(-(2**31), 2**31 - 1)

Find = Callable[[str], Bounds | None]

SUMS: Mapping[str, Callable[[Bounds, Bounds], tuple[int, ...]]] = {
    "Add": lambda a, b: (a.low + b.low, a.high + b.high),
    "Sub": lambda a, b: (a.low - b.high, a.high - b.low),
    "Mul": lambda a, b: (a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high),
}
"""Possible extremes of the result of arithmetic on two values."""


def bounds_of_output(
    node: Node, operator: OperatorVersion, position: int, scope: Scope, find: Find
) -> Bounds | None:
    """Return the bounds of an int64 output; `None` if they are unknown.

    `find` returns the bounds of the inputs.
    """
    name = node.outputs[position]
    known = scope.constant(name) or scope.uniform_element(name)
    if known is not None:
        return _bounds_of(known.values)
    if operator.name == "Cast":
        source = scope.element_type(node.inputs[0])
        if source == "bool":
            return Bounds(0, 1)
        numbers = INTEGER_RANGES.get(source or "") if source != "int64" else None
        return Bounds(numbers[0], numbers[-1]) if numbers else find(node.inputs[0])
    if operator.name in SUMS:
        one, other = map(find, node.inputs)
        return _bounds_of(SUMS[operator.name](one, other)) if one and other else None
    formal = parameter_at(operator.outputs, position)
    if operator.bridge != "order" or formal is None:
        return None
    # such an operator selects elements of the inputs of the same type, and zeros
    found = [
        find(each)
        for place, each in enumerate(node.inputs)
        if each and (given := parameter_at(operator.inputs, place)) and given.type == formal.type
    ]
    if not found or None in found:
        return None
    return _bounds_of([0, *(limit for each in found if each for limit in each)])


def bounds_of_stored(name: str, scope: Scope) -> Bounds | None:
    """Return the bounds of an initializer; `None` if it cannot be read."""
    tensor = scope.initializer(name)
    values = read_tensor(tensor) if tensor is not None else None
    return None if values is None else _bounds_of(values.values)


def _bounds_of(numbers: tuple[int, ...] | list[int]) -> Bounds:
    return Bounds(min(numbers, default=0), max(numbers, default=0))
