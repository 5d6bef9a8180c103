"""Rules for constant tensors: a type, a shape, and as many elements as the shape has, in one field."""

from __future__ import annotations

import struct

from opshift.converter.legality.findings import ERROR, WARNING
from opshift.converter.legality.rules import Flaws, rule
from opshift.converter.legality.subjects import Internal, Tensor
from opshift.registry.element_types import BY_NUMBER, ElementType

SOURCE = "onnx.proto: TensorProto"
ODD_BITS = {
    "complex64": 64, "complex128": 128, "bfloat16": 16, "float8e4m3fn": 8, "float8e4m3fnuz": 8,
    "float8e5m2": 8, "float8e5m2fnuz": 8, "float8e8m0": 8, "uint4": 4, "int4": 4, "float4e2m1": 4,
    "uint2": 2, "int2": 2, "float6e2m3": 6, "float6e3m2": 6,
}  # fmt: skip
"""The width of one element of the types that are no machine numbers."""


@rule("tensor.type", ERROR, source=SOURCE, remedy="state the element type")
def element_type(tensor: Tensor) -> Flaws:
    """A tensor has an element type."""
    number = tensor.proto.data_type
    if number not in BY_NUMBER:
        yield f"has the element type {number}, which is none" if number else "has no element type"


@rule("tensor.dims", ERROR, source="IR: Tensor Definition", remedy="state the shape of the elements")
def dims(tensor: Tensor) -> Flaws:
    """No dimension is negative."""
    if any(each < 0 for each in tensor.proto.dims):
        yield f"has the shape {list(tensor.proto.dims)}"


@rule("tensor.segment", WARNING, source=SOURCE, remedy="join the pieces: no runtime is known to read them")
def segment(tensor: Tensor) -> Flaws:
    """A tensor is in one piece."""
    if tensor.proto.HasField("segment"):
        yield "is a segment of a tensor"


@rule("tensor.single", ERROR, source=SOURCE, remedy="keep the field that has the elements")
def single(tensor: Internal) -> Flaws:
    """The elements are in one field."""
    if len(tensor.used) > 1:
        yield f"has elements in {' and '.join(tensor.used)}"


@rule("tensor.field", ERROR, source=SOURCE, remedy="write the elements to the field for their type")
def field(tensor: Internal) -> Flaws:
    """The elements are in the field for their type."""
    kind = tensor.kind
    if kind is not None:
        for used in tensor.used:
            if used != kind.field and (used != "raw_data" or kind.name == "string"):
                yield f"holds {kind.name} in {used}; the field for it is {kind.field}"


@rule(
    "tensor.size",
    ERROR,
    source="IR: Tensor Definition",
    remedy="correct the shape, or write all elements; the file may be cut off",
)
def size(tensor: Internal) -> Flaws:
    """A tensor has as many elements as its shape says."""
    kind, count, used = tensor.kind, tensor.count, tensor.used
    if kind is None or count is None or len(used) > 1 or tensor.proto.HasField("segment"):
        return
    if count and not used:
        yield f"has no elements; its shape, {list(tensor.proto.dims)}, has {count:,}"
    for name, found in used.items():
        least, most = _entries(kind, count) if name == kind.field else _bytes(kind, count)
        if not least <= found <= most and name in (kind.field, "raw_data"):
            noun = "bytes" if name == "raw_data" else f"entries in {name}"
            yield f"has {found:,} {noun}; {count:,} elements of {kind.name} have {most:,}"


@rule("tensor.bits", ERROR, source=SOURCE, remedy="clear the bits that hold no element")
def bits(tensor: Internal) -> Flaws:
    """Bits beside those of 6-bit elements are zero."""
    kind, count = tensor.kind, tensor.count
    if kind is None or width(kind) != 6 or not count:
        return
    if any(not 0 <= each < 64 for each in tensor.proto.int32_data):
        yield "has entries of more than 6 bits"
    spare = count * 6 % 8
    if spare and tensor.used.get("raw_data") == byte_size(kind, count) and tensor.proto.raw_data[-1] >> spare:
        yield "has bits after the last element"


def width(kind: ElementType) -> int:
    """The bits of one element; 0 for strings."""
    return 8 * struct.calcsize(f"<{kind.code}") if kind.code else ODD_BITS.get(kind.name, 0)


def byte_size(kind: ElementType, count: int) -> int:
    """The bytes of some elements, which lie close together."""
    return -(-count * width(kind) // 8)


def _bytes(kind: ElementType, count: int) -> tuple[int, int]:
    return byte_size(kind, count), byte_size(kind, count)


def _entries(kind: ElementType, count: int) -> tuple[int, int]:
    """How many entries a typed field has at least and at most for some elements.

    Of types below 6 bits writers fill one byte of an entry, or all four.
    """
    if width(kind) in (2, 4):
        return -(-count * width(kind) // 32), byte_size(kind, count)
    entries = 2 * count if kind.name.startswith("complex") else count
    return entries, entries
