"""Scan before 9, as a Loop that takes from each scanned value what its turn is for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from opshift.adapters.bodies import LoopBody, returned_type
from opshift.adapters.node import Node
from opshift.adapters.ranges import positions_below
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import as_list, dimension, reshaped
from opshift.adapters.table import adapter


class Lane(NamedTuple):
    """A value that is scanned or built: its name, along which dimension, and whether from the end."""

    name: str
    axis: int
    backward: bool


@adapter("Scan", 9, 8)
def steps_take_turns(node: Node, out: Rewriter) -> None:
    """Version 8 knew batches, but no axes, and no output that is built from its end."""
    scanned = _lanes(node, "input", node.inputs[-node.attribute("num_scan_inputs") :])
    states = node.inputs[: len(node.inputs) - len(scanned)]
    built = _lanes(node, "output", node.outputs[len(states) :])
    length = as_list(dimension(scanned[0].name, scanned[0].axis, out), out)
    last = out.emit("Sub", [length, out.constant([1], "int64")])
    body = _body(node, scanned, reshaped(last, (), out), out)
    stacked = [out.fresh("stacked") for _ in built]
    body.run(length, states, out, [*node.outputs[: len(states)], *stacked])
    for name, lane in zip(stacked, built, strict=True):
        if lane.backward:
            backward = out.emit("Sub", [last, positions_below(length, out)])
            name = out.emit("Gather", [name, backward], axis=0)
        if lane.name:
            _turn(name, lane, out)


def _lanes(node: Node, kind: str, names: Sequence[str]) -> list[Lane]:
    axes, directions = (node.attribute(f"scan_{kind}_{what}", ()) for what in ("axes", "directions"))
    return [
        Lane(name, axes[place] if axes else 0, bool(directions and directions[place]))
        for place, name in enumerate(names)
    ]


def _body(node: Node, scanned: Sequence[Lane], last: str, out: Rewriter) -> LoopBody:
    graph = node.attribute("body")
    body = LoopBody(out)
    states = len(graph.input) - len(scanned)
    for name, inner in zip(node.inputs, graph.input[:states], strict=False):
        body.input(out.element_type(name), name=inner.name)
    for lane, inner in zip(scanned, graph.input[states:], strict=True):
        place = body.emit("Sub", [last, body.turn]) if lane.backward else body.turn
        body.emit("Gather", [lane.name, place], [inner.name], axis=lane.axis)
    body.enclose(node.attributes["body"])
    for position, value in enumerate(graph.output):
        body.output(body.emit("Identity", [value.name]), returned_type(node.output(position), value, out))
    return body


def _turn(stacked: str, lane: Lane, out: Rewriter) -> None:
    """The first dimension is put where the axis says."""
    if not lane.axis:
        out.emit("Identity", [stacked], [lane.name])
        return
    rest = list(range(1, out.rank(lane.name)))
    out.emit("Transpose", [stacked], [lane.name], perm=[*rest[: lane.axis], 0, *rest[lane.axis :]])
