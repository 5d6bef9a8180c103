"""Scatter (introduced in opset 9), as Gather from the data and the updates concatenated."""

from __future__ import annotations

import math

from opshift.adapters.bodies import LoopBody
from opshift.adapters.casts import cast
from opshift.adapters.flat_indices import flat_elements
from opshift.adapters.node import Node, Tensor
from opshift.adapters.ranges import positions_below
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import computed_dimension
from opshift.adapters.table import adapter

LONGEST = 1 << 22
"""Largest number of indices to emit as a constant; more are computed at run time."""


@adapter("Scatter", 9, 8)
def updates_follow_the_data(node: Node, out: Rewriter) -> None:
    """Concatenate the flattened data and updates, and gather for each output element from one of the two."""
    data, _, updates = node.inputs
    sources = _constant_sources(node, out) or _computed_sources(node, out)
    both = out.emit("Concat", [_flatten(data, out), _flatten(updates, out)], axis=0)
    out.emit("Gather", [both, sources], node.outputs, axis=0)


def _constant_sources(node: Node, out: Rewriter) -> str | None:
    """Return the source index of each output element as a constant.

    Returns:
        The name of the constant, or `None` if the indices or the shape of the data are not constant, or if
        there are more elements than `MAX_CONSTANT_ELEMENTS`.
    """
    indices = out.constant_value(node.inputs[1])
    sizes = out.shape(node.inputs[0]) or (None,)
    shape = tuple(size for size in sizes if size is not None)
    if indices is None or len(shape) < len(sizes) or math.prod(shape) > LONGEST:
        return None
    strides = [math.prod(shape[position + 1 :]) for position in range(len(shape))]
    axis = node.attribute("axis", 0) % len(shape)
    sources = list(range(math.prod(shape)))
    for number, index in enumerate(indices.values):
        target, rest = 0, number
        for position in reversed(range(len(shape))):
            rest, coordinate = divmod(rest, indices.dims[position])
            target += strides[position] * (index % shape[axis] if position == axis else coordinate)
        # Updates follow the data in the concatenated tensor; the last update of an element wins.
        sources[target] = len(sources) + number
    return out.tensor(Tensor("int64", shape, tuple(sources)))


def _computed_sources(node: Node, out: Rewriter) -> str:
    """Return the source index of each output element, computed in a Loop over the updates."""
    data, indices = node.inputs[:2]
    axis = node.attribute("axis", 0) % out.rank(data)
    targets = flat_elements(data, indices, axis, out)
    count = out.emit("Reshape", [out.emit("Size", [data]), out.constant([1], "int64")])
    positions = positions_below(count, out)
    body = LoopBody(out)
    sources = body.input("int64", (None,))
    is_here = cast(body.emit("Equal", [positions, body.emit("Gather", [targets, body.turn])]), "int64", body)
    change = body.emit("Sub", [body.emit("Add", [count, body.turn]), sources])
    body.output(body.emit("Add", [sources, body.emit("Mul", [is_here, change])]), "int64", (None,))
    (flat_sources,) = body.run(computed_dimension(targets, 0, out), [positions], out)
    return out.emit("Reshape", [flat_sources, out.emit("Shape", [data])])


def _flatten(name: str, out: Rewriter) -> str:
    return out.emit("Reshape", [name, out.constant([-1], "int64")])
