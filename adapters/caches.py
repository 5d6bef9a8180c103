"""TensorScatter: an update is written into a cache from a place on that each batch entry has."""

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
    """ScatterElements takes a place for every element of an update, counted from where its entry starts."""
    cache, update = node.inputs[:2]
    element_type = out.element_type(cache)
    if BY_NAME[element_type].number > BY_NAME["bfloat16"].number:
        raise CannotConvert(f"{cache!r} is {element_type}, which ScatterElements does not take")
    rank = out.rank(cache)
    axis = node.attribute("axis", -2) % rank
    count = dimension(update, axis, out)
    places = positions_below(as_list(count, out), out) if isinstance(count, str) else _counted(count, out)
    if node.input(2):
        starts = out.emit("Reshape", [node.input(2), out.constant([-1, 1], "int64")])
        places = out.emit("Add", [starts, places])
    if node.attribute("mode", b"linear") == b"circular":
        places = out.emit("Mod", [places, as_list(dimension(cache, axis, out), out)])
    shape = [-1 if node.input(2) else 1, *[1] * (axis - 1), count, *[1] * (rank - axis - 1)]
    places = out.emit("Reshape", [places, listed(shape, out)])
    indices = out.emit("Expand", [places, out.emit("Shape", [update])])
    out.emit("ScatterElements", [cache, indices, update], node.outputs, axis=axis)


def _counted(count: int, out: Rewriter) -> str:
    return out.constant(tuple(range(count)), "int64")
