"""Gather, Scatter and OneHot: negative indices, which count from the end and are allowed since opset 11."""

from __future__ import annotations

from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import TO_THE_LAST
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME

OPSET = 10
"""Opset of the emitted index arithmetic: the last opset without negative indices."""
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
"""Index types without negative values, which need no rewrite."""


@adapter("Gather", 11, 1)
def gathered_indices_count_from_the_front(node: Node, out: Rewriter) -> None:
    """Add the size of the dimension to negative indices."""
    data, indices = node.inputs
    indices = nonnegative(indices, data, node.attribute("axis", 0), out)
    out.become(node, inputs=[data, indices])


@adapter("Scatter", 11, 9)
@adapter("ScatterElements", 11, 10)
def scattered_indices_count_from_the_front(node: Node, out: Rewriter) -> None:
    """Emit Scatter, the former name of ScatterElements, with the size added to negative indices."""
    data, indices, updates = node.inputs
    indices = nonnegative(indices, data, node.attribute("axis", 0), out)
    out.become(node, op_type="Scatter", inputs=[data, indices, updates], opset=OPSET)


@adapter("OneHot", 11, 9)
def hot_indices_count_from_the_front(node: Node, out: Rewriter) -> None:
    """Add `depth` to negative indices; indices below `-depth` remain out of range."""
    indices, depth, values = node.inputs
    axis = node.attribute("axis", -1)
    if axis < -1:
        # Opset 9 allows -1 as its only negative axis; the output has one more dimension than the indices.
        axis += out.rank(indices) + 1
    if out.element_type(indices) not in UNSIGNED:
        indices, depth = _nonnegative_classes(indices, depth, out)
    out.become(node, inputs=[indices, depth, values], attributes={"axis": axis})


def nonnegative(indices: str, data: str, axis: int, out: Rewriter) -> str:
    """Return indices into one dimension of `data`, with its size added to negative ones.

    Computed indices are returned unchanged if the caller allows `assume-nonnegative`.
    """
    constant = out.constant_value(indices)
    if constant is not None and all(value >= 0 for value in constant.values):
        return indices
    shape = out.shape(data)
    size = shape[axis] if shape is not None else None
    if constant is not None and size is not None:
        shifted = tuple(value + size if value < 0 else value for value in constant.values)
        return out.tensor(Tensor(constant.element_type, constant.dims, shifted))
    reason = f"the indices {indices!r} are computed and assumed nonnegative, as required before opset 11"
    if constant is None and out.facts.concede("assume-nonnegative", reason):
        return indices
    return shifted_if_negative(indices, size_of(data, axis, out), out.element_type(indices), out)


def size_of(data: str, axis: int, out: Rewriter) -> str:
    """Return one dimension of a value as an int64 scalar."""
    shape = out.shape(data)
    size = shape[axis] if shape is not None else None
    if size is not None:
        return out.constant(size, "int64")
    # For axis -1, axis + 1 is 0 and would select nothing.
    bounds = [out.constant([each], "int64") for each in (axis, axis + 1 or TO_THE_LAST, 0)]
    part = out.emit("Slice", [out.emit("Shape", [data], opset=OPSET), *bounds], opset=OPSET)
    return out.emit("Squeeze", [part], opset=OPSET, axes=[0])


def shifted_if_negative(indices: str, size: str, element_type: str, out: Rewriter) -> str:
    """Return the indices with a size added to negative ones.

    Args:
        indices: Indices of type `element_type`.
        size: An int64 scalar.
        element_type: Element type of the indices and the result.
        out: The rewriter to emit with.
    """
    if element_type != "int64":
        size = out.emit("Cast", [size], opset=OPSET, to=BY_NAME[element_type].number)
    shift = out.emit("Mul", [_is_negative(indices, element_type, out), size], opset=OPSET)
    return out.emit("Add", [indices, shift], opset=OPSET)


def _is_negative(indices: str, element_type: str, out: Rewriter) -> str:
    """Return 1 where an index is negative and 0 elsewhere, in the given element type."""
    # Less supports integers only since opset 9; a cast to float keeps the sign.
    number = out.emit("Cast", [indices], opset=OPSET, to=BY_NAME["float"].number)
    less = out.emit("Less", [number, out.constant(0.0, "float")], opset=OPSET)
    return out.emit("Cast", [less], opset=OPSET, to=BY_NAME[element_type].number)


def _to_int64(indices: str, out: Rewriter) -> str:
    """Return OneHot indices or depth as int64; like OneHot, the cast truncates fractions."""
    if out.element_type(indices) == "int64":
        return indices
    return out.emit("Cast", [indices], opset=OPSET, to=BY_NAME["int64"].number)


def _nonnegative_classes(indices: str, depth: str, out: Rewriter) -> tuple[str, str]:
    """Return nonnegative OneHot indices and the depth; indices below `-depth` become `depth`.

    Both are out of range and select no class.
    """
    known_indices, known_depth = out.constant_value(indices), out.constant_value(depth)
    # OneHot truncates fractions, so indices between -1 and 0 mean 0.
    if known_indices is not None and all(value > -1 for value in known_indices.values):
        return indices, depth
    if known_indices is not None and known_depth is not None:
        count = int(known_depth.values[0])
        shifted = (value + count if value < 0 else value for value in map(int, known_indices.values))
        in_range = tuple(count if value < 0 else value for value in shifted)
        return out.tensor(Tensor("int64", known_indices.dims, in_range)), out.constant(count, "int64")
    indices = _to_int64(indices, out)
    depth = (
        _as_scalar(depth, out) if known_depth is None else out.constant(int(known_depth.values[0]), "int64")
    )
    indices = shifted_if_negative(indices, depth, "int64", out)
    below_range = _is_negative(indices, "int64", out)
    missing = out.emit("Mul", [below_range, out.emit("Sub", [depth, indices], opset=OPSET)], opset=OPSET)
    return out.emit("Add", [indices, missing], opset=OPSET), depth


def _as_scalar(depth: str, out: Rewriter) -> str:
    """Return the depth, a scalar or a tensor of one element, as an int64 scalar."""
    listed = out.emit("Reshape", [_to_int64(depth, out), out.constant([1], "int64")], opset=OPSET)
    return out.emit("Squeeze", [listed], opset=OPSET, axes=[0])
