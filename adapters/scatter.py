"""Scatter came at 9: before, elements are gathered from the data and the updates laid end to end."""

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
"""The most places that are written out as a constant."""


@adapter("Scatter", 9, 8)
def updates_follow_the_data(node: Node, out: Rewriter) -> None:
    """For every place it is found whether an update or the data goes there."""
    data, _, updates = node.inputs
    sources = _known_sources(node, out) or _computed_sources(node, out)
    both = out.emit("Concat", [_flat(data, out), _flat(updates, out)], axis=0)
    out.emit("Gather", [both, sources], node.outputs, axis=0)


def _known_sources(node: Node, out: Rewriter) -> str | None:
    """Where the indices and the shape of the data are constant."""
    stated = out.constant_value(node.inputs[1])
    sizes = out.shape(node.inputs[0]) or (None,)
    shape = tuple(size for size in sizes if size is not None)
    if stated is None or len(shape) < len(sizes) or math.prod(shape) > LONGEST:
        return None
    steps = [math.prod(shape[place + 1 :]) for place in range(len(shape))]
    axis = node.attribute("axis", 0) % len(shape)
    sources = list(range(math.prod(shape)))
    for number, index in enumerate(stated.values):
        at, rest = 0, number
        for place in reversed(range(len(shape))):
            rest, coordinate = divmod(rest, stated.dims[place])
            at += steps[place] * (index % shape[axis] if place == axis else coordinate)
        sources[at] = len(sources) + number
    return out.tensor(Tensor("int64", shape, tuple(sources)))


def _computed_sources(node: Node, out: Rewriter) -> str:
    """One update after another takes its place over."""
    data, indices = node.inputs[:2]
    axis = node.attribute("axis", 0) % out.rank(data)
    places = flat_elements(data, indices, axis, out)
    count = out.emit("Reshape", [out.emit("Size", [data]), out.constant([1], "int64")])
    own = positions_below(count, out)
    body = LoopBody(out)
    sources = body.input("int64", (None,))
    is_here = cast(body.emit("Equal", [own, body.emit("Gather", [places, body.turn])]), "int64", body)
    change = body.emit("Sub", [body.emit("Add", [count, body.turn]), sources])
    body.output(body.emit("Add", [sources, body.emit("Mul", [is_here, change])]), "int64", (None,))
    (flat,) = body.run(computed_dimension(places, 0, out), [own], out)
    return out.emit("Reshape", [flat, out.emit("Shape", [data])])


def _flat(name: str, out: Rewriter) -> str:
    return out.emit("Reshape", [name, out.constant([-1], "int64")])
