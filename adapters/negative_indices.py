"""Gather, Scatter, OneHot: indices counted from the front only, until 11 let them be negative."""

from __future__ import annotations

from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import TO_THE_LAST
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME

OPSET = 10
"""What the nodes here are written for: the last opset without negative indices."""
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")


@adapter("Gather", 11, 1)
def gathered_indices_count_from_the_front(node: Node, out: Rewriter) -> None:
    """The size of the dimension is added to negative indices."""
    data, indices = node.inputs
    indices = nonnegative(indices, data, node.attribute("axis", 0), out)
    out.become(node, inputs=[data, indices])


@adapter("Scatter", 11, 9)
@adapter("ScatterElements", 11, 10)
def scattered_indices_count_from_the_front(node: Node, out: Rewriter) -> None:
    """ScatterElements was called Scatter; the size of the dimension is added to negative indices."""
    data, indices, updates = node.inputs
    indices = nonnegative(indices, data, node.attribute("axis", 0), out)
    out.become(node, op_type="Scatter", inputs=[data, indices, updates], opset=OPSET)


@adapter("OneHot", 11, 9)
def hot_indices_count_from_the_front(node: Node, out: Rewriter) -> None:
    """`depth` is added to negative indices, and those that are negative still stay out of range."""
    indices, depth, values = node.inputs
    axis = node.attribute("axis", -1)
    if axis < -1:
        axis += out.rank(indices) + 1
    if out.element_type(indices) not in UNSIGNED:
        indices, depth = _in_range_or_above(indices, depth, out)
    out.become(node, inputs=[indices, depth, values], attributes={"axis": axis})


def nonnegative(indices: str, data: str, axis: int, out: Rewriter) -> str:
    """The indices into a dimension of `data`, its size added to those that are negative.

    They stay as they are if the caller allows them to be taken for no less than zero.
    """
    constant = out.constant_value(indices)
    if constant is not None and all(value >= 0 for value in constant.values):
        return indices
    shape = out.shape(data)
    size = shape[axis] if shape is not None else None
    if constant is not None and size is not None:
        shifted = tuple(value + size if value < 0 else value for value in constant.values)
        return out.tensor(Tensor(constant.element_type, constant.dims, shifted))
    reason = f"the indices {indices!r} are computed, and must not be negative before opset 11"
    if constant is None and out.facts.concede("assume-nonnegative", reason):
        return indices
    return shifted_if_negative(indices, size_of(data, axis, out), out.element_type(indices), out)


def size_of(data: str, axis: int, out: Rewriter) -> str:
    """One dimension of a value, as an int64 scalar."""
    shape = out.shape(data)
    size = shape[axis] if shape is not None else None
    if size is not None:
        return out.constant(size, "int64")
    bounds = [out.constant([each], "int64") for each in (axis, axis + 1 or TO_THE_LAST, 0)]
    part = out.emit("Slice", [out.emit("Shape", [data], opset=OPSET), *bounds], opset=OPSET)
    return out.emit("Squeeze", [part], opset=OPSET, axes=[0])


def shifted_if_negative(indices: str, size: str, element_type: str, out: Rewriter) -> str:
    """The indices, which are of `element_type`, with an int64 scalar added to those that are negative."""
    if element_type != "int64":
        size = out.emit("Cast", [size], opset=OPSET, to=BY_NAME[element_type].number)
    shift = out.emit("Mul", [_is_negative(indices, element_type, out), size], opset=OPSET)
    return out.emit("Add", [indices, shift], opset=OPSET)


def _is_negative(indices: str, element_type: str, out: Rewriter) -> str:
    """1 or 0, compared as floats, which Less took before it took integers: they keep the sign."""
    number = out.emit("Cast", [indices], opset=OPSET, to=BY_NAME["float"].number)
    less = out.emit("Less", [number, out.constant(0.0, "float")], opset=OPSET)
    return out.emit("Cast", [less], opset=OPSET, to=BY_NAME[element_type].number)


def _whole(indices: str, out: Rewriter) -> str:
    """As int64, which is how OneHot reads them."""
    if out.element_type(indices) == "int64":
        return indices
    return out.emit("Cast", [indices], opset=OPSET, to=BY_NAME["int64"].number)


def _in_range_or_above(indices: str, depth: str, out: Rewriter) -> tuple[str, str]:
    """Indices from 0 on, those below `-depth` as `depth`, which is no class either; and `depth`."""
    known, size = out.constant_value(indices), out.constant_value(depth)
    if known is not None and all(value > -1 for value in known.values):
        return indices, depth
    if known is not None and size is not None:
        count = int(size.values[0])
        shifted = (value + count if value < 0 else value for value in map(int, known.values))
        in_range = tuple(count if value < 0 else value for value in shifted)
        return out.tensor(Tensor("int64", known.dims, in_range)), out.constant(count, "int64")
    indices = _whole(indices, out)
    depth = _scalar(depth, out) if size is None else out.constant(int(size.values[0]), "int64")
    indices = shifted_if_negative(indices, depth, "int64", out)
    still = _is_negative(indices, "int64", out)
    missing = out.emit("Mul", [still, out.emit("Sub", [depth, indices], opset=OPSET)], opset=OPSET)
    return out.emit("Add", [indices, missing], opset=OPSET), depth


def _scalar(depth: str, out: Rewriter) -> str:
    """The only number, which may stand in a list of one."""
    listed = out.emit("Reshape", [_whole(depth, out), out.constant([1], "int64")], opset=OPSET)
    return out.emit("Squeeze", [listed], opset=OPSET, axes=[0])
