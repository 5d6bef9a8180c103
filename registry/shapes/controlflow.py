"""Output shapes of control flow operators, which depend on the outputs of subgraphs."""

from opshift.model.types import Shape
from opshift.registry.shapes.dims import common_shape, dim_at, normalize_axis, unify, unify_dims, unknown
from opshift.registry.shapes.rule_table import Shapes, rule
from opshift.registry.shapes.shape_context import ShapeContext


@rule("if")
def if_(node: ShapeContext) -> Shapes:
    """Infer the dimensions that are equal in both branches; other dimensions are unknown."""
    branches = (
        [node.body_output_shape(branch, position) for branch in ("then_branch", "else_branch")]
        for position in range(node.output_count)
    )
    return [common_shape(then_shape, else_shape) for then_shape, else_shape in branches]


@rule("loop")
def loop(node: ShapeContext) -> Shapes:
    """Infer the outputs of Loop.

    A final state is the initial state (without iterations) or an output of the body: equal dimensions are
    known. Scan outputs get a leading dimension for the iterations, which is unknown.
    """
    states = max(len(node.inputs) - 2, 0)
    bodies = [node.body_output_shape("body", position + 1) for position in range(node.output_count)]
    return [
        *(common_shape(node.shape(2 + position), body) for position, body in enumerate(bodies[:states])),
        *(None if body is None else (None, *body) for body in bodies[states:]),
    ]


@rule("scan")
def scan(node: ShapeContext) -> Shapes:
    """Infer states from initial states and the body, and scan outputs with the sequence length as an axis."""
    scanned = node.integer("num_scan_inputs")
    if scanned is None or not 0 < scanned <= len(node.inputs):
        return []
    states = len(node.inputs) - scanned
    length = _sequence_length(node, states, scanned)
    bodies = [node.body_output_shape("body", position) for position in range(node.output_count)]
    return [
        *(unify(node.shape(position), body) for position, body in enumerate(bodies[:states])),
        *(
            _stacked_shape(body, length, _axis_at(node, "scan_output_axes", position))
            for position, body in enumerate(bodies[states:])
        ),
    ]


@rule("batched_scan")
def batched_scan(node: ShapeContext) -> Shapes:
    """Infer outputs of Scan-8: a leading batch dimension, then the sequence length for scan outputs."""
    scanned = node.integer("num_scan_inputs")
    if scanned is None or not 0 < scanned < len(node.inputs):
        return []
    states = len(node.inputs) - scanned - 1
    data = node.inputs[-1]
    batch, length = data[:2] if data is not None and len(data) >= 2 else (None, None)
    bodies = [node.body_output_shape("body", position) for position in range(node.output_count)]
    batched = [None if body is None else (batch, *body) for body in bodies[:states]]
    return [
        *(unify(node.shape(position), body) for position, body in enumerate(batched, 1)),
        *(None if body is None else (batch, length, *body) for body in bodies[states:]),
    ]


def _sequence_length(node: ShapeContext, states: int, scanned: int) -> int | None:
    length = None
    for index, shape in enumerate(node.inputs[states : states + scanned]):
        declared = _axis_at(node, "scan_input_axes", index)
        axis = None if shape is None else normalize_axis(declared, len(shape))
        length = length if axis is None else unify_dims(length, dim_at(shape, axis))
    return length


def _stacked_shape(body: Shape | None, length: int | None, axis: int | None) -> Shape | None:
    if body is None:
        return None
    position = normalize_axis(axis, len(body) + 1)
    return unknown(len(body) + 1) if position is None else (*body[:position], length, *body[position:])


def _axis_at(node: ShapeContext, name: str, index: int) -> int | None:
    return 0 if node.attribute(name) is None else dim_at(node.integers(name), index)
