"""ScatterND and ScatterElements: 16 and 18 let them combine what they write with what is there."""

from __future__ import annotations

from math import prod

from opshift.adapters.flat_indices import depth_of, flat_elements, flat_tuples
from opshift.adapters.negative_indices import OPSET
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

LARGEST = 1 << 20
"""The most elements of the table that says which update goes where."""
COMBINED = {
    b"add": ("Add", "ReduceSum"),
    b"mul": ("Mul", "ReduceProd"),
    b"max": ("Max", "ReduceMax"),
    b"min": ("Min", "ReduceMin"),
}
"""By reduction: how two values are combined, and how many are."""
BITS = {"int32": 31, "int64": 63}
FLOATS = ("float", "double", "float16")


@adapter(("ScatterND", "ScatterElements"), 18, 16)
def extremes_are_combined_first(node: Node, out: Rewriter) -> None:
    """`max` and `min` came at 18."""
    if node.attribute("reduction", b"none") in (b"max", b"min"):
        _combine(node, out)
    else:
        out.become(node)


@adapter(("ScatterND", "ScatterElements"), 16, 13)
def updates_are_combined_first(node: Node, out: Rewriter) -> None:
    """`add` and `mul` came at 16; the default overwrites, as before."""
    if node.attribute("reduction", b"none") == b"none":
        out.become(node, attributes=node.without("reduction"))
    else:
        _combine(node, out)


@adapter("ScatterND", 11, 10)
def tuples_become_rows_to_write(node: Node, out: Rewriter) -> None:
    """The data is flattened to the rows that the tuples name, and Scatter writes the rows."""
    data, indices, updates = node.inputs
    rank = out.rank(indices)
    rows = out.emit("Flatten", [data], axis=depth_of(indices, out), opset=OPSET)
    new_rows = out.emit("Flatten", [updates], axis=rank - 1, opset=OPSET)
    column = out.constant([-1, 1], "int64")
    flat = out.emit("Reshape", [flat_tuples(data, indices, out), column], opset=OPSET)
    wide = out.emit("Expand", [flat, out.emit("Shape", [new_rows], opset=OPSET)], opset=OPSET)
    written = out.emit("Scatter", [rows, wide, new_rows], axis=0, opset=OPSET)
    shape = out.emit("Shape", [data], opset=OPSET)
    out.emit("Reshape", [written, shape], node.outputs, opset=OPSET)


def _combine(node: Node, out: Rewriter) -> None:
    """Each element with all updates that go there, by a table of which do: for small data of known shape."""
    data, _, updates = node.inputs
    element_type = out.element_type(data)
    reduction = node.attribute("reduction")
    if element_type not in (*BITS, *FLOATS):
        raise CannotConvert(f"it combines values of {element_type} by {reduction.decode()!r}")
    two, many = COMBINED[reduction]
    rows, row, count = _sizes(node, out)
    places = out.emit("Reshape", [_flat_indices(node, out), out.constant([count, 1, 1], "int64")])
    every_place = out.emit("Reshape", [out.constant(range(rows), "int64"), out.constant([rows, 1], "int64")])
    goes_there = out.emit("Equal", [places, every_place])
    listed = out.emit("Reshape", [updates, out.constant([count, 1, row], "int64")])
    table = out.emit("Where", [goes_there, listed, _nothing(reduction, element_type, out)])
    combined = out.emit(many, [table], opset=11, axes=[0], keepdims=0)
    shaped = out.emit("Reshape", [combined, out.emit("Shape", [data])])
    out.emit(two, [data, shaped], node.outputs)


def _flat_indices(node: Node, out: Rewriter) -> str:
    data, indices = node.inputs[:2]
    if node.op_type == "ScatterND":
        return flat_tuples(data, indices, out)
    return flat_elements(data, indices, node.attribute("axis", 0) % out.rank(data), out)


def _nothing(reduction: bytes, element_type: str, out: Rewriter) -> str:
    """The value that changes no other."""
    limit = float("inf") if element_type in FLOATS else 2 ** BITS[element_type]
    least, greatest = -limit, limit if element_type in FLOATS else limit - 1
    value = {b"add": 0, b"mul": 1, b"max": least, b"min": greatest}[reduction]
    return out.constant(value, element_type)


def _sizes(node: Node, out: Rewriter) -> tuple[int, int, int]:
    """How many rows the data has, how long each is, and how many are written."""
    data, indices = (out.shape(name) for name in node.inputs[:2])
    sizes = [size for shape in (data, indices) for size in shape or (None,)]
    known = [size for size in sizes if size]
    if data is None or indices is None or len(known) < len(sizes):
        raise CannotConvert("it combines values, and the shapes of its inputs are not known", remedy=STATE)
    whole = known[: len(data)]
    depth = known[-1] if node.op_type == "ScatterND" else len(data)
    count = prod(known[len(data) :]) // (depth if node.op_type == "ScatterND" else 1)
    if count * prod(whole) > LARGEST:
        raise CannotConvert(f"it combines {count} updates with {prod(whole)} elements, too many for a table")
    return prod(whole[:depth]), prod(whole[depth:]), count


STATE = "state them: add a value_info for each"
