"""Values of Constant nodes, integer ranges of types, and casts without rounding."""

from opshift.model.element_types import INTEGER_BITS, integer_range
from opshift.model.node import Node, Tensor
from opshift.model.tensors import read_sparse_tensor, read_tensor
from opshift.model.types import Symbol

SCALAR_ATTRIBUTES = (
    ("value_int", "int64", int),
    ("value_float", "float", float),
    ("value_string", "string", bytes),
)
"""Scalar attributes of Constant with element type and Python type. List attributes have an `s` appended."""

_VALUE_ATTRIBUTES = frozenset(
    ("value", "sparse_value", *(f"{name}{end}" for name, _, _ in SCALAR_ATTRIBUTES for end in ("", "s")))
)

INTEGER_RANGES = {name: numbers for name in INTEGER_BITS if (numbers := integer_range(name)) is not None}
"""Range of the values of each integer type, from 8 to 64 bits."""

FLOAT_INTEGER_RANGES = {
    name: range(-(2**digits), 2**digits + 1)
    for name, digits in (("bfloat16", 8), ("float16", 11), ("float", 24), ("double", 53))
}
"""Ranges of integers that floating-point types represent exactly, such as up to 2 ** 24 for float."""

EXACT_INTEGER_RANGES = {**INTEGER_RANGES, **FLOAT_INTEGER_RANGES}
"""Ranges of integers that integer and floating-point types represent exactly."""

SIZE_TYPES = ("int32", "int64")
"""Types of elements that may be symbols: both hold every tensor size in practice."""

WIDER_FLOATS = {"float": ("double",), "float16": ("float", "double"), "bfloat16": ("float", "double")}
"""Maps a floating-point type to the wider types that represent all of its values."""


def has_several_values(node: Node) -> bool:
    """Return whether a Constant node is invalid because several of its attributes are values."""
    return len(_VALUE_ATTRIBUTES.intersection(node.attributes)) > 1


def read_constant_node(node: Node) -> Tensor | None:
    """Return the value of a Constant node from its only value attribute; `None` if it cannot be read."""
    if has_several_values(node):
        return None
    for name, element_type, kind in SCALAR_ATTRIBUTES:
        if name in node.attributes:
            value = node.attribute(name)
            return Tensor(element_type, (), (value,)) if isinstance(value, kind) else None
        if f"{name}s" in node.attributes:
            values = node.attribute(f"{name}s")
            is_list = isinstance(values, tuple) and all(isinstance(each, kind) for each in values)
            return Tensor(element_type, (len(values),), values) if is_list else None
    sparse = node.attribute("sparse_value")
    if hasattr(sparse, "indices"):
        return read_sparse_tensor(sparse)
    value = node.attribute("value")
    return read_tensor(value) if hasattr(value, "data_type") else value if isinstance(value, Tensor) else None


def cast(tensor: Tensor, target: str) -> Tensor | None:
    """Cast elements if no known number changes, or from integers to bool; return `None` otherwise."""
    source, values = tensor.element_type, tensor.values
    if source == target or target in WIDER_FLOATS.get(source, ()):
        return Tensor(target, tensor.dims, values)
    is_number = source in EXACT_INTEGER_RANGES or source == "bool"
    if not is_number or target not in (*EXACT_INTEGER_RANGES, "bool"):
        return None
    # For a float, `in` would iterate over the range: compare integers only.
    if source in FLOAT_INTEGER_RANGES and not all(map(_may_be_integer, values)):
        return None
    if target == "bool":
        return (
            None
            if source in FLOAT_INTEGER_RANGES
            else Tensor(target, tensor.dims, tuple(map(_truth_of, values)))
        )
    return _cast_integers(tensor, target)


def _may_be_integer(element: object) -> bool:
    return not isinstance(element, float) or element.is_integer()


def _truth_of(element: int | None) -> bool | None:
    return None if element is None or type(element) is Symbol else bool(element)


def _cast_integers(tensor: Tensor, target: str) -> Tensor | None:
    """Cast numbers without a fraction; `None` if one is out of range.

    Symbols stay symbols in `SIZE_TYPES`, else are unknown.
    """
    convert, allowed = float if target in FLOAT_INTEGER_RANGES else int, EXACT_INTEGER_RANGES[target]
    values: list[int | float | None] = []
    for each in tensor.values:
        if each is None or type(each) is Symbol:
            values.append(each if target in SIZE_TYPES else None)
        elif int(each) in allowed:
            values.append(convert(each))
        else:
            return None
    return Tensor(target, tensor.dims, tuple(values))
