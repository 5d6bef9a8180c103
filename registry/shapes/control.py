"""Outputs that subgraphs compute."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.registry.shapes.context import Shape, ShapeContext
from opshift.registry.shapes.dims import axis_in, common, refined, unknown
from opshift.registry.shapes.reading import input_shape, integer, integers
from opshift.registry.shapes.table import rule


@rule("if")
def if_(node: ShapeContext) -> Sequence[Shape | None]:
    """What both branches agree on."""
    return [
        common(
            node.body_output_shape("then_branch", position), node.body_output_shape("else_branch", position)
        )
        for position in range(node.output_count)
    ]


@rule("loop")
def loop(node: ShapeContext) -> Sequence[Shape | None]:
    """A state may be its initial value or the body's; scanned values get a dimension in front."""
    states = max(node.input_count - 2, 0)
    found: list[Shape | None] = []
    for position in range(node.output_count):
        body = node.body_output_shape("body", position + 1)
        if position < states:
            found.append(common(input_shape(node, position + 2), body))
        else:
            found.append(None if body is None else (None, *body))
    return found


@rule("scan")
def scan(node: ShapeContext) -> Sequence[Shape | None]:
    """A state keeps its shape; scanned values get the sequence's dimension at their axis."""
    scanned = integer(node, "num_scan_inputs")
    if scanned is None or not 0 < scanned <= node.input_count:
        return []
    states = node.input_count - scanned
    length = _sequence_length(node, states, scanned)
    found: list[Shape | None] = []
    for position in range(node.output_count):
        body = node.body_output_shape("body", position)
        if position < states:
            found.append(refined(input_shape(node, position), body))
        else:
            found.append(_stacked(body, length, _axis(node, "scan_output_axes", position - states)))
    return found


@rule("batched_scan")
def batched_scan(node: ShapeContext) -> Sequence[Shape | None]:
    """A batch comes first everywhere, and behind it the sequence's dimension."""
    scanned = integer(node, "num_scan_inputs")
    if scanned is None or not 0 < scanned < node.input_count:
        return []
    states = node.input_count - scanned - 1
    data = input_shape(node, node.input_count - 1)
    batch, length = data[:2] if data is not None and len(data) >= 2 else (None, None)
    found: list[Shape | None] = []
    for position in range(node.output_count):
        body = node.body_output_shape("body", position)
        if position < states:
            found.append(refined(input_shape(node, position + 1), None if body is None else (batch, *body)))
        else:
            found.append(None if body is None else (batch, length, *body))
    return found


def _sequence_length(node: ShapeContext, states: int, scanned: int) -> int | None:
    length: Shape | None = (None,)
    for number in range(scanned):
        shape = input_shape(node, states + number)
        stated = _axis(node, "scan_input_axes", number)
        axis = None if shape is None else axis_in(stated, len(shape))
        if shape is not None and axis is not None:
            length = refined(length, (shape[axis],))
    return length[0] if length else None


def _stacked(body: Shape | None, length: int | None, axis: int | None) -> Shape | None:
    if body is None:
        return None
    at = axis_in(axis, len(body) + 1)
    return unknown(len(body) + 1) if at is None else (*body[:at], length, *body[at:])


def _axis(node: ShapeContext, name: str, number: int) -> int | None:
    if node.attribute(name) is None:
        return 0
    axes = integers(node, name)
    return axes[number] if axes is not None and number < len(axes) else None
