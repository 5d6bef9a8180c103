"""Evaluator rules of operators that create elements from shapes, numbers and elements of other types."""

from __future__ import annotations

from math import prod

from opshift.inference.constants import cast
from opshift.inference.evaluator.elements import Dims, strides_of
from opshift.inference.evaluator.rule_table import EvaluatedNode, Outputs, UnknownValue, rule
from opshift.model.element_types import NAME_BY_NUMBER
from opshift.model.node import Tensor
from opshift.model.tensors import read_tensor
from opshift.model.types import Shape, Symbol
from opshift.registry.shapes.sizes import symbol_from_number


@rule("Shape")
def shape(node: EvaluatedNode) -> Outputs:
    """Return the dimensions of the input from `start` to `end`, by default all."""
    sizes = _shape_of_input(node)
    start, end = node.integer("start", 0), node.integer("end", len(sizes))
    selected = sizes[start:end]
    return [Tensor("int64", (len(selected),), selected)]


@rule("Size")
def size(node: EvaluatedNode) -> Outputs:
    """Return the number of elements of the input."""
    known = [each for each in _shape_of_input(node) if each is not None]
    count: int | None = None
    if len(known) == len(_shape_of_input(node)):
        count = prod(known)
        if any(type(each) is Symbol for each in known) and count:
            count = symbol_from_number(count)
    return [Tensor("int64", (), (count,))]


def _shape_of_input(node: EvaluatedNode) -> Shape:
    found = node.scope.symbolic_shape(node.node.input(0)) if node.node.input(0) else None
    if found is None:
        raise UnknownValue
    return found


@rule("Cast")
def cast_(node: EvaluatedNode) -> Outputs:
    """Cast the elements to the type `to`; the result is unknown if `constants.cast` returns `None`."""
    name = NAME_BY_NUMBER.get(node.integer("to"))
    return [cast(node.elements(0), name) if name else None]


@rule("CastLike")
def cast_like(node: EvaluatedNode) -> Outputs:
    """Cast the elements to the element type of the second input, under the conditions of Cast."""
    name = node.scope.element_type(node.node.input(1)) if node.node.input(1) else None
    return [cast(node.elements(0), name) if name else None]


@rule("ConstantOfShape")
def constant_of_shape(node: EvaluatedNode) -> Outputs:
    """Fill a tensor of the given shape with the element of `value`."""
    dims: Dims = node.integers(0)
    given = node.node.attribute("value")
    value = given if isinstance(given, Tensor) else given and read_tensor(given)
    if given is None:
        value = Tensor("float", (1,), (0.0,))
    if not isinstance(value, Tensor) or len(value.values) != 1 or len(node.elements(0).dims) != 1:
        raise UnknownValue
    node.require_size(dims)
    return [Tensor(value.element_type, dims, value.values * prod(dims))]


@rule("Range")
def range_(node: EvaluatedNode) -> Outputs:
    """Count from `start` to `limit` in steps of `delta`; the result is unknown unless all are integers."""
    bounds = [node.integers(position) for position in range(3)]
    if any(len(each) != 1 for each in bounds):
        raise UnknownValue
    (start,), (limit,), (step,) = bounds
    if not step:
        raise UnknownValue
    counted = range(start, limit, step)
    # Compare the length first: `len` fails for a range of more than 2 ** 63 elements.
    node.require_size((max(0, -((start - limit) // step)),))
    return [Tensor(node.elements(0).element_type, (len(counted),), tuple(counted))]


@rule("NonZero")
def non_zero(node: EvaluatedNode) -> Outputs:
    """List the indices of the elements that are not zero, one row for each dimension."""
    data = node.elements(0)
    # Unknown for a scalar, which has no index: releases of runtimes disagree on the result.
    if not data.dims or any(each is None or type(each) in (Symbol, bytes) for each in data.values):
        raise UnknownValue
    found = [position for position, each in enumerate(data.values) if each]
    rows = []
    for dim, stride in zip(data.dims, strides_of(data.dims), strict=True):
        rows += [position // stride % dim for position in found]
    node.require_size((len(data.dims), len(found)))
    return [Tensor("int64", (len(data.dims), len(found)), tuple(rows))]
