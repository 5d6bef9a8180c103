"""Rules for constant tensors: element type, shape, and the elements in the field for their type."""

from __future__ import annotations

from opshift.checker.checked_nodes import CheckedTensor, InternalTensor
from opshift.checker.findings import ERROR, WARNING
from opshift.checker.rule_table import Problems, rule
from opshift.model.element_types import BY_NUMBER, ElementType, byte_size, element_bits

SOURCE = "onnx.proto: TensorProto"


@rule("tensor.type", ERROR, source=SOURCE, remedy="set data_type to the type of the elements")
def element_type(tensor: CheckedTensor) -> Problems:
    """A tensor must have a valid element type."""
    number = tensor.proto.data_type
    if number not in BY_NUMBER:
        yield f"has the unknown element type {number}" if number else "has no element type"


@rule("tensor.dims", ERROR, source="IR: Tensor Definition", remedy="set dims to the shape of the elements")
def dims(tensor: CheckedTensor) -> Problems:
    """The dimensions of a tensor must not be negative."""
    if any(dim < 0 for dim in tensor.proto.dims):
        yield f"has the shape {list(tensor.proto.dims)}, with a negative dimension"


@rule("tensor.segment", WARNING, source=SOURCE, remedy="join the segments: no known runtime reads them")
def segment(tensor: CheckedTensor) -> Problems:
    """A tensor should not be split into segments."""
    if tensor.proto.HasField("segment"):
        yield "is a segment of a tensor"


@rule("tensor.single", ERROR, source=SOURCE, remedy="keep only the field with the correct elements")
def single_field(tensor: InternalTensor) -> Problems:
    """The elements of a tensor must be in only one field."""
    if len(tensor.filled_fields) > 1:
        yield f"has elements in {' and '.join(tensor.filled_fields)}"


@rule("tensor.field", ERROR, source=SOURCE, remedy="store the elements in the field for their type")
def field(tensor: InternalTensor) -> Problems:
    """The elements of a tensor must be in the field for their type."""
    kind = tensor.kind
    if kind is not None:
        for used in tensor.filled_fields:
            if used != kind.field and (used != "raw_data" or kind.name == "string"):
                yield f"has {kind.name} elements in {used}; expected {kind.field}"


@rule(
    "tensor.size",
    ERROR,
    source="IR: Tensor Definition",
    remedy="correct the shape, or store all elements; the file may be truncated",
)
def size(tensor: InternalTensor) -> Problems:
    """A tensor must have the number of elements that its shape requires."""
    kind, count, used = tensor.kind, tensor.count, tensor.filled_fields
    if kind is None or count is None or len(used) > 1 or tensor.proto.HasField("segment"):
        return
    if count and not used:
        yield f"has no elements; its shape {list(tensor.proto.dims)} requires {count:,}"
    for name, actual in used.items():
        minimum, maximum = _entries(kind, count) if name == kind.field else _bytes(kind, count)
        if not minimum <= actual <= maximum and name in (kind.field, "raw_data"):
            unit = "bytes" if name == "raw_data" else f"entries in {name}"
            yield f"has {actual:,} {unit}; {count:,} elements of {kind.name} require {maximum:,}"


@rule("tensor.bits", ERROR, source=SOURCE, remedy="clear the unused bits")
def unused_bits(tensor: InternalTensor) -> Problems:
    """The unused bits of a tensor with 6-bit elements must be zero."""
    kind, count = tensor.kind, tensor.count
    if kind is None or element_bits(kind) != 6 or not count:
        return
    if any(not 0 <= entry < 64 for entry in tensor.proto.int32_data):
        yield "has entries of more than 6 bits"
    tail = count * 6 % 8  # bits of the last byte that belong to an element
    if (
        tail
        and tensor.filled_fields.get("raw_data") == byte_size(kind, count)
        and tensor.proto.raw_data[-1] >> tail
    ):
        yield "has nonzero bits after the last element"


def _bytes(kind: ElementType, count: int) -> tuple[int, int]:
    return byte_size(kind, count), byte_size(kind, count)


def _entries(kind: ElementType, count: int) -> tuple[int, int]:
    """Return the minimum and maximum number of entries of a typed field.

    For types of 2 and 4 bits, some writers fill only one byte of an int32 entry, others all four.
    """
    if element_bits(kind) in (2, 4):
        return -(-count * element_bits(kind) // 32), byte_size(kind, count)
    # A complex number has two entries: its real and its imaginary part.
    entries = 2 * count if kind.name.startswith("complex") else count
    return entries, entries
