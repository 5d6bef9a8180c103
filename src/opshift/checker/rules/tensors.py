"""Rules for constant tensors: element type, shape, and the elements in the field for their type."""

from opshift.checker.checked_nodes import CheckedTensor, InternalTensor
from opshift.checker.findings import ERROR, WARNING
from opshift.checker.rule_table import Problems, rule
from opshift.checker.rules.declared_types import element_type_problems
from opshift.model.element_types import ElementType, byte_size, element_bits
from opshift.model.offloaded_tensors import with_payload
from opshift.model.tensors import element_count

SOURCE = "onnx.proto: TensorProto"


@rule("tensor.type", ERROR, SOURCE, "set data_type to the type of the elements")
def element_type(tensor: CheckedTensor) -> Problems:
    """A tensor must have a valid element type."""
    return element_type_problems(tensor.proto.data_type)


@rule("tensor.dims", ERROR, "IR: Tensor Definition", "set dims to the shape of the elements")
def dims(tensor: CheckedTensor) -> Problems:
    """The dimensions of a tensor must not be negative."""
    if any(dim < 0 for dim in tensor.proto.dims):
        yield f"has the shape {list(tensor.proto.dims)}, with a negative dimension"


@rule("tensor.segment", WARNING, SOURCE, "join the segments: no known runtime reads them")
def segment(tensor: CheckedTensor) -> Problems:
    """A tensor should not be split into segments."""
    if tensor.proto.HasField("segment"):
        yield "is a segment of a tensor"


@rule("tensor.single", ERROR, SOURCE, "keep only the field with the correct elements")
def single_field(tensor: InternalTensor) -> Problems:
    """The elements of a tensor must be in only one field."""
    if len(tensor.filled_fields) > 1:
        yield f"has elements in {' and '.join(tensor.filled_fields)}"


@rule("tensor.field", ERROR, SOURCE, "store the elements in the field for their type")
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
    "IR: Tensor Definition",
    "correct the shape, or store all elements; the file may be truncated",
)
def size(tensor: InternalTensor) -> Problems:
    """A tensor must have the number of elements that its shape requires."""
    kind, used = tensor.kind, tensor.filled_fields
    count = element_count(tensor.proto)
    if kind is None or count is None or len(used) > 1 or tensor.proto.HasField("segment"):
        return
    if count and not used:
        yield f"has no elements; its shape {list(tensor.proto.dims)} requires {count:,}"
    for name, actual in used.items():
        size_in_bytes = byte_size(kind, count)
        minimum, maximum = _entries(kind, count) if name == kind.field else (size_in_bytes, size_in_bytes)
        if not minimum <= actual <= maximum and name in (kind.field, "raw_data"):
            unit = "bytes" if name == "raw_data" else f"entries in {name}"
            yield f"has {actual:,} {unit}; {count:,} elements of {kind.name} require {maximum:,}"


@rule("tensor.bits", ERROR, SOURCE, "clear the unused bits")
def unused_bits(tensor: InternalTensor) -> Problems:
    """The unused bits of a tensor with 6-bit elements must be zero."""
    kind, count = tensor.kind, element_count(tensor.proto)
    if kind is None or element_bits(kind) != 6 or not count:
        return
    if any(not 0 <= entry < 64 for entry in tensor.proto.int32_data):
        yield "has entries of more than 6 bits"
    tail = count * 6 % 8  # bits of the last byte that belong to an element
    raw = with_payload(tensor.proto).raw_data
    if tail and len(raw) == byte_size(kind, count) and raw[-1] >> tail:
        yield "has nonzero bits after the last element"


@rule("tensor.text", WARNING, SOURCE, "store the bytes as a tensor of uint8")
def valid_text(tensor: InternalTensor) -> Problems:
    """The strings of a tensor must be valid UTF-8."""
    try:
        b" ".join(tensor.proto.string_data).decode()
    except UnicodeDecodeError:
        yield "contains strings that are not valid UTF-8"


def _entries(kind: ElementType, count: int) -> tuple[int, int]:
    """Return the minimum and maximum number of entries of a typed field.

    For types of 2 and 4 bits, some writers fill only one byte of an int32 entry, others all four.
    """
    if element_bits(kind) in (2, 4):
        return -(-count * element_bits(kind) // 32), byte_size(kind, count)
    # A complex number has two entries: its real and its imaginary part.
    entries = 2 * count if kind.name.startswith("complex") else count
    return entries, entries
