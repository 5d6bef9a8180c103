"""Formats of narrow floating-point types, and conversion of types, numbers and tensors to wider types."""

import math
import struct
import sys
from array import array
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from opshift.model.element_types import BY_NAME, BY_NUMBER, ELEMENT_BITS
from opshift.model.messages import TensorProto, TypeProto
from opshift.model.offloaded_tensors import EXTERNAL, with_payload
from opshift.model.tensors import PACKED_BITS, element_count, unpacked_bytes


class FloatFormat(NamedTuple):
    """Format of the numbers of a narrow floating-point type.

    Attributes:
        precision: number of significant bits.
        least: exponent of the smallest normal number.
        largest: largest finite number.
        overflow: result for a number beyond `largest` without saturation: infinity or NaN.
        has_negative_zero: whether zero has a sign.
        not_a_number: result of converting NaN to the type.
    """

    precision: int
    least: int
    largest: float
    overflow: float = math.nan
    has_negative_zero: bool = True
    not_a_number: float = math.nan

    @property
    def greatest(self) -> int:
        """Exponent of the largest number."""
        return math.frexp(self.largest)[1] - 1


FORMATS = {
    "bfloat16": FloatFormat(8, -126, float.fromhex("0x1.fep127"), math.inf),
    "float8e4m3fn": FloatFormat(4, -6, 448.0),
    "float8e4m3fnuz": FloatFormat(4, -7, 240.0, has_negative_zero=False),
    "float8e5m2": FloatFormat(3, -14, 57344.0, math.inf),
    "float8e5m2fnuz": FloatFormat(3, -15, 57344.0, has_negative_zero=False),
    # The specification does not define the result for NaN; onnx.reference returns zero.
    "float4e2m1": FloatFormat(2, 0, 6.0, not_a_number=0.0),
}


def widened_floats(data: bytes, count: int, element_type: str, wide: str) -> bytes | None:
    """Convert `raw_data` to type `wide` (bfloat16 always to float); return `None` if its size is wrong."""
    if element_type == "bfloat16":  # bfloat16 is the upper half of a float.
        if len(data) != 2 * count:
            return None
        wide_data = bytearray(2 * len(data))
        wide_data[2::4], wide_data[3::4] = data[::2], data[1::2]
        return bytes(wide_data)
    planes = _byte_planes(element_type, wide)
    wide_data = bytearray(len(planes) * len(data))
    for position, plane in enumerate(planes):
        wide_data[position :: len(planes)] = data.translate(plane)
    size = struct.calcsize(BY_NAME[wide].code)
    stored = len(wide_data) // size
    per_byte = 2 if element_type == "float4e2m1" else 1
    return bytes(wide_data[: count * size]) if stored == count + -count % per_byte else None


# Tables, because `bytes.translate` converts gigabytes in seconds.
@cache
def _byte_planes(element_type: str, wide: str) -> tuple[bytes, ...]:
    """Return translation tables: table i maps a narrow byte to byte i of its wide numbers."""
    code = BY_NAME[wide].code
    rows = [struct.pack(f"<{len(each)}{code}", *each) for each in _numbers_in_bytes(element_type)]
    return tuple(map(bytes, zip(*rows, strict=True)))


def _numbers_in_bytes(element_type: str) -> Sequence[tuple[float, ...]]:
    """Return, for each of the 256 byte values, the one or two numbers that it contains."""
    numbers = all_numbers(element_type)
    is_packed = element_type == "float4e2m1"
    return [
        (numbers[byte & 15], numbers[byte >> 4]) if is_packed else (numbers[byte],) for byte in range(256)
    ]


@cache
def all_numbers(element_type: str) -> tuple[float, ...]:
    """Return the numbers of a type, ordered by bit pattern."""
    codes = range(1 << ELEMENT_BITS[element_type])
    if element_type == "bfloat16":
        return struct.unpack(
            f"<{len(codes)}f", struct.pack(f"<{len(codes)}I", *(each << 16 for each in codes))
        )
    if element_type == "float8e8m0":
        return tuple(math.ldexp(1.0, code - 127) if code < 255 else math.nan for code in codes)
    return tuple(_number(code, ELEMENT_BITS[element_type], FORMATS[element_type]) for code in codes)


def _number(code: int, bits: int, kind: FloatFormat) -> float:
    is_negative, magnitude = divmod(code, 1 << bits - 1)
    exponent, fraction = divmod(magnitude, 1 << kind.precision - 1)
    significand = fraction + (1 << kind.precision - 1 if exponent else 0)
    number = math.ldexp(significand, max(exponent, 1) + kind.least - kind.precision)
    if number > kind.largest:
        number = kind.overflow if fraction == 0 else math.nan
    if is_negative and number == 0 and not kind.has_negative_zero:
        return math.nan
    return -number if is_negative else number


def type_numbers(wider: Mapping[str, str]) -> dict[int, int]:
    """Map the number of each narrow type in `TensorProto.DataType` to the number of its wider type."""
    return {BY_NAME[name].number: BY_NAME[wide].number for name, wide in wider.items()}


def widen_tensor(tensor: TensorProto, numbers: Mapping[int, int]) -> bool:
    """Widen a tensor of a narrow type in place; return `False` if it has external elements or is invalid."""
    if tensor.data_type not in numbers:
        return True
    found = _widened(tensor, numbers[tensor.data_type])
    if found is not None:
        for field in ("int32_data", "external_data", "data_location"):
            tensor.ClearField(field)
        tensor.raw_data, tensor.data_type = found, numbers[tensor.data_type]
    return found is not None


def _widened(tensor: TensorProto, number: int) -> bytes | None:
    """Return `raw_data` in the type with this number; `None` for external elements or invalid data."""
    if tensor.data_location == EXTERNAL and element_count(tensor) == 0:
        return b""
    name, wide = BY_NUMBER[tensor.data_type].name, BY_NUMBER[number].name
    if name in PACKED_BITS:
        unpacked = unpacked_bytes(tensor)
        return None if unpacked is None else _widened_integers(unpacked, name, wide)
    loaded, count = with_payload(tensor), element_count(tensor)
    if loaded.data_location == EXTERNAL or count is None:
        return None
    size = ELEMENT_BITS[name] // 8 or 1
    data = loaded.raw_data
    if not loaded.HasField("raw_data"):
        data = b"".join((each & (1 << 8 * size) - 1).to_bytes(size, "little") for each in loaded.int32_data)
    return widened_floats(data, count, name, wide)


def _widened_integers(data: bytes, element_type: str, wide: str) -> bytes:
    """Convert integers of one byte each to `raw_data` in the type `wide`."""
    integers = array("b" if element_type.startswith("int") else "B", data)
    converted = array(BY_NAME[wide].code, integers)
    if sys.byteorder == "big":  # the order in `raw_data` is little-endian
        converted.byteswap()
    return converted.tobytes()


def widen_type(value_type: TypeProto, numbers: Mapping[int, int]) -> None:
    """Replace the narrow element types in a TypeProto."""
    kind = value_type.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(value_type, kind)
        if tensor.elem_type in numbers:
            tensor.elem_type = numbers[tensor.elem_type]
    elif kind in ("sequence_type", "optional_type"):
        widen_type(getattr(value_type, kind).elem_type, numbers)
    elif kind == "map_type":
        widen_type(value_type.map_type.value_type, numbers)
