"""The values of a TensorProto that an attribute holds."""

from __future__ import annotations

from math import prod
from struct import calcsize, unpack
from typing import Any

from opshift.adapters.node import Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.registry.element_types import BY_NUMBER


def tensor_of(message: Any) -> Tensor:
    """What a TensorProto holds; a `Tensor`, which an adapter wrote, is that already.

    Raises:
        CannotConvert: its values are of a type that is not read, or are not there.
    """
    if isinstance(message, Tensor):
        return message
    kind = BY_NUMBER.get(message.data_type)
    dims = tuple(message.dims)
    count = prod(dims)
    values = _values(message, kind.code, kind.field, count) if kind else None
    if kind is None or values is None or len(values) != count:
        raise CannotConvert("a tensor among its attributes does not hold its values, or is of a rare type")
    return Tensor(kind.name, dims, values)


def _values(message: Any, code: str, field: str, count: int) -> tuple[Any, ...] | None:
    layout = f"<{count}{code}"
    if code and message.raw_data and len(message.raw_data) == calcsize(layout):
        return unpack(layout, message.raw_data)
    listed = tuple(getattr(message, field))
    if code == "e":
        return tuple(unpack("<e", bits.to_bytes(2, "little"))[0] for bits in listed)
    return tuple(map(bool, listed)) if code == "?" else listed if code or field == "string_data" else None
