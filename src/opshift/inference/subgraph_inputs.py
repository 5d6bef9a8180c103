"""Types and shapes of the inputs of subgraphs, from the values that the node passes to them."""

from collections.abc import Sequence

from opshift.inference.facts import InferenceScope
from opshift.model.messages import NodeProto
from opshift.model.node import Node
from opshift.model.types import Shape, declared_dims

BATCHED_SCAN_OPSET = 8
"""Opset of the only version of Scan with a leading `sequence_lens` input and a batch dimension."""

PASSING_OPERATORS = ("Loop", "Scan", "SequenceMap")
"""Operators that pass values to their bodies. Branches of If have no inputs in a valid model."""

LOOP_COUNTER_TYPES = ("int64", "bool")
"""Element types of the first two inputs of a Loop body: the iteration number and the condition."""


def subgraph_input_type(body: InferenceScope, name: str) -> str | None:
    """Return the element type of a subgraph input, from the value that the node passes; `None` if unknown."""
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
    """Return the shape of a subgraph input; `None` if it is unknown, or may change between iterations."""
    holder, position = body.owner, _position(body, name)
    if holder is None or position is None or body.parent is None:
        return None
    if holder.op_type == "Loop":
        return _counter_shape(body, holder, name) if position < len(LOOP_COUNTER_TYPES) else None
    passed = _outer_value(body, holder, position)
    shape = body.parent.symbolic_shape(passed)
    if shape is None or holder.op_type == "Scan":
        return shape and _iteration_shape(body, Node.from_proto(holder), position, shape)
    return None if (body.parent.element_type(passed) or "seq(").startswith("seq(") else shape


def _counter_shape(body: InferenceScope, loop: NodeProto, name: str) -> Shape | None:
    """Return the shape of the iteration number or the condition in the body of a Loop.

    Runtimes pass a scalar, or the tensor with one element that the body or the node declares. The result is
    `None` if the declarations do not determine the rank.
    """
    declared = body.declared_type_proto(name)
    dims = None if declared is None else declared_dims(declared)
    if dims is not None:
        return (1,) * len(dims) if dims in ((), (1,)) else None
    given = filter(None, loop.input[: len(LOOP_COUNTER_TYPES)])
    return () if body.parent is not None and all(body.parent.rank(each) == 0 for each in given) else None


def _position(body: InferenceScope, name: str) -> int | None:
    if body.owner is None or body.owner.op_type not in PASSING_OPERATORS:
        return None
    return body.passed_positions.get(name)


def _outer_value(body: InferenceScope, holder: NodeProto, position: int) -> str:
    """Return the name of the value that the node passes to a subgraph input; empty if there is none."""
    index = position + (holder.op_type == "Scan" and body.opset_of("") == BATCHED_SCAN_OPSET)
    return str(holder.input[index]) if index < len(holder.input) else ""


def sizing_arguments(body: InferenceScope, name: str) -> Sequence[str]:
    """Return the values of the enclosing graph whose shapes determine the shape of a subgraph input.

    The shape of a loop-carried value may change: the argument is returned only if all sizes of the value are
    known, and occur in the shape of the argument.
    """
    holder, position = body.owner, _position(body, name)
    if holder is None or position is None or body.parent is None:
        return ()
    passed = _outer_value(body, holder, position)
    if holder.op_type != "Loop":
        return (passed,)
    if position < len(LOOP_COUNTER_TYPES):
        return holder.input[: len(LOOP_COUNTER_TYPES)]
    sizes, argument = body.symbolic_shape(name), body.parent.symbolic_shape(passed)
    return (passed,) if sizes and None not in sizes and {*sizes} <= {*(argument or ())} else ()


def _iteration_shape(body: InferenceScope, scan: Node, position: int, shape: Shape) -> Shape | None:
    """Return the shape of a body input in one iteration of a Scan.

    State variables keep their shape, scan inputs lose the scan axis, and both lose the batch dimension of
    opset 8.
    """
    is_batched = body.opset_of("") == BATCHED_SCAN_OPSET
    scanned, axes = scan.attribute("num_scan_inputs", 0), scan.attribute("scan_input_axes", ())
    # The checker also infers nodes with attributes of wrong types: their shapes are unknown.
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
