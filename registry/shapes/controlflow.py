"""Shapes of control flow operators, which depend on their subgraphs."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.registry.shapes.dims import common_shape, normalize_axis, unify, unknown
from opshift.registry.shapes.node_reading import input_shape, integer_attribute, integers_attribute
from opshift.registry.shapes.rule_table import Shape, ShapeContext, rule


@rule("if")
def if_(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the dimensions that both branches agree on."""
    return [
        common_shape(
            node.body_output_shape("then_branch", position), node.body_output_shape("else_branch", position)
        )
        for position in range(node.output_count)
    ]


@rule("loop")
def loop(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the outputs of Loop.

    The final state is the initial value if there are no iterations, otherwise an output of the body. Scan
    outputs get a leading dimension for the iterations, which is unknown.
    """
    states = max(node.input_count - 2, 0)
    shapes: list[Shape | None] = []
    for position in range(node.output_count):
        body = node.body_output_shape("body", position + 1)
        if position < states:
            shapes.append(common_shape(input_shape(node, position + 2), body))
        else:
            shapes.append(None if body is None else (None, *body))
    return shapes


@rule("scan")
def scan(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer states with unchanged shapes, and scan outputs with the sequence length at their axis."""
    scanned = integer_attribute(node, "num_scan_inputs")
    if scanned is None or not 0 < scanned <= node.input_count:
        return []
    states = node.input_count - scanned
    length = _sequence_length(node, states, scanned)
    shapes: list[Shape | None] = []
    for position in range(node.output_count):
        body = node.body_output_shape("body", position)
        if position < states:
            shapes.append(unify(input_shape(node, position), body))
        else:
            shapes.append(_stacked(body, length, _axis(node, "scan_output_axes", position - states)))
    return shapes


@rule("batched_scan")
def batched_scan(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer outputs with a leading batch dimension, followed by the sequence length for scan outputs."""
    scanned = integer_attribute(node, "num_scan_inputs")
    if scanned is None or not 0 < scanned < node.input_count:
        return []
    states = node.input_count - scanned - 1
    data = input_shape(node, node.input_count - 1)
    batch, length = data[:2] if data is not None and len(data) >= 2 else (None, None)
    shapes: list[Shape | None] = []
    for position in range(node.output_count):
        body = node.body_output_shape("body", position)
        if position < states:
            shapes.append(unify(input_shape(node, position + 1), None if body is None else (batch, *body)))
        else:
            shapes.append(None if body is None else (batch, length, *body))
    return shapes


def _sequence_length(node: ShapeContext, states: int, scanned: int) -> int | None:
    length: Shape | None = (None,)
    for index in range(scanned):
        shape = input_shape(node, states + index)
        declared = _axis(node, "scan_input_axes", index)
        axis = None if shape is None else normalize_axis(declared, len(shape))
        if shape is not None and axis is not None:
            length = unify(length, (shape[axis],))
    return length[0] if length else None


def _stacked(body: Shape | None, length: int | None, axis: int | None) -> Shape | None:
    if body is None:
        return None
    position = normalize_axis(axis, len(body) + 1)
    return unknown(len(body) + 1) if position is None else (*body[:position], length, *body[position:])


def _axis(node: ShapeContext, name: str, index: int) -> int | None:
    if node.attribute(name) is None:
        return 0
    axes = integers_attribute(node, name)
    return axes[index] if axes is not None and index < len(axes) else None
