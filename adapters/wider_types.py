"""Which element types hold every value of another, for operators that compute the same in them."""

from __future__ import annotations

from collections.abc import Collection

from opshift.registry.models import Bridge

FLOATS = {"float16": ("float", "double"), "bfloat16": ("float", "double")}
INTEGERS = {
    "int8": ("int32", "int64", "int16"),
    "int16": ("int32", "int64"),
    "int32": ("int64",),
    "uint8": ("int32", "int64", "int16", "uint16", "uint32", "uint64"),
    "uint16": ("int32", "int64", "uint32", "uint64"),
    "uint32": ("int64", "uint64"),
}
"""The types that runtimes implement most widely come first."""
HELD_BY_FLOATS = {
    **dict.fromkeys(("int8", "uint8", "int16", "uint16"), ("float", "double")),
    **dict.fromkeys(("int32", "uint32"), ("double",)),
}
BOOL = ("uint8", "int32", "int64", "float")
LIMITS = {"bool": ("uint8",), "uint8": ("int32", "int64"), "uint16": ("int32", "int64"), "uint32": ("int64",)}
"""A cast to the narrow type keeps the low bits, which of the limits of these are its own limits."""


def wider_type(element_type: str, allowed: Collection[str], bridge: Bridge | None) -> str | None:
    """The first of the `allowed` types (as `tensor(float)`) to compute in; `None` if there is none."""
    return next((each for each in _candidates(element_type, bridge) if f"tensor({each})" in allowed), None)


def _candidates(element_type: str, bridge: Bridge | None) -> tuple[str, ...]:
    if bridge is None:
        return ()
    if element_type in FLOATS:
        return FLOATS[element_type]
    if bridge == "extreme":
        return LIMITS.get(element_type, ())
    integers = INTEGERS.get(element_type, ()) if bridge in ("order", "ring") else ()
    if bridge != "order":
        return integers
    return (*integers, *HELD_BY_FLOATS.get(element_type, ()), *(BOOL if element_type == "bool" else ()))
