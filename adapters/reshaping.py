"""Reshape: 14 lets a 0 in the shape stand for itself, where it always copied the input's size before."""

from __future__ import annotations

from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME

FILLERS = {"string": b"", "bool": False}
"""What stands in for an element, where 0 does not."""


@adapter("Reshape", 14, 13)
def zero_copies_a_size(node: Node, out: Rewriter) -> None:
    """`allowzero` goes where no 0 can be meant; elsewhere the sizes of 0 are cut out of others."""
    attributes = node.without("allowzero")
    data, shape = node.inputs
    if not node.attribute("allowzero", 0) or _without_zero(data, shape, out):
        out.become(node, attributes=attributes)
        return
    known = out.constant_value(shape)
    if known is None:
        _fill_and_cut(node, out)
        return
    sizes = tuple(max(size, 0) for size in known.values)
    empty = out.tensor(Tensor(out.element_type(data), sizes, ()))
    out.become(node, op_type="Identity", inputs=[empty], attributes={})


def _without_zero(data: str, shape: str, out: Rewriter) -> bool:
    """Whether the new shape is sure to have no 0: it is constant, or the data is not empty."""
    known = out.constant_value(shape)
    if known is not None:
        return 0 not in known.values
    sizes = out.shape(data)
    return sizes is not None and all(sizes)


def _fill_and_cut(node: Node, out: Rewriter) -> None:
    """Where there are no elements some are made up, so that no size is 0, and cut off again."""
    data, shape = node.inputs
    zero, one = (out.constant([each], "int64") for each in (0, 1))
    is_empty = _is(out.emit("Size", [data]), zero, out)
    sizes = out.emit("Add", [shape, _is(shape, zero, out)])
    count = out.emit("ReduceProd", [out.emit("Abs", [sizes])], axes=[0], keepdims=1)
    missing = out.emit("Mul", [is_empty, count])
    element_type = out.element_type(data)
    element = out.constant([FILLERS.get(element_type, 0)], element_type)
    filler = out.emit("Expand", [element, missing])
    flat = out.emit("Reshape", [data, out.constant([-1], "int64")])
    full = out.emit("Reshape", [out.emit("Concat", [flat, filler], axis=0), sizes])
    rest = out.emit("Mul", [out.emit("Sub", [one, is_empty]), out.constant([2**31 - 1], "int64")])
    inferred = _is(shape, out.constant([-1], "int64"), out)
    ends = out.emit("Add", [shape, out.emit("Mul", [inferred, out.emit("Add", [rest, one])])])
    out.emit("Slice", [full, out.emit("Sub", [shape, shape]), ends], node.outputs)


def _is(numbers: str, number: str, out: Rewriter) -> str:
    """1 where a number is the given one, 0 elsewhere."""
    return out.emit("Cast", [out.emit("Equal", [numbers, number])], to=BY_NAME["int64"].number)
