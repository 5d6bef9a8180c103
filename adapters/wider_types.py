"""Wider element types in which an operator computes the same result."""

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
"""Integer types to wider integer types; the types that runtimes support most widely come first."""
HELD_BY_FLOATS = {
    **dict.fromkeys(("int8", "uint8", "int16", "uint16"), ("float", "double")),
    **dict.fromkeys(("int32", "uint32"), ("double",)),
}
"""Integer types to the float types that represent all their values exactly."""
BOOL = ("uint8", "int32", "int64", "float")
"""Types for operators that only move, select or compare booleans."""
LIMITS = {"bool": ("uint8",), "uint8": ("int32", "int64"), "uint16": ("int32", "int64"), "uint32": ("int64",)}
"""Types for minima and maxima, where empty input results in a limit of the type. A cast to the narrow type
keeps the low bits, which turns a limit of these types into the same limit of the narrow type."""


def wider_type(element_type: str, allowed: Collection[str], bridge: Bridge | None) -> str | None:
    """Return the preferred wider type to compute in.

    Args:
        element_type: the element type to replace.
        allowed: the supported types, such as `tensor(float)`.
        bridge: the operator's use of its values, which determines the equivalent wider types.

    Returns:
        The element type, or `None` if no wider type is equivalent and supported.
    """
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
