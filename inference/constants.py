"""Constant values: initializers, Constant nodes, and values derived by Identity, Cast and Shape."""

from __future__ import annotations

from opshift.inference.facts import InferenceScope
from opshift.model.element_types import BY_NUMBER
from opshift.model.node import Node, Tensor
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.tensors import read_sparse_tensor, read_tensor

SCALAR_ATTRIBUTES = (
    ("value_int", "int64", int),
    ("value_float", "float", float),
    ("value_string", "string", bytes),
)
"""Scalar attributes of Constant: name, element type and Python type; with an `s` appended, a list of them."""

INTEGER_RANGES = {
    **{f"int{bits}": range(-(2 ** (bits - 1)), 2 ** (bits - 1)) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": range(2**bits) for bits in (8, 16, 32, 64)},
}
"""Values of each integer type."""

FLOAT_INTEGER_RANGES = {
    name: range(-(2**digits), 2**digits + 1)
    for name, digits in (("bfloat16", 8), ("float16", 11), ("float", 24), ("double", 53))
}
"""Range of integers that each floating-point type represents exactly: 2 to the number of significand bits."""

EXACT_INTEGER_RANGES = {**INTEGER_RANGES, **FLOAT_INTEGER_RANGES}
"""Range of integers that each numeric type represents exactly."""

WIDER_FLOATS = {"float": ("double",), "float16": ("float", "double"), "bfloat16": ("float", "double")}
"""Floating-point types that represent every value of a narrower one."""


def find_constant(scope: InferenceScope, name: str) -> Tensor | None:
    """Return the value of a constant, propagated through Identity, exact Cast and Shape of a known shape."""
    chain: list[Node] = []
    found = _chain_start(scope, name, chain)
    for node in reversed(chain):
        found = _cast(found, node) if node.op_type == "Cast" else found
    return found


def _chain_start(scope: InferenceScope, name: str, chain: list[Node]) -> Tensor | None:
    """Return the constant at the start of a chain of Identity and Cast nodes; collect these in `chain`."""
    current: InferenceScope | None = scope
    while name and current is not None:
        if not current.is_local(name):
            current = current.parent
            continue
        initializer = current.initializer(name)
        # An initializer that is also a graph input is only a default value: callers may override it.
        if initializer is not None:
            return None if current.is_overridable(name) else read_tensor(initializer)
        sparse = current.sparse_initializer(name)
        if sparse is not None:
            return None if current.is_overridable(name) else read_sparse_tensor(sparse)
        producer = current.producer(name)
        if producer is None or canonical_domain(producer.node.domain) != DEFAULT_DOMAIN:
            return None
        node = producer.node
        if node.has_attribute_references:
            return None
        if node.op_type not in ("Identity", "Cast"):
            return _value_of_node(node, current)
        chain.append(node)
        name = node.input(0)
    return None


def _value_of_node(node: Node, scope: InferenceScope) -> Tensor | None:
    if node.op_type == "Constant":
        return read_constant_node(node)
    shape = scope.shape(node.input(0)) if node.op_type == "Shape" and not node.attributes else None
    return None if shape is None or None in shape else Tensor("int64", (len(shape),), shape)


def read_constant_node(node: Node) -> Tensor | None:
    """Return the value of a Constant node, from any of its attributes."""
    for name, element_type, kind in SCALAR_ATTRIBUTES:
        if name in node.attributes:
            value = node.attribute(name)
            return Tensor(element_type, (), (value,)) if isinstance(value, kind) else None
        if f"{name}s" in node.attributes:
            values = node.attribute(f"{name}s")
            is_list = isinstance(values, tuple) and all(isinstance(each, kind) for each in values)
            return Tensor(element_type, (len(values),), values) if is_list else None
    value = node.attribute("value")
    return read_tensor(value) if hasattr(value, "data_type") else value if isinstance(value, Tensor) else None


def _cast(tensor: Tensor | None, node: Node) -> Tensor | None:
    """Cast a constant if the target type represents every value exactly; return `None` otherwise."""
    to = node.attribute("to")
    kind = BY_NUMBER.get(to) if isinstance(to, int) else None
    if tensor is None or kind is None:
        return None
    source, target = tensor.element_type, kind.name
    if source == target or target in WIDER_FLOATS.get(source, ()):
        return Tensor(target, tensor.dims, tensor.values)
    are_integers = source in (*INTEGER_RANGES, "bool") and target in EXACT_INTEGER_RANGES
    if not are_integers or not all(each in EXACT_INTEGER_RANGES[target] for each in tensor.values):
        return None
    convert = float if target in FLOAT_INTEGER_RANGES else int
    return Tensor(target, tensor.dims, tuple(map(convert, tensor.values)))
