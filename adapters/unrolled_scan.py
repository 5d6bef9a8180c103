"""Downgrade Scan-9 to a Loop that gathers the slice of each scanned input for its iteration."""

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
    """A scanned input or output: its name, its scan axis, and whether it is scanned in reverse."""

    name: str
    axis: int
    backward: bool


@adapter("Scan", 9, 8)
def steps_take_turns(node: Node, out: Rewriter) -> None:
    """Replace Scan by Loop: version 8 has neither axes nor reversed outputs."""
    scanned = _scanned_values(node, "input", node.inputs[-node.attribute("num_scan_inputs") :])
    states = node.inputs[: len(node.inputs) - len(scanned)]
    built = _scanned_values(node, "output", node.outputs[len(states) :])
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
            _move_scan_axis(name, lane, out)


def _scanned_values(node: Node, kind: str, names: Sequence[str]) -> list[Lane]:
    axes, directions = (node.attribute(f"scan_{kind}_{option}", ()) for option in ("axes", "directions"))
    return [
        Lane(name, axes[position] if axes else 0, bool(directions and directions[position]))
        for position, name in enumerate(names)
    ]


def _body(node: Node, scanned: Sequence[Lane], last: str, out: Rewriter) -> LoopBody:
    graph = node.attribute("body")
    body = LoopBody(out)
    states = len(graph.input) - len(scanned)
    for name, inner in zip(node.inputs, graph.input[:states], strict=False):
        body.input(out.element_type(name), name=inner.name)
    for lane, inner in zip(scanned, graph.input[states:], strict=True):
        index = body.emit("Sub", [last, body.turn]) if lane.backward else body.turn
        body.emit("Gather", [lane.name, index], [inner.name], axis=lane.axis)
    body.enclose(node.attributes["body"])
    for position, value in enumerate(graph.output):
        body.output(body.emit("Identity", [value.name]), returned_type(node.output(position), value, out))
    return body


def _move_scan_axis(stacked: str, lane: Lane, out: Rewriter) -> None:
    """Move the first dimension of a stacked output to the scan axis."""
    if not lane.axis:
        out.emit("Identity", [stacked], [lane.name])
        return
    remaining = list(range(1, out.rank(lane.name)))
    out.emit("Transpose", [stacked], [lane.name], perm=[*remaining[: lane.axis], 0, *remaining[lane.axis :]])
