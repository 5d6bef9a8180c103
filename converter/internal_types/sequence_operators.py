"""Replacement of sequence operators by operators on the tensors of the sequences.

A scan output of a Loop replaces a sequence to which each iteration appends a tensor. It stacks the tensors,
so all of them must have the same shape. This is certain if the shape is known, or if the sequence is
concatenated along a new axis, which fails for different shapes.
"""

from collections.abc import Sequence
from typing import NamedTuple

from opshift.converter.internal_types.sequence_pass import REMEDY, SequencePass, Stack, Tensors
from opshift.model.errors import UNKNOWN_CONSTANT, CannotConvert, UnknownShape
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
    """Return the shape of the appended tensors, or `None`; refuse tensors that may have different shapes."""
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
    """Replace ConcatFromSequence by Transpose and Reshape; with `new_axis`, by Transpose or Identity."""
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
    """Replace SequenceAt by a Gather from the stack, with strings moved to the last axis."""
    tensor, rank = stack.tensor, out.scope.rank(stack.tensor)
    # Gather strings along the last axis: onnxruntime's Gather copies only one string for each index.
    axis = rank - 1 if rank and out.scope.element_type(tensor) == "string" else 0
    if axis:
        tensor = out.emit("Transpose", [tensor], perm=[*range(1, axis + 1), 0])
    out.emit("Gather", [tensor, proto.input[1]], proto.output, origin=proto, axis=axis)


def _is_static(shape: Shape | None) -> bool:
    """Return whether all sizes are known and not 0: Reshape would replace a 0 by a size of its input."""
    return shape is not None and None not in shape and 0 not in shape


INVALID = "correct the model: this node fails in every run"


def construct(proto: NodeProto, out: SequencePass) -> None:
    """Record the tensors of the sequence that SequenceConstruct or SequenceEmpty returns."""
    node = Node.from_proto(proto)
    out.set_sequence(node.output(0), map(out.element, node.inputs))


def insert(proto: NodeProto, out: SequencePass) -> None:
    """Record the tensors of the sequence that SequenceInsert returns."""
    node = Node.from_proto(proto)
    tensors = out.tensors(node.inputs[0])
    position = _constant_position(node, 2, len(tensors), len(tensors) + 1, out)
    out.set_sequence(node.output(0), (*tensors[:position], out.element(node.inputs[1]), *tensors[position:]))


def erase(proto: NodeProto, out: SequencePass) -> None:
    """Record the tensors of the sequence that SequenceErase returns."""
    node = Node.from_proto(proto)
    tensors = out.tensors(node.inputs[0])
    position = _constant_position(node, 1, -1, len(tensors), out)
    out.set_sequence(node.output(0), (*tensors[:position], *tensors[position + 1 :]))


def select(proto: NodeProto, out: SequencePass) -> None:
    """Replace SequenceAt by Identity, or by Gather for a computed position or a stacked sequence."""
    node = Node.from_proto(proto)
    if node.inputs[0] in out.stacks:
        select_from_stack(proto, out.stacks[node.inputs[0]], out)
        return
    tensors = out.tensors(node.inputs[0])
    if out.scope.constant(node.inputs[1]) is None and out.have_equal_shapes(tensors):
        stack = Stack(out.stack_once(tensors), out.scope.shape(tensors[0]))
        select_from_stack(proto, stack, out)
    else:
        tensor = tensors[_constant_position(node, 1, -1, len(tensors), out)]
        out.emit("Identity", [tensor], node.outputs, origin=proto)


def identity(proto: NodeProto, out: SequencePass) -> None:
    """Remove an Identity of a sequence; keep an Identity of another value."""
    node = Node.from_proto(proto)
    if node.inputs[0] in out.stacks:
        out.set_stack(node.output(0), out.stacks[node.inputs[0]])
    elif node.inputs[0] in out.sequences:
        out.set_sequence(node.output(0), out.tensors(node.inputs[0]))
    else:
        out.keep(proto)


def count(proto: NodeProto, out: SequencePass) -> None:
    """Replace SequenceLength by a constant, or by the first dimension of a stacked sequence."""
    node = Node.from_proto(proto)
    if node.inputs[0] in out.stacks:
        rewrite_sequence_length(proto, out.stacks[node.inputs[0]], out)
        return
    out.constant(Tensor("int64", (), (len(out.tensors(node.inputs[0])),)), node.output(0))


def concatenate(proto: NodeProto, out: SequencePass) -> None:
    """Replace ConcatFromSequence by Concat, or by Transpose and Reshape of a stacked sequence."""
    node = Node.from_proto(proto)
    if node.inputs[0] in out.stacks:
        concatenate_stack(proto, out.stacks[node.inputs[0]], out)
        return
    tensors, axis = out.tensors(node.inputs[0]), node.attribute("axis", 0)
    if not tensors:
        reason = f"sequence {node.inputs[0]!r} is empty and has no concatenation"
        raise CannotConvert(reason, "node.invalid", remedy=INVALID)
    out.context.spend(len(tensors))
    if node.attribute("new_axis", 0):
        out.stack(tensors, axis, node.outputs, proto)
    else:
        out.emit("Concat", tensors, node.outputs, origin=proto, axis=axis)


def split(proto: NodeProto, out: SequencePass) -> None:
    """Replace SplitToSequence by Split, with Squeeze after it if the pieces lose the dimension."""
    node = Node.from_proto(proto)
    sequence, axis = node.output(0), node.attribute("axis", 0)
    lengths = _piece_lengths(node, axis, out)
    out.require_at_most(len(lengths), "tensors")
    pieces = [out.fresh(f"{sequence}_{index}") for index in range(len(lengths))]
    if pieces:
        out.emit("Split", node.inputs[:1], pieces, origin=proto, axis=axis, split=lengths)
    if not node.attribute("keepdims", 1) and not node.input(1):
        pieces = [out.emit("Squeeze", [piece], axes=[axis]) for piece in pieces]
    out.set_sequence(sequence, pieces)


def _piece_lengths(node: Node, axis: int, out: SequencePass) -> Sequence[int]:
    value, piece = node.inputs[0], 1
    if node.input(1):
        sizes = _require_constant(node.inputs[1], "the lengths of pieces", out)
        if sizes.dims:
            return sizes.values
        piece = sizes.scalar
        if not node.attribute("keepdims", 1):
            reason = "with keepdims 0 and pieces of one length, runtimes differ in the shapes of the pieces"
            raise CannotConvert(reason, "result.runtime-dependent", remedy="remove the attribute keepdims")
    shape = out.scope.shape(value)
    size = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
    if size is None:
        reason = f"dimension {axis} of {value!r} is unknown, and so is the number of its pieces"
        raise UnknownShape(reason, value)
    if piece < 1:
        reason = f"{value!r} is split into pieces of length {piece}"
        raise CannotConvert(reason, "node.invalid", remedy=INVALID)
    out.require_at_most(-(-size // piece), "tensors")
    return [min(piece, size - start) for start in range(0, size, piece)]


def _constant_position(node: Node, index: int, default: int, end: int, out: SequencePass) -> int:
    """Return the constant position in input `index`, or `default`, as a number from 0 to `end` - 1."""
    sequence, name, position = node.inputs[0], node.input(index), default
    length = len(out.tensors(sequence))
    if name:
        numbers = _require_constant(name, "a position in a sequence", out).values
        position = numbers[0] if len(numbers) == 1 else end
    found = position + length if position < 0 else position
    if not 0 <= found < end:
        reason = f"sequence {sequence!r} has {length} tensors, and no position {position}"
        raise CannotConvert(reason, "node.invalid", remedy=INVALID)
    return found


def _require_constant(name: str, meaning: str, out: SequencePass) -> Tensor:
    found = out.scope.constant(name)
    if found is None:
        remedy = f"make {name!r} a Constant, or an initializer that is not a graph input"
        reason = f"{name!r}, {meaning}, is known only at run time"
        raise CannotConvert(reason, UNKNOWN_CONSTANT, remedy=remedy)
    if found.element_type not in ("int32", "int64"):
        reason = f"{name!r}, {meaning}, is of type {found.element_type}"
        raise CannotConvert(reason, "node.invalid", remedy=INVALID)
    return found
