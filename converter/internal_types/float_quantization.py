"""QuantizeLinear to narrow floats, and DequantizeLinear of them, as arithmetic on float."""

from opshift.converter.internal_types.float_formats import FORMATS
from opshift.converter.internal_types.narrow_results import Widening, emit_rounded
from opshift.converter.internal_types.node_writer import NodeWriter
from opshift.inference.scope import Scope
from opshift.model.element_types import BY_NAME
from opshift.model.errors import CannotConvert
from opshift.model.node import Node

MAX_INDICES = 1 << 20
"""Maximum number of constant indices that repeat the scales of blocks."""


def quantizes_floats(node: Node, scope: Scope, widening: Widening) -> bool:
    """Return whether a node converts from or to narrow floats that are replaced."""
    if node.op_type not in ("QuantizeLinear", "DequantizeLinear"):
        return False
    names = node.outputs if node.op_type == "QuantizeLinear" else (node.inputs[0], *node.outputs)
    types = [scope.element_type(each) for each in names]
    return any(each in widening.wider and each in FORMATS for each in types)


def emit_quantization(node: Node, scope: Scope, widening: Widening, writer: NodeWriter) -> None:
    """Emit the arithmetic of QuantizeLinear or DequantizeLinear; scales and zero points are broadcast."""
    scale = _broadcast(node, node.inputs[1], scope, writer)
    zero = _broadcast(node, node.inputs[2], scope, writer) if node.input(2) else ""
    value, output = _to_float(node.inputs[0], writer), node.outputs[0]
    if node.op_type == "QuantizeLinear":
        value = writer.emit("Div", [value, scale])
        value = writer.emit("Add", [value, zero]) if zero else value
    else:
        value = writer.emit("Sub", [value, zero]) if zero else value
        value = writer.emit("Mul", [value, scale])
    result = scope.element_type(output) or "float"
    if result in widening.wider:
        saturates = bool(node.attribute("saturate", 1)) and node.op_type == "QuantizeLinear"
        emit_rounded(value, result, widening.wider[result], output, writer, saturates=saturates)
    else:
        writer.emit("Cast", [value], output, to=BY_NAME[result].number)


def _to_float(name: str, writer: NodeWriter) -> str:
    return writer.emit("Cast", [name], to=BY_NAME["float"].number)


def _broadcast(node: Node, name: str, scope: Scope, writer: NodeWriter) -> str:
    """Return scales or zero points as float, in a shape that broadcasts with the data."""
    data, value = node.inputs[0], _to_float(name, writer)
    rank, own_rank = scope.rank(data), scope.rank(node.inputs[1])
    if own_rank == 0:
        return value
    if rank is None or own_rank is None:
        reason = f"the rank of {data!r} or {node.inputs[1]!r} is unknown"
        raise CannotConvert(reason, "unknown.shape", remedy="declare their shapes")
    axis, block_size = node.attribute("axis", 1) % (rank or 1), node.attribute("block_size", 0)
    if not block_size:
        dims = (-1, *[1] * (rank - 1 - axis)) if rank else ()
        return writer.emit("Reshape", [value, writer.constant("int64", (len(dims),), *dims)])
    shape = scope.shape(data)
    size = shape[axis] if shape else None
    if size is None or size > MAX_INDICES:
        reason = f"dimension {axis} of {data!r} is unknown or too large"
        raise CannotConvert(reason, "unknown.shape", remedy=f"declare the shape of {data!r}")
    indices = writer.constant("int64", (size,), *(each // block_size for each in range(size)))
    return writer.emit("Gather", [value, indices], axis=axis)
