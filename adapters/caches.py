"""TensorScatter (introduced in opset 24), as ScatterElements with an explicit index for each element."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.ranges import positions_below
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import as_list, dimension, listed
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME


@adapter("TensorScatter", 24, 23)
def places_are_spelled_out(node: Node, out: Rewriter) -> None:
    """Emit ScatterElements with indices that count from the write index of each batch entry."""
    cache, update = node.inputs[:2]
    element_type = out.element_type(cache)
    # ScatterElements supports types up to bfloat16; higher numbers are float8 and types below 8 bits.
    if BY_NAME[element_type].number > BY_NAME["bfloat16"].number:
        raise CannotConvert(
            f"{cache!r} has element type {element_type}, which ScatterElements does not support"
        )
    rank = out.rank(cache)
    axis = node.attribute("axis", -2) % rank
    count = dimension(update, axis, out)
    offsets = positions_below(as_list(count, out), out) if isinstance(count, str) else _range(count, out)
    if node.input(2):
        starts = out.emit("Reshape", [node.input(2), out.constant([-1, 1], "int64")])
        offsets = out.emit("Add", [starts, offsets])
    if node.attribute("mode", b"linear") == b"circular":
        offsets = out.emit("Mod", [offsets, as_list(dimension(cache, axis, out), out)])
    # Only the batch dimension (if there are write indices) and the sequence dimension differ from 1.
    shape = [-1 if node.input(2) else 1, *[1] * (axis - 1), count, *[1] * (rank - axis - 1)]
    offsets = out.emit("Reshape", [offsets, listed(shape, out)])
    indices = out.emit("Expand", [offsets, out.emit("Shape", [update])])
    out.emit("ScatterElements", [cache, indices, update], node.outputs, axis=axis)


def _range(count: int, out: Rewriter) -> str:
    return out.constant(tuple(range(count)), "int64")
