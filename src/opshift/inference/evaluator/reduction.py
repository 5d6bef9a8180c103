"""Evaluation of the operators that reduce integer tensors along axes."""

from __future__ import annotations

from functools import reduce
from typing import Any

from opshift.inference.constants import INTEGER_RANGES
from opshift.inference.evaluator.elements import Element, positions, strides_of
from opshift.inference.evaluator.elementwise import operation_of
from opshift.inference.evaluator.rule_table import EvaluatedNode, Outputs, UnknownValue, axes_of, rule
from opshift.model.node import Tensor

OPERATIONS: dict[str, tuple[str, int | None]] = {
    "ReduceSum": ("Add", 0), "ReduceProd": ("Mul", 1), "ReduceMin": ("Min", None), "ReduceMax": ("Max", None),
}  # fmt: skip
"""By operator: the operation on two elements, and the result for no elements; `None` if undefined."""


@rule(*OPERATIONS)
def reduce_(node: EvaluatedNode) -> Outputs:
    """Reduce integers along the given axes; without axes, along all of them."""
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
