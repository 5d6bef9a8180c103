"""Nodes that unpack external tensors of packed integers."""

from collections.abc import Mapping
from math import prod

from opshift.converter.internal_types.narrow_results import emit_low_bits
from opshift.converter.internal_types.node_writer import NodeWriter
from opshift.model.element_types import BY_NAME, BY_NUMBER
from opshift.model.messages import TensorProto
from opshift.model.tensors import PACKED_BITS


def emit_unpacked(tensor: TensorProto, wider: Mapping[str, str], writer: NodeWriter) -> None:
    """Add the nodes that unpack an external tensor, and turn it into one of packed bytes."""
    element_type, dims, name = BY_NUMBER[tensor.data_type].name, tuple(tensor.dims), tensor.name
    tensor.name = writer.names.fresh(f"{name}_packed")
    bits, count = PACKED_BITS[element_type], prod(dims)
    tensor.data_type = BY_NAME["uint8"].number
    tensor.dims[:] = [-(-count * bits // 8)]
    packed = writer.emit("Cast", [tensor.name], to=BY_NAME["int32"].number)
    column = writer.emit("Reshape", [packed, writer.constant("int64", (2,), -1, 1)])
    divisors = [1 << shift for shift in range(0, 8, bits)]
    rows = writer.emit("Div", [column, writer.constant("int32", (len(divisors),), *divisors)])
    flat = writer.emit("Reshape", [rows, writer.constant("int64", (1,), -1)])
    bounds = [writer.constant("int64", (1,), each) for each in (0, count)]
    integers = emit_low_bits(writer.emit("Slice", [flat, *bounds]), element_type, writer)
    shaped = writer.emit("Reshape", [integers, writer.constant("int64", (len(dims),), *dims)])
    writer.emit("Cast", [shaped], name, to=BY_NAME[wider[element_type]].number)
