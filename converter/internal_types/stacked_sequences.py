"""Replace a sequence to which each iteration of a Loop appends a tensor by a scan output of the Loop.

A scan output stacks the tensors, so all of them must have the same shape. This is certain if the shape is
known, or if the sequence is concatenated along a new axis, which fails for different shapes.
"""

from collections.abc import Sequence
from typing import NamedTuple

from opshift.converter.internal_types.sequence_pass import REMEDY, SequencePass, Stack, Tensors
from opshift.model.errors import CannotConvert
from opshift.model.graphs import captured_names, graphs_of, passed_inputs
from opshift.model.messages import GraphProto, NodeProto, ValueInfoProto
from opshift.model.node import Node, Tensor
from opshift.model.types import Shape


class AppendedTensor(NamedTuple):
    """Tensor that a Loop body appends to a sequence, and the sequence inside and outside of the body.

    Attributes:
        tensor: tensor of the body.
        returned: sequence that the body returns.
        sequence: name of the sequence that the Loop returns.
    """

    tensor: str
    returned: ValueInfoProto
    sequence: str


def appended_tensors(loop: NodeProto, given: Sequence[Tensors | None]) -> list[AppendedTensor]:
    """Return the tensors that each iteration appends to initially empty sequences.

    `given` has the tensors of each sequence input of the body, and `None` for all other inputs.
    """
    found: list[AppendedTensor] = []
    (body,) = graphs_of(loop)
    # Scan outputs are the last outputs, so the Loop has to list all outputs before them.
    if len(loop.output) != len(body.output) - 1:
        return found
    returned_names = [value.name for value in body.output]
    carried = zip(passed_inputs(body)[2:], given[2:], body.output[1:], loop.output, strict=False)
    for received, tensors, returned, sequence in carried:
        is_returned_once = returned_names.count(returned.name) == 1 and received.name not in returned_names
        if tensors == () and sequence and is_returned_once:
            tensor = _appended_tensor(body, received.name, returned.name)
            if tensor is not None:
                found.append(AppendedTensor(tensor, returned, sequence))
    return found


def _appended_tensor(body: GraphProto, received: str, returned: str) -> str | None:
    """Return the tensor that a body appends to a sequence; `None` for any other use of the sequence."""
    readers = [
        node for node in body.node if received in node.input or _captures_any(node, (received, returned))
    ]
    if len(readers) != 1 or any(returned in node.input for node in body.node):
        return None
    node = Node.from_proto(readers[0])
    is_insert = node.op_type == "SequenceInsert" and node.outputs == (returned,)
    return node.inputs[1] if is_insert and node.inputs[0] == received and not node.input(2) else None


def _captures_any(node: NodeProto, names: Sequence[str]) -> bool:
    return any(name in names for graph in graphs_of(node) for name in captured_names(graph))


def require_equal_shapes(appended: AppendedTensor, inner: SequencePass, out: SequencePass) -> Shape | None:
    """Return the shape of the appended tensors; refuse a sequence whose tensors may have different shapes."""
    name, shape = appended.sequence, inner.scope.shape(appended.tensor)
    is_stacked = any(
        node.op_type == "ConcatFromSequence"
        and name in node.input
        and Node.from_proto(node).attribute("new_axis", 0)
        for node in out.scope.container.node
    )
    if not is_stacked and not _is_static(shape):
        reason = f"the shapes of the tensors in sequence {name!r} are unknown and may differ"
        raise CannotConvert(reason, "sequence.dynamic", remedy=REMEDY)
    return shape


def concatenate_stack(proto: NodeProto, stack: Stack, out: SequencePass) -> None:
    """Replace ConcatFromSequence by Transpose, followed by Reshape unless `new_axis` is set."""
    node = Node.from_proto(proto)
    axis, shape = node.attribute("axis", 0), stack.shape
    is_new = node.attribute("new_axis", 0)
    if is_new and axis == 0:
        out.emit("Identity", [stack.tensor], node.outputs, origin=proto)
        return
    if shape is None or not (is_new or _is_static(shape)):
        reason = f"the shape of the tensors in sequence {node.inputs[0]!r} is unknown"
        raise CannotConvert(reason, "sequence.dynamic", remedy=REMEDY)
    rank = len(shape) + is_new
    axis += rank if axis < 0 else 0
    order = [*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1)]
    if is_new:
        out.emit("Transpose", [stack.tensor], node.outputs, origin=proto, perm=order)
        return
    moved = out.emit("Transpose", [stack.tensor], perm=order)
    sizes = tuple(-1 if index == axis else size for index, size in enumerate(shape))
    out.emit("Reshape", [moved, out.constant(Tensor("int64", (rank,), sizes))], node.outputs, origin=proto)


def rewrite_sequence_length(proto: NodeProto, stack: Stack, out: SequencePass) -> None:
    """Replace SequenceLength by the size of the stack's first dimension."""
    sizes = out.emit("Shape", [stack.tensor])
    out.emit("Gather", [sizes, out.constant(Tensor("int64", (), (0,)))], proto.output, origin=proto, axis=0)


def select_from_stack(proto: NodeProto, stack: Stack, out: SequencePass) -> None:
    """Replace SequenceAt by Gather from the stack; of strings, along the last axis."""
    tensor, rank = stack.tensor, out.scope.rank(stack.tensor)
    # For each index, onnxruntime's Gather copies only the first of the strings that follow the axis.
    axis = rank - 1 if rank and out.scope.element_type(tensor) == "string" else 0
    if axis:
        tensor = out.emit("Transpose", [tensor], perm=[*range(1, axis + 1), 0])
    out.emit("Gather", [tensor, proto.input[1]], proto.output, origin=proto, axis=axis)


def _is_static(shape: Shape | None) -> bool:
    """Return whether all sizes are known and not 0: Reshape would replace a 0 by a size of its input."""
    return shape is not None and None not in shape and 0 not in shape
