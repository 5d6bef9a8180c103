"""Small constants out of and into TensorProto, without numpy."""

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
"""`TensorProto.DataLocation`: the payload is in another file."""


def read_tensor(proto: Any) -> Tensor | None:
    """The value of a TensorProto; `None` if it is elsewhere, inconsistent, or of a type that is not read."""
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
        halves = struct.unpack(
            f"<{len(proto.raw_data) // 2}H", proto.raw_data[: len(proto.raw_data) // 2 * 2]
        )
        return tuple(map(_upper_half, halves or proto.int32_data))
    if not code:
        return None
    listed = tuple(getattr(proto, field))
    if name == "float16":
        return tuple(struct.unpack("<e", struct.pack("<H", bits & 0xFFFF))[0] for bits in listed)
    return tuple(map(bool, listed)) if name == "bool" else listed


def write_tensor(proto: Any, tensor: Tensor, name: str = "") -> None:
    """Fill an empty TensorProto."""
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
    """The values as a TensorProto holds them.

    Raises:
        CannotConvert: the element type cannot hold them, or is not written here.
    """
    kind = BY_NAME.get(tensor.element_type)
    try:
        if kind and kind.name == "string":
            return tuple(map(bytes, tensor.values))
        if kind and kind.code:
            values = tensor.values if kind.code != "e" else map(_in_half_range, tensor.values)
            return struct.pack(f"<{len(tensor.values)}{kind.code}", *values)
        if kind and kind.name in BITS:
            return packed(tensor.values, kind.name)
        if kind and kind.name == "bfloat16":
            return b"".join(struct.pack("<H", _bfloat16(value)) for value in tensor.values)
    except (struct.error, TypeError, OverflowError) as error:
        raise CannotConvert(f"a value does not fit the type it would take, {tensor.element_type}") from error
    raise CannotConvert(f"constants of type {tensor.element_type} are not written")


def _in_half_range(value: float) -> float:
    """A number that 16 bits cannot hold becomes infinite, as a cast would make it."""
    return value if abs(value) < 65520 or value != value else math.copysign(math.inf, value)


def _bfloat16(value: float) -> int:
    """The upper half of the 32-bit pattern, rounded to nearest even; NaN stays NaN."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    if value != value:
        return 0x7FC0
    return int((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF


def _upper_half(bits: int) -> float:
    """The float whose 32-bit pattern begins with these 16 bits."""
    return float(struct.unpack("<f", struct.pack("<I", (bits & 0xFFFF) << 16))[0])


def can_pack(tensor: Tensor) -> bool:
    """Whether the type can hold the values."""
    try:
        pack(tensor)
    except CannotConvert:
        return False
    return True
