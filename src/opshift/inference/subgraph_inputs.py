"""Types and shapes that Loop, Scan and SequenceMap pass to the inputs of their bodies.

They are inferred only for bodies that do not declare them.
"""

from opshift.inference.facts import InferenceScope
from opshift.model.graphs import is_graph
from opshift.model.messages import NodeProto
from opshift.model.node import Node
from opshift.model.types import Shape

BATCHED_SCAN_OPSET = 8
"""Opset of the only version of Scan with a leading `sequence_lens` input and a batch dimension."""

PASSING_OPERATORS = ("Loop", "Scan", "SequenceMap")
"""Operators that pass values to their bodies. Branches of If have no inputs in a valid model."""

LOOP_COUNTER_TYPES = ("int64", "bool")
"""Element types of the first two inputs of a Loop body: the iteration number and the condition."""


def subgraph_input_type(body: InferenceScope, name: str) -> str | None:
    """Return the element type of a body input."""
    holder, position = body.owner, _position(body, name)
    if holder is None or position is None or body.parent is None:
        return None
    if holder.op_type == "Loop" and position < len(LOOP_COUNTER_TYPES):
        return LOOP_COUNTER_TYPES[position]
    found = body.parent.element_type(_outer_value(body, holder, position))
    if found is not None and holder.op_type == "SequenceMap" and found.startswith("seq(tensor("):
        return found.removeprefix("seq(tensor(").removesuffix("))")
    return found


def subgraph_input_shape(body: InferenceScope, name: str) -> Shape | None:
    """Return the shape of a body input; unknown for loop-carried values of a Loop, which may change shape."""
    holder, position = body.owner, _position(body, name)
    if holder is None or position is None or body.parent is None:
        return None
    if holder.op_type == "Loop":
        return () if position < len(LOOP_COUNTER_TYPES) else None
    passed = _outer_value(body, holder, position)
    shape = body.parent.symbolic_shape(passed)
    if shape is None or holder.op_type == "Scan":
        return shape and _iteration_shape(body, Node.from_proto(holder), position, shape)
    return None if (body.parent.element_type(passed) or "seq(").startswith("seq(") else shape


def _position(body: InferenceScope, name: str) -> int | None:
    graph = body.container
    if body.owner is None or body.owner.op_type not in PASSING_OPERATORS:
        return None
    inputs = enumerate(graph.input) if is_graph(graph) else ()
    return next((position for position, value in inputs if value.name == name), None)


def _outer_value(body: InferenceScope, holder: NodeProto, position: int) -> str:
    """Return the value of the enclosing graph that is passed to a body input."""
    index = position + (holder.op_type == "Scan" and body.opset_of("") == BATCHED_SCAN_OPSET)
    return str(holder.input[index]) if index < len(holder.input) else ""


def _iteration_shape(body: InferenceScope, scan: Node, position: int, shape: Shape) -> Shape | None:
    """Return the shape that one Scan iteration receives.

    State variables keep their shape, scan inputs lose the scan axis, and both lose the batch dimension of
    opset 8.
    """
    is_batched = body.opset_of("") == BATCHED_SCAN_OPSET
    scanned, axes = scan.attribute("num_scan_inputs", 0), scan.attribute("scan_input_axes", ())
    # The checker also infers nodes with attributes of wrong types.
    if not isinstance(scanned, int) or not isinstance(axes, tuple | list):
        return None
    states = len(scan.inputs) - is_batched - scanned
    if is_batched:
        return shape[1:] if position < states else shape[2:]
    if position < states:
        return shape
    axis = axes[position - states] if position - states < len(axes) else 0
    if not shape or not isinstance(axis, int):
        return None
    return tuple(size for index, size in enumerate(shape) if index != axis % len(shape))
