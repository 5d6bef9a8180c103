"""Rules of the evaluator by operator, and the node that a rule evaluates."""

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
"""Values with at most this many elements are always evaluated; larger ones as long as the budget lasts."""

Outputs = Sequence[Elements | None]
"""Elements of the outputs by position; missing trailing ones are unknown."""

Rule: TypeAlias = "Callable[[EvaluatedNode], Outputs]"

MODULES = {
    "elementwise": (
        "Abs", "Add", "And", "Ceil", "Div", "Equal", "Floor", "Greater", "GreaterOrEqual", "Less",
        "LessOrEqual", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Sub", "Where", "Xor",
    ),
    "movement": (
        "Concat", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile",
        "Transpose", "Unsqueeze",
    ),
    "creation": ("Cast", "CastLike", "ConstantOfShape", "NonZero", "Range", "Shape", "Size"),
    "reduction": ("ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"),
}  # fmt: skip
"""Operators with a rule, by module: the modules are imported when a model needs them."""

EVALUATED = {op_type: module for module, op_types in MODULES.items() for op_type in op_types}
"""Module of the rule of each operator."""

SHAPE_READERS = {"Shape": (), "Size": (), "CastLike": (0,)}
"""Operators that need the elements of some inputs only, with the positions of these inputs."""

_RULES: dict[str, Rule] = {}


class UnknownValue(Exception):
    """A rule does not determine the outputs of a node."""


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
        """Return an input that is a list of integers; raise `UnknownValue` if one of them is unknown."""
        values = self.elements(position).values
        if not all(isinstance(each, int) and type(each) is not Symbol for each in values):
            raise UnknownValue
        return values

    def setting(self, name: str) -> tuple[int, ...] | None:
        """Return integers of an attribute or, in other operator versions, an input; `None` if omitted."""
        if name in self.version.attributes:
            found = self.node.attribute(name)
            if found is None or not isinstance(found, tuple | list):
                return self.reject() if found is not None else None
            return tuple(found) if all(isinstance(each, int) for each in found) else self.reject()
        named = self.version.input_named(name)
        return None if named is None or not self.node.input(named[0]) else self.integers(named[0])

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an integer attribute; raise `UnknownValue` if it is missing without a default."""
        found = self.node.attribute(name, default)
        if not isinstance(found, int):
            raise UnknownValue
        return found

    def axis(self, name: str, rank: int, default: int | None = None) -> int:
        """Return the axis in an attribute, counted from the start."""
        return axis_of(self.integer(name, default), rank)

    def reject(self) -> Any:
        """Raise `UnknownValue` within an expression."""
        raise UnknownValue

    def require_size(self, dims: Dims) -> None:
        """Raise `UnknownValue` if a result has too many elements or dimensions, or exceeds the budget."""
        count = prod(dims) if min(dims, default=0) >= 0 else MAX_ELEMENTS + 1
        if count > MAX_ELEMENTS or len(dims) > MAX_RANK:
            raise UnknownValue
        if count > SMALL_SIZE and not self.scope.evaluation.spend(count):
            raise UnknownValue

    def reshaped(self, elements: Elements, dims: Dims) -> Elements:
        """Return the elements with other dimensions; raise `UnknownValue` if these are impossible."""
        if prod(dims) != len(elements.values) or min(dims, default=0) < 0 or len(dims) > MAX_RANK:
            raise UnknownValue
        return Tensor(elements.element_type, dims, elements.values)


def axis_of(axis: int, rank: int) -> int:
    """Return an axis counted from the start; raise `UnknownValue` if it does not exist."""
    if not -rank <= axis < rank:
        raise UnknownValue
    return axis % rank


def axes_of(axes: Sequence[int], rank: int) -> list[int]:
    """Return axes counted from the start; raise `UnknownValue` if one occurs twice or does not exist."""
    found = [axis_of(axis, rank) for axis in axes]
    if len(set(found)) < len(found):
        raise UnknownValue
    return found


def rule(*op_types: str) -> Callable[[Rule], Rule]:
    """Register a function as the rule of operators."""

    def register(function: Rule) -> Rule:
        _RULES.update(dict.fromkeys(op_types, function))
        return function

    return register


def evaluate(node: EvaluatedNode) -> Outputs:
    """Return the elements of the outputs by the rule; `()` if unknown, or the number of inputs is wrong."""
    if not node.version.min_input <= len(node.inputs) <= node.version.max_input:
        return ()
    op_type = node.node.op_type
    if op_type not in _RULES:
        import_module(f"opshift.inference.evaluator.{EVALUATED[op_type]}")
    try:
        return _RULES[op_type](node)
    except UnknownValue:
        return ()
