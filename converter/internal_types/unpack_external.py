"""Nodes that decode external tensors of narrow types, whose files stay unchanged."""

from collections.abc import Mapping
from math import prod

from opshift.converter.internal_types.float_formats import all_numbers
from opshift.converter.internal_types.narrow_results import emit_low_bits
from opshift.converter.internal_types.node_writer import NodeWriter
from opshift.model.element_types import BY_NAME, BY_NUMBER, ELEMENT_BITS
from opshift.model.messages import TensorProto
from opshift.model.tensors import PACKED_BITS


def emit_unpacked(tensor: TensorProto, wider: Mapping[str, str], writer: NodeWriter) -> None:
    """Add the nodes that decode an external tensor, and turn it into one of unsigned integers."""
    element_type, dims, name = BY_NUMBER[tensor.data_type].name, tuple(tensor.dims), tensor.name
    tensor.name = writer.names.fresh(f"{name}_packed")
    bits, wide = ELEMENT_BITS[element_type], wider[element_type]
    tensor.data_type = BY_NAME["uint16" if bits > 8 else "uint8"].number
    codes = writer.emit("Cast", [tensor.name], to=BY_NAME["int32"].number)
    if bits < 8:
        tensor.dims[:] = [-(-prod(dims) * bits // 8)]
        integers = element_type if element_type in PACKED_BITS else f"uint{bits}"
        codes = _emit_unpacked_integers(codes, integers, dims, writer)
    if element_type in PACKED_BITS:
        writer.emit("Cast", [codes], name, to=BY_NAME[wide].number)
    else:
        numbers = all_numbers(element_type)
        writer.emit("Gather", [writer.shared_constant(wide, numbers), codes], name)


def _emit_unpacked_integers(packed: str, element_type: str, dims: tuple[int, ...], writer: NodeWriter) -> str:
    """Emit the integers in packed bytes."""
    column = writer.emit("Reshape", [packed, writer.constant("int64", (2,), -1, 1)])
    divisors = [1 << shift for shift in range(0, 8, PACKED_BITS[element_type])]
    rows = writer.emit("Div", [column, writer.constant("int32", (len(divisors),), *divisors)])
    flat = writer.emit("Reshape", [rows, writer.constant("int64", (1,), -1)])
    bounds = [writer.constant("int64", (1,), each) for each in (0, prod(dims))]
    integers = emit_low_bits(writer.emit("Slice", [flat, *bounds]), element_type, writer)
    return writer.emit("Reshape", [integers, writer.constant("int64", (len(dims),), *dims)])
