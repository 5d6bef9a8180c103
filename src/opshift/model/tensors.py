"""Read and write the values of small TensorProtos, without NumPy."""

import math
import struct
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from itertools import accumulate, zip_longest
from operator import mul
from typing import Any, TypeAlias

from opshift.model.element_types import BY_NAME, BY_NUMBER, ElementType
from opshift.model.errors import CannotConvert
from opshift.model.messages import SparseTensorProto, TensorProto
from opshift.model.node import Tensor
from opshift.model.offloaded_tensors import EXTERNAL, with_payload

DATA_FIELDS = (
    "float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data", "raw_data",
)  # fmt: skip
"""The fields of a TensorProto that hold elements."""


SIZES = {kind.code: struct.calcsize(f"<{kind.code}") for kind in BY_NAME.values() if kind.code}
"""Sizes of elements in bytes, by their `struct` format."""

MAX_COUNT = 1 << 127
"""Upper limit of the element counts that `count_elements` computes.

The product of thousands of huge dimensions takes long, and has more digits than Python prints.
"""


def count_elements(dims: Iterable[int]) -> int:
    """Return the product of dimensions; `MAX_COUNT` if its absolute value is at least `MAX_COUNT`."""
    sizes = tuple(dims)
    count = 0 if 0 in sizes else 1
    for size in sizes if count else ():
        count *= size
        if abs(count) >= MAX_COUNT:
            return MAX_COUNT
    return count


def element_count(tensor: TensorProto) -> int | None:
    """Return the element count of a TensorProto's shape, at most `MAX_COUNT`; `None` for a negative size."""
    dims = tensor.dims[:]
    return None if dims and min(dims) < 0 else count_elements(dims)


def read_tensor(proto: TensorProto) -> Tensor | None:
    """Return the value of a TensorProto.

    Return `None` for external data, inconsistent dimensions, and element types that are not supported.
    """
    kind = BY_NUMBER.get(proto.data_type)
    if kind is None or proto.data_location == EXTERNAL:
        return None
    dims = tuple(proto.dims[:])
    count = count_elements(dims)
    values: tuple[Any, ...] | None
    if kind.name in PACKED_BITS:
        unpacked = unpacked_bytes(proto)
        is_signed = kind.name.startswith("int")
        values = None if unpacked is None else tuple(array("b" if is_signed else "B", unpacked))
    else:
        values = _decode_values(with_payload(proto), kind, count)
    is_complete = values is not None and len(values) == count
    return Tensor(kind.name, dims, values) if values is not None and is_complete else None


def unpacked_bytes(proto: TensorProto) -> bytes | None:
    """Return the elements of an int4, uint4, int2 or uint2 tensor, one byte per element.

    Return `None` for external data and inconsistent dimensions.
    """
    proto, name, count = with_payload(proto), BY_NUMBER[proto.data_type].name, count_elements(proto.dims)
    numbers = proto.int32_data
    payload = proto.raw_data if proto.HasField("raw_data") else bytes(number & 0xFF for number in numbers)
    if proto.data_location == EXTERNAL or len(payload) != -(count * PACKED_BITS[name] // -8):
        return None
    tables = _byte_tables(name)
    unpacked = bytearray(len(payload) * len(tables))
    for position, table in enumerate(tables):
        unpacked[position :: len(tables)] = payload.translate(table)
    return bytes(unpacked[:count])


def _decode_values(proto: TensorProto, kind: ElementType, count: int) -> tuple[Any, ...] | None:
    _, name, code, field = kind
    if code and proto.HasField("raw_data"):
        raw = proto.raw_data
        return struct.unpack(f"<{count}{code}", raw) if len(raw) == count * SIZES[code] else None
    if name == "string":
        return tuple(proto.string_data)
    if name == "bfloat16":
        bits: Iterable[int] = proto.int32_data
        if proto.HasField("raw_data"):
            raw = proto.raw_data
            if len(raw) % 2:
                return None
            bits = struct.unpack(f"<{len(raw) // 2}H", raw)
        return tuple(map(_bfloat16_value, bits))
    if not code:
        return None
    numbers = tuple(getattr(proto, field))
    if name == "float16":
        return tuple(struct.unpack("<e", struct.pack("<H", bits & 0xFFFF))[0] for bits in numbers)
    return tuple(map(bool, numbers)) if name == "bool" else numbers


Payload: TypeAlias = bytes | tuple[bytes, ...]
"""Elements of a TensorProto: `raw_data`, or `string_data` for strings."""


def payload_size(payload: Payload) -> int:
    """Return the size of a payload in bytes."""
    return len(payload) if isinstance(payload, bytes) else sum(map(len, payload))


def write_tensor(proto: TensorProto, tensor: Tensor, name: str = "", payload: Payload | None = None) -> None:
    """Fill an empty TensorProto; without `payload`, call `pack_tensor`, which may raise CannotConvert."""
    proto.data_type = BY_NAME[tensor.element_type].number
    proto.dims.extend(tensor.dims)
    if name:
        proto.name = name
    if payload is None:
        payload = pack_tensor(tensor)
    if isinstance(payload, bytes):
        proto.raw_data = payload
    else:
        proto.string_data.extend(payload)


def pack_tensor(tensor: Tensor) -> Payload:
    """Return the payload of a TensorProto: `raw_data`, or `string_data` for strings.

    Raises:
        CannotConvert: the element type cannot represent the values, or is not supported.
    """
    element_type, _, values = tensor
    kind = BY_NAME.get(element_type)
    try:
        if kind and kind.code:
            if kind.code == "e":
                values = tuple(map(_overflow_to_infinity, values))
            return _packer(kind.code, len(values))(*values)
        if kind and kind.name == "string":
            return tuple(map(bytes, values))
        if kind and kind.name in PACKED_BITS:
            return pack_integers(values, kind.name)
        if kind and kind.name == "bfloat16":
            return b"".join(struct.pack("<H", _bfloat16_bits(value)) for value in values)
    except (struct.error, TypeError, OverflowError) as error:
        reason = f"a constant has a value that {element_type} cannot represent"
        raise CannotConvert(reason, "value.inexact") from error
    reason = f"cannot write a constant with the element type {element_type}"
    raise CannotConvert(reason, "type.unsupported", subject=element_type)


@lru_cache(maxsize=256)
def _packer(code: str, count: int) -> Callable[..., bytes]:
    """Return a function that packs `count` numbers; cached, because most constants have one of few sizes."""
    return struct.Struct(f"<{count}{code}").pack


def _overflow_to_infinity(value: float) -> float:
    """Replace a number beyond float16 by infinity, as Cast does, where `struct` would raise an error."""
    # 65520 is halfway between the largest float16, 65504, and the next power of two: it rounds up.
    return value if abs(value) < 65520 or value != value else math.copysign(math.inf, value)


def _bfloat16_bits(value: float) -> int:
    """Return the bits of a number rounded to bfloat16, half to even."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    if value != value:
        # Rounding could turn the bits of a NaN into infinity or zero: keep only its sign.
        return int(0x7FC0 | bits >> 16 & 0x8000)
    return int((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF


def _bfloat16_value(bits: int) -> float:
    """Return the value of a bfloat16, the upper half of the bits of a float."""
    return float(struct.unpack("<f", struct.pack("<I", (bits & 0xFFFF) << 16))[0])


def has_inexact_nan(tensor: Tensor) -> bool:
    """Return whether a tensor has a NaN that `pack_tensor` may write with different bits.

    A Python number has the 64 bits of a double: conversion from and to smaller types may change a NaN.
    """
    is_smaller = tensor.element_type in ("bfloat16", "float", "float16")
    return is_smaller and any(value != value for value in tensor.values)


def can_pack_tensor(tensor: Tensor) -> bool:
    """Return whether an element type is supported and can represent the values."""
    try:
        pack_tensor(tensor)
    except CannotConvert:
        return False
    return True


PACKED_BITS = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}
"""Number of bits of each packed element type."""


def packed_range(element_type: str) -> range:
    """Return the range of the values of a packed element type: -8 to 7 for int4."""
    size = 1 << PACKED_BITS[element_type]
    return range(-size // 2, size // 2) if element_type.startswith("int") else range(size)


def pack_integers(values: Sequence[int], element_type: str) -> bytes:
    """Return the packed bytes of integers; unused bits of the last byte are zero.

    Raises:
        OverflowError: an integer is out of the range of the element type.
    """
    bits, modulus = PACKED_BITS[element_type], 1 << PACKED_BITS[element_type]
    if not all(value in packed_range(element_type) for value in values):
        raise OverflowError(f"a value is out of the range of {element_type}")
    shifts = range(0, 8, bits)
    rows = zip_longest(*(values[offset :: len(shifts)] for offset in range(len(shifts))), fillvalue=0)
    payload = bytearray()
    for row in rows:
        payload.append(sum(value % modulus << shift for value, shift in zip(row, shifts, strict=True)))
    return bytes(payload)


# Byte tables, because `bytes.translate` unpacks gigabytes in seconds.
@cache
def _byte_tables(element_type: str) -> tuple[bytes, ...]:
    """Return one table per integer in a packed byte; each maps the packed byte to that integer as a byte."""
    bits = PACKED_BITS[element_type]
    size, is_signed = 1 << bits, element_type.startswith("int")
    rows = ([byte >> shift & (size - 1) for byte in range(256)] for shift in range(0, 8, bits))
    if is_signed:
        rows = ([number | 256 - size if number >= size // 2 else number for number in row] for row in rows)
    return tuple(map(bytes, rows))


def require_tensor(message: TensorProto | Tensor) -> Tensor:
    """Return the value of a tensor attribute: a TensorProto of the model, or an adapter's `Tensor`.

    Raises:
        CannotConvert: the data are external, inconsistent with the dimensions, or of an unsupported element
            type.
    """
    found = message if isinstance(message, Tensor) else read_tensor(message)
    if found is None:
        problem = "external or invalid data, or an unsupported element type"
        raise CannotConvert(f"cannot read a tensor attribute: {problem}", "tensor.unreadable")
    return found


MAX_DENSE_ELEMENTS = 4096
"""Maximum number of elements of a sparse tensor in dense form; bounds the memory for mostly zero tensors."""


def read_sparse_tensor(proto: SparseTensorProto, max_elements: int = MAX_DENSE_ELEMENTS) -> Tensor | None:
    """Return the value as a dense tensor; `None` if it is too large, stored externally, or invalid."""
    dims = tuple(proto.dims)
    size = count_elements(dims)
    values, indices = read_tensor(proto.values), read_tensor(proto.indices)
    if values is None or indices is None or not 0 <= size <= max_elements:
        return None
    positions = sparse_positions(indices, dims)
    if len(positions) != len(values.values) or not all(0 <= position < size for position in positions):
        return None
    zero: Any = b"" if values.element_type == "string" else type(values.values[0])() if positions else 0
    dense = [zero] * size
    for position, value in zip(positions, values.values, strict=True):
        dense[position] = value
    return Tensor(values.element_type, dims, tuple(dense))


def sparse_positions(indices: Tensor, dims: Sequence[int]) -> Sequence[int]:
    """Return the row-major position of each value of a sparse tensor; -1 for coordinates outside its shape.

    `indices` has the positions (1-D), or one row of coordinates per value (2-D).
    """
    if len(indices.dims) == 1:
        return indices.values
    rank = len(dims)
    # all positions are outside of the shape, or the shape is too large
    if not 0 < count_elements(dims) < MAX_COUNT:
        return [-1] * -(len(indices.values) // -(rank or 1))
    strides = list(accumulate(reversed(dims[1:]), mul, initial=1))[::-1] if rank else []
    positions = []
    for start in range(0, len(indices.values), rank or 1):
        row = indices.values[start : start + rank]
        is_inside = len(row) == rank and all(0 <= each < size for each, size in zip(row, dims, strict=True))
        positions.append(sum(map(mul, row, strides)) if is_inside else -1)
    return positions
