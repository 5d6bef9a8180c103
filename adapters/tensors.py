"""Read and write the values of small TensorProtos, without NumPy."""

from __future__ import annotations

import math
import struct
from typing import Any

from opshift.adapters.elsewhere import with_elements
from opshift.adapters.node import Tensor
from opshift.adapters.packed_integers import BITS, packed, unpacked
from opshift.adapters.refusal import CannotConvert
from opshift.registry.element_types import BY_NAME, BY_NUMBER

EXTERNAL = 1
"""`TensorProto.DataLocation.EXTERNAL`: the payload is in another file."""


def read_tensor(proto: Any) -> Tensor | None:
    """Return the value of a TensorProto.

    Returns:
        The tensor, or `None` if its data are external, inconsistent with its dimensions, or of an element
        type that is not supported.
    """
    kind = BY_NUMBER.get(proto.data_type)
    if kind is None or proto.data_location == EXTERNAL:
        return None
    proto = with_elements(proto)
    dims = tuple(proto.dims[:])
    if kind.name in BITS:
        raw = proto.raw_data if proto.HasField("raw_data") else (bits & 0xFF for bits in proto.int32_data)
        values: tuple[Any, ...] | None = unpacked(raw, kind.name, math.prod(dims))
    else:
        values = _values(proto, kind.code, kind.field, kind.name)
    return Tensor(kind.name, dims, values) if values is not None and len(values) == math.prod(dims) else None


def _values(proto: Any, code: str, field: str, name: str) -> tuple[Any, ...] | None:
    if code and proto.HasField("raw_data"):
        raw = proto.raw_data
        size = struct.calcsize(f"<{code}")
        return struct.unpack(f"<{len(raw) // size}{code}", raw) if len(raw) % size == 0 else None
    if name == "string":
        return tuple(proto.string_data)
    if name == "bfloat16":
        raw_bits = struct.unpack(
            f"<{len(proto.raw_data) // 2}H", proto.raw_data[: len(proto.raw_data) // 2 * 2]
        )
        return tuple(map(_bfloat16_value, raw_bits or proto.int32_data))
    if not code:
        return None
    numbers = tuple(getattr(proto, field))
    if name == "float16":
        return tuple(struct.unpack("<e", struct.pack("<H", bits & 0xFFFF))[0] for bits in numbers)
    return tuple(map(bool, numbers)) if name == "bool" else numbers


def write_tensor(proto: Any, tensor: Tensor, name: str = "") -> None:
    """Fill an empty TensorProto.

    Raises:
        CannotConvert: the element type cannot represent the values, or is not supported.
    """
    kind = BY_NAME[tensor.element_type]
    proto.data_type = kind.number
    proto.dims.extend(tensor.dims)
    if name:
        proto.name = name
    payload = pack(tensor)
    if isinstance(payload, bytes):
        proto.raw_data = payload
    else:
        proto.string_data.extend(payload)


def pack(tensor: Tensor) -> bytes | tuple[bytes, ...]:
    """Return the payload of a TensorProto: `raw_data`, or `string_data` for strings.

    Raises:
        CannotConvert: the element type cannot represent the values, or is not supported.
    """
    kind = BY_NAME.get(tensor.element_type)
    try:
        if kind and kind.name == "string":
            return tuple(map(bytes, tensor.values))
        if kind and kind.code:
            values = tensor.values if kind.code != "e" else map(_overflow_to_infinity, tensor.values)
            return struct.pack(f"<{len(tensor.values)}{kind.code}", *values)
        if kind and kind.name in BITS:
            return packed(tensor.values, kind.name)
        if kind and kind.name == "bfloat16":
            return b"".join(struct.pack("<H", _bfloat16_bits(value)) for value in tensor.values)
    except (struct.error, TypeError, OverflowError) as error:
        raise CannotConvert(
            f"a value of a constant does not fit the element type {tensor.element_type}"
        ) from error
    raise CannotConvert(f"cannot write a constant with the element type {tensor.element_type}")


def _overflow_to_infinity(value: float) -> float:
    """Replace a number outside the range of float16 by infinity, like Cast; `struct` would raise an error."""
    # 65520 is halfway between the largest float16, 65504, and the next power of two: it rounds up.
    return value if abs(value) < 65520 or value != value else math.copysign(math.inf, value)


def _bfloat16_bits(value: float) -> int:
    """Return the bits of a number rounded to bfloat16, half to even."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    if value != value:
        # Rounding could carry the bits of a NaN into those of infinity or zero.
        return 0x7FC0
    return int((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF


def _bfloat16_value(bits: int) -> float:
    """Return the value of a bfloat16, the upper half of the bits of a float."""
    return float(struct.unpack("<f", struct.pack("<I", (bits & 0xFFFF) << 16))[0])


def can_pack(tensor: Tensor) -> bool:
    """Return whether the element type is supported and can represent the values."""
    try:
        pack(tensor)
    except CannotConvert:
        return False
    return True
