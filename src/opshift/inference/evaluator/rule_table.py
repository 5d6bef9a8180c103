"""Table of rules (functions that evaluate nodes of an operator), and the node class passed to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from math import prod
from typing import Any, TypeAlias

from opshift.inference.evaluator.elements import Dims, Elements
from opshift.inference.facts import InferenceScope
from opshift.model.node import Node, Tensor
from opshift.model.types import MAX_RANK, Symbol
from opshift.registry.models import OperatorVersion

MAX_ELEMENTS = 1 << 16
"""Maximum number of elements of an evaluated value."""

SMALL_SIZE = 64
"""Number of elements up to which values are always evaluated; larger values use up a budget per model."""

Outputs = Sequence[Elements | None]
"""Elements of the outputs of a node, by position; outputs with `None` or without an entry are unknown."""

Rule: TypeAlias = "Callable[[EvaluatedNode], Outputs]"

MODULES = {
    "elementwise": (
        "Abs", "Add", "And", "Ceil", "Div", "Equal", "Floor", "Greater", "GreaterOrEqual", "Less",
        "LessOrEqual", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "ReduceMax", "ReduceMin", "ReduceProd",
        "ReduceSum", "Sub", "Where", "Xor",
    ),
    "movement": (
        "Concat", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile",
        "Transpose", "Unsqueeze",
    ),
    "creation": ("Cast", "CastLike", "ConstantOfShape", "NonZero", "Range", "Shape", "Size"),
}  # fmt: skip
"""Operators with a rule, by module of this package; a module is imported when a model needs its rules."""

EVALUATED = {op_type: module for module, op_types in MODULES.items() for op_type in op_types}
"""Module that contains the rule, by operator."""

SHAPE_READERS = {"Shape": (), "Size": (), "CastLike": (0,)}
"""Positions of the inputs whose elements a rule reads, by operator; a missing operator reads all inputs."""

COPYING = frozenset(
    {"Flatten", "Gather", "Identity", "Reshape", "Shape", "Size", "Slice", "Split", "Squeeze", "Unsqueeze"}
)
"""Operators with rules that only copy, share or ignore the elements of the first input."""

_RULES: dict[str, Rule] = {}


class UnknownValue(Exception):
    """Exception: a rule does not determine the outputs of a node."""


class EvaluatedNode:
    """Node with the known elements of its inputs."""

    def __init__(
        self,
        node: Node,
        operator: OperatorVersion,
        scope: InferenceScope,
        inputs: Sequence[Elements | None],
    ) -> None:
        self.node = node
        self.version = operator
        self.scope = scope
        self.inputs = inputs

    def elements(self, position: int) -> Elements:
        """Return the elements of an input; raise `UnknownValue` if they are unknown."""
        found = self.inputs[position] if position < len(self.inputs) else None
        if found is None:
            raise UnknownValue
        return found

    def integers(self, position: int) -> tuple[int, ...]:
        """Return the elements of an integer input; raise `UnknownValue` if one is unknown or a symbol."""
        values = self.elements(position).values
        if not all(isinstance(each, int) and type(each) is not Symbol for each in values):
            raise UnknownValue
        return values

    def setting(self, name: str) -> tuple[int, ...] | None:
        """Return the integers in an input or, in other operator versions, an attribute; `None` if omitted.

        Raise `UnknownValue` for other elements.
        """
        named = self.version.input_named(name)
        if named and self.node.input(named[0]):
            values = self.elements(named[0]).values
            # The input `split` of Split-1 has the element type of the data, which is a float type.
            if all(isinstance(each, float) and each.is_integer() for each in values):
                return tuple(map(int, values))
            return self.integers(named[0])
        found = self.node.attribute(name) if name in self.version.attributes else None
        if found is None or not isinstance(found, tuple | list):
            return self.reject() if found is not None else None
        return tuple(found) if all(isinstance(each, int) for each in found) else self.reject()

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an integer attribute, or else `default`; raise `UnknownValue` if this is not an integer."""
        found = self.node.attribute(name, default)
        if not isinstance(found, int):
            raise UnknownValue
        return found

    def axis(self, name: str, rank: int, default: int | None = None) -> int:
        """Return the axis in an attribute as a non-negative number; raise `UnknownValue` if out of range."""
        return axis_of(self.integer(name, default), rank)

    def reject(self) -> Any:
        """Raise `UnknownValue`; expressions call this method, because they cannot contain `raise`."""
        raise UnknownValue

    def require_size(self, dims: Dims) -> None:
        """Raise `UnknownValue` if a shape is invalid or too large, or exceeds the model's element budget."""
        count = prod(dims) if min(dims, default=0) >= 0 else MAX_ELEMENTS + 1
        if count > MAX_ELEMENTS or len(dims) > MAX_RANK:
            raise UnknownValue
        if count > SMALL_SIZE and not self.scope.evaluation.spend(count):
            raise UnknownValue

    def count_read_elements(self) -> int:
        """Return the number of elements read from inputs with more than `SMALL_SIZE` elements."""
        read = self.inputs[1:] if self.node.op_type in COPYING else self.inputs
        counts = (len(each.values) for each in read if each is not None)
        return sum(each for each in counts if each > SMALL_SIZE)

    def reshaped(self, elements: Elements, dims: Dims) -> Elements:
        """Return elements with the shape `dims`; raise `UnknownValue` if it is invalid or they do not fit."""
        if prod(dims) != len(elements.values) or min(dims, default=0) < 0 or len(dims) > MAX_RANK:
            raise UnknownValue
        return Tensor(elements.element_type, dims, elements.values)


def axis_of(axis: int, rank: int) -> int:
    """Return an axis as a non-negative number; raise `UnknownValue` if the axis is out of range."""
    if not -rank <= axis < rank:
        raise UnknownValue
    return axis % rank


def axes_of(axes: Sequence[int], rank: int) -> list[int]:
    """Return axes as non-negative numbers; raise `UnknownValue` if one repeats or is out of range."""
    found = [axis_of(axis, rank) for axis in axes]
    if len(set(found)) < len(found):
        raise UnknownValue
    return found


def rule(*op_types: str) -> Callable[[Rule], Rule]:
    """Register the decorated function as the rule of the operators `op_types`."""

    def register(function: Rule) -> Rule:
        _RULES.update(dict.fromkeys(op_types, function))
        return function

    return register


def evaluate(node: EvaluatedNode) -> Outputs:
    """Apply the rule of a node's operator; return `()` if the outputs are unknown.

    They are also unknown if the number of inputs is invalid, or the model's element budget is exhausted.
    """
    if not node.version.min_input <= len(node.inputs) <= node.version.max_input:
        return ()
    op_type = node.node.op_type
    if not node.scope.evaluation.spend(node.count_read_elements()):
        return ()
    if op_type not in _RULES:
        import_module(f"opshift.inference.evaluator.{EVALUATED[op_type]}")
    try:
        return _RULES[op_type](node)
    except UnknownValue:
        return ()
