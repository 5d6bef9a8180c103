"""Tile: one axis and its count became a count for every dimension at 6."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME

FLOATS = ("float16", "float", "double")


@adapter("Tile", 1, 6)
def counts_for_every_dimension(node: Node, out: Rewriter) -> None:
    """`tiles` along `axis` becomes `repeats`, one along the other dimensions."""
    data, tiles, axis_name = node.inputs
    axis = int(out.require_constant(axis_name, "input axis").scalar)
    rank = out.rank(data)
    axis += rank if axis < 0 else 0
    known = out.constant_value(tiles)
    if known is not None:
        counts = [1] * axis + [int(known.scalar)] + [1] * (rank - axis - 1)
        out.become(node, inputs=[data, out.constant(counts, "int64")])
        return
    count = out.emit("Cast", [tiles], to=BY_NAME["int64"].number)
    count = out.emit("Reshape", [count, out.constant([1], "int64")])
    parts = [out.constant([1] * axis, "int64"), count, out.constant([1] * (rank - axis - 1), "int64")]
    out.become(node, inputs=[data, out.emit("Concat", parts, axis=0)])


@adapter("Tile", 6, 1)
def one_dimension_after_another(node: Node, out: Rewriter) -> None:
    """Each dimension that is repeated takes a node of its own, its count and axis in the data's type."""
    data, element_type = node.inputs[0], out.element_type(node.inputs[0])
    if element_type not in FLOATS:
        raise CannotConvert(f"{data!r} is {element_type}, and before 6 only floating point is repeated")
    counts = out.require_constant(node.inputs[1], "input repeats").values
    repeated = [(axis, count) for axis, count in enumerate(counts) if count != 1]
    if not repeated:
        out.become(node, op_type="Identity", inputs=[data])
        return
    for axis, count in repeated:
        outputs: Sequence[str] | int = node.outputs if axis == repeated[-1][0] else 1
        data = out.emit(
            "Tile", [data, out.constant(count, element_type), out.constant(axis, element_type)], outputs
        )
