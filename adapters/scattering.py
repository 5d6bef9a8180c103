"""ScatterND and ScatterElements: the attribute `reduction` (opsets 16 and 18), and ScatterND (opset 11)."""

from __future__ import annotations

from math import prod

from opshift.adapters.flat_indices import depth_of, flat_elements, flat_tuples
from opshift.adapters.negative_indices import OPSET
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

LARGEST = 1 << 20
"""Limit for the elements of the table of updates and targets: it grows with the product of both."""
COMBINED = {
    b"add": ("Add", "ReduceSum"),
    b"mul": ("Mul", "ReduceProd"),
    b"max": ("Max", "ReduceMax"),
    b"min": ("Min", "ReduceMin"),
}
"""For each reduction, the operator that combines two tensors and the one that reduces a dimension."""
BITS = {"int32": 31, "int64": 63}
"""Number of bits of each integer type without the sign."""
FLOATS = ("float", "double", "float16")


@adapter(("ScatterND", "ScatterElements"), 18, 16)
def extremes_are_combined_first(node: Node, out: Rewriter) -> None:
    """Combine the updates of each element by `max` or `min` before applying them to the data."""
    if node.attribute("reduction", b"none") in (b"max", b"min"):
        _combine(node, out)
    else:
        out.become(node)


@adapter(("ScatterND", "ScatterElements"), 16, 13)
def updates_are_combined_first(node: Node, out: Rewriter) -> None:
    """Combine the updates of each element by `add` or `mul` before applying them to the data.

    The default reduction, `none`, overwrites elements, as all nodes do before opset 16.
    """
    if node.attribute("reduction", b"none") == b"none":
        out.become(node, attributes=node.without("reduction"))
    else:
        _combine(node, out)


@adapter("ScatterND", 11, 10)
def tuples_become_rows_to_write(node: Node, out: Rewriter) -> None:
    """Flatten the data to rows, one for each possible index tuple, and write the rows with Scatter."""
    data, indices, updates = node.inputs
    rank = out.rank(indices)
    rows = out.emit("Flatten", [data], axis=depth_of(indices, out), opset=OPSET)
    new_rows = out.emit("Flatten", [updates], axis=rank - 1, opset=OPSET)
    column = out.constant([-1, 1], "int64")
    row_indices = out.emit("Reshape", [flat_tuples(data, indices, out), column], opset=OPSET)
    # Scatter requires one index for each element of the updates.
    expanded = out.emit("Expand", [row_indices, out.emit("Shape", [new_rows], opset=OPSET)], opset=OPSET)
    scattered = out.emit("Scatter", [rows, expanded, new_rows], axis=0, opset=OPSET)
    shape = out.emit("Shape", [data], opset=OPSET)
    out.emit("Reshape", [scattered, shape], node.outputs, opset=OPSET)


def _combine(node: Node, out: Rewriter) -> None:
    """Emit a table of updates and targets, reduce it to one value per element, and combine it with the data.

    Raises:
        CannotConvert: A shape is unknown, the table is too large, or the element type has no identity value.
    """
    data, _, updates = node.inputs
    element_type = out.element_type(data)
    reduction = node.attribute("reduction")
    if element_type not in (*BITS, *FLOATS):
        raise CannotConvert(
            f"reduction {reduction.decode()!r} cannot be rewritten for elements of type {element_type}"
        )
    combine, reduce = COMBINED[reduction]
    rows, row_length, count = _table_sizes(node, out)
    targets = out.emit("Reshape", [_flat_targets(node, out), out.constant([count, 1, 1], "int64")])
    row_numbers = out.emit("Reshape", [out.constant(range(rows), "int64"), out.constant([rows, 1], "int64")])
    is_target = out.emit("Equal", [targets, row_numbers])
    new_rows = out.emit("Reshape", [updates, out.constant([count, 1, row_length], "int64")])
    # Dimensions: update, target row, element of the row.
    table = out.emit("Where", [is_target, new_rows, _identity_value(reduction, element_type, out)])
    # In opset 11 all four reductions have `axes` as an attribute.
    reduced = out.emit(reduce, [table], opset=11, axes=[0], keepdims=0)
    shaped = out.emit("Reshape", [reduced, out.emit("Shape", [data])])
    out.emit(combine, [data, shaped], node.outputs)


def _flat_targets(node: Node, out: Rewriter) -> str:
    """Return the flat position of the row or element that each update changes."""
    data, indices = node.inputs[:2]
    if node.op_type == "ScatterND":
        return flat_tuples(data, indices, out)
    return flat_elements(data, indices, node.attribute("axis", 0) % out.rank(data), out)


def _identity_value(reduction: bytes, element_type: str, out: Rewriter) -> str:
    """Return the constant that leaves every other value unchanged in a reduction."""
    limit = float("inf") if element_type in FLOATS else 2 ** BITS[element_type]
    lowest, highest = -limit, limit if element_type in FLOATS else limit - 1
    value = {b"add": 0, b"mul": 1, b"max": lowest, b"min": highest}[reduction]
    return out.constant(value, element_type)


def _table_sizes(node: Node, out: Rewriter) -> tuple[int, int, int]:
    """Return the number of target rows, the length of a row, and the number of updates.

    A row is a slice of the data that one index tuple selects; for ScatterElements it is one element.
    """
    data, indices = (out.shape(name) for name in node.inputs[:2])
    sizes = [size for shape in (data, indices) for size in shape or (None,)]
    known = [size for size in sizes if size]
    if data is None or indices is None or len(known) < len(sizes):
        raise CannotConvert("its reduction requires known shapes without empty dimensions", remedy=STATE)
    data_shape = known[: len(data)]
    depth = known[-1] if node.op_type == "ScatterND" else len(data)
    count = prod(known[len(data) :]) // (depth if node.op_type == "ScatterND" else 1)
    if count * prod(data_shape) > LARGEST:
        raise CannotConvert(
            f"its reduction combines {count} updates with {prod(data_shape)} elements, "
            f"more than a table of {LARGEST} holds"
        )
    return prod(data_shape[:depth]), prod(data_shape[depth:]), count


STATE = "add a value_info with the shape of each input"
"""Remedy for unknown shapes."""
