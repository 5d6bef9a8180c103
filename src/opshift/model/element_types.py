"""Element types of tensors: their ONNX numbers, their names in type strings, and their storage format."""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Iterator
from types import MappingProxyType
from typing import NamedTuple

FLOAT_MAX = 3.4028234663852886e38
"""Largest finite float32. The default bounds of Clip-6 are `-FLOAT_MAX` and `FLOAT_MAX`."""

INTEGER_BITS = {f"{sign}int{width}": width for sign in ("", "u") for width in (8, 16, 32, 64)}
"""Number of bits of the integer types from 8 to 64 bits."""

ELEMENT_BITS = {
    "complex64": 64, "complex128": 128, "bfloat16": 16, "float8e4m3fn": 8, "float8e4m3fnuz": 8,
    "float8e5m2": 8, "float8e5m2fnuz": 8, "float8e8m0": 8, "uint4": 4, "int4": 4, "float4e2m1": 4,
    "uint2": 2, "int2": 2, "float6e2m3": 6, "float6e3m2": 6,
}  # fmt: skip
"""Bits of one element, for element types without a `struct` code, except strings."""


INTEGER_FIELDS = ("int32_data", "int64_data", "uint64_data")
"""Typed fields of TensorProto that store integers; elements such as float16 are stored as their bits."""


def element_bits(kind: ElementType) -> int:
    """Return the number of bits of one element; 0 for strings."""
    return 8 * struct.calcsize(f"<{kind.code}") if kind.code else ELEMENT_BITS.get(kind.name, 0)


def byte_size(kind: ElementType, count: int) -> int:
    """Return the number of bytes of `count` elements; elements smaller than a byte are packed."""
    return -(-count * element_bits(kind) // 8)


class ElementType(NamedTuple):
    """One element type: a value of `TensorProto.DataType`."""

    number: int
    name: str
    code: str
    """`struct` format of one element in `raw_data`; empty if `struct` has no format for the type."""
    field: str
    """The typed field of TensorProto that stores the elements if `raw_data` is not used."""


_ELEMENT_TYPES = (
    ElementType(1, "float", "f", "float_data"),
    ElementType(2, "uint8", "B", "int32_data"),
    ElementType(3, "int8", "b", "int32_data"),
    ElementType(4, "uint16", "H", "int32_data"),
    ElementType(5, "int16", "h", "int32_data"),
    ElementType(6, "int32", "i", "int32_data"),
    ElementType(7, "int64", "q", "int64_data"),
    ElementType(8, "string", "", "string_data"),
    ElementType(9, "bool", "?", "int32_data"),
    ElementType(10, "float16", "e", "int32_data"),
    ElementType(11, "double", "d", "double_data"),
    ElementType(12, "uint32", "I", "uint64_data"),
    ElementType(13, "uint64", "Q", "uint64_data"),
    ElementType(14, "complex64", "", "float_data"),
    ElementType(15, "complex128", "", "double_data"),
    ElementType(16, "bfloat16", "", "int32_data"),
    ElementType(17, "float8e4m3fn", "", "int32_data"),
    ElementType(18, "float8e4m3fnuz", "", "int32_data"),
    ElementType(19, "float8e5m2", "", "int32_data"),
    ElementType(20, "float8e5m2fnuz", "", "int32_data"),
    ElementType(21, "uint4", "", "int32_data"),
    ElementType(22, "int4", "", "int32_data"),
    ElementType(23, "float4e2m1", "", "int32_data"),
    ElementType(24, "float8e8m0", "", "int32_data"),
    ElementType(25, "uint2", "", "int32_data"),
    ElementType(26, "int2", "", "int32_data"),
    ElementType(27, "float6e2m3", "", "int32_data"),
    ElementType(28, "float6e3m2", "", "int32_data"),
)

BY_NUMBER = MappingProxyType({each.number: each for each in _ELEMENT_TYPES})

NAME_BY_NUMBER = MappingProxyType({each.number: each.name for each in _ELEMENT_TYPES})

BY_NAME = MappingProxyType({each.name: each for each in _ELEMENT_TYPES})


def integer_range(element_type: str) -> range | None:
    """Return the range of the values of an integer type; `None` for other types."""
    if not element_type.startswith(("int", "uint")):
        return None
    bits = element_bits(BY_NAME[element_type])
    lowest = -(2 ** (bits - 1)) if element_type.startswith("int") else 0
    return range(lowest, lowest + 2**bits)


def type_string(element_type: str) -> str:
    """Return `tensor(float)` for `float`; a type string such as `seq(tensor(float))` stays unchanged."""
    return element_type if "(" in element_type else f"tensor({element_type})"


def element_names(type_text: str) -> Iterator[str]:
    """Yield the element types in a type string: `int64` and `float` for `map(int64, tensor(float))`."""
    return (word for word in re.findall(r"\w+", type_text) if word in BY_NAME)


def round_to_float32(number: float) -> float:
    """Return a number rounded to float32; infinity if it is too large."""
    return array("f", (number,))[0]


def float_text(number: float) -> str:
    """Return the shortest text that reads as the number in float32, or else in double."""
    shortest = (f"{number:.{digits}g}" for digits in range(6, 10))
    text = next((each for each in shortest if round_to_float32(float(each)) == number), repr(number))
    return f"{text}.0" if text.lstrip("-").isdecimal() else text
