"""The values that are the same in every run: initializers, Constant nodes, and what leads from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opshift.adapters.node import Node, Tensor
from opshift.adapters.tensors import read_tensor
from opshift.converter.sparse import read_sparse
from opshift.converter.types import Shape
from opshift.registry.element_types import BY_NUMBER
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain

if TYPE_CHECKING:
    from opshift.converter.scope import Scope

PLAIN = (("value_int", "int64", int), ("value_float", "float", float), ("value_string", "string", bytes))
"""The attributes of Constant that state a plain value, or with an `s` a list of such."""
WHOLE = {
    **{f"int{bits}": range(-(2 ** (bits - 1)), 2 ** (bits - 1)) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": range(2**bits) for bits in (8, 16, 32, 64)},
}
"""Integer types, with their values."""
FLOATS = {
    name: range(-(2**digits), 2**digits + 1)
    for name, digits in (("bfloat16", 8), ("float16", 11), ("float", 24), ("double", 53))
}
"""Floating types, with the integers that each holds without a gap."""
HELD = {**WHOLE, **FLOATS}
WIDER = {"float": ("double",), "float16": ("float", "double"), "bfloat16": ("float", "double")}


def constant_of(scope: Scope, name: str) -> Tensor | None:
    """The value of `name`, followed through Identity, exact Casts and the Shape of a known shape."""
    passed: list[Node] = []
    found = _source(scope, name, passed)
    for node in reversed(passed):
        found = _cast(found, node) if node.op_type == "Cast" else found
    return found


def _source(scope: Scope, name: str, passed: list[Node]) -> Tensor | None:
    """The constant that a chain of Identity and Cast nodes, which go to `passed`, starts from."""
    here: Scope | None = scope
    while name and here is not None:
        if not here.is_local(name):
            here = here.parent
            continue
        initializer = here.initializer(name)
        if initializer is not None:
            return None if here.is_overridable(name) else read_tensor(initializer)
        sparse = here.sparse_initializer(name)
        if sparse is not None:
            return None if here.is_overridable(name) else read_sparse(sparse)
        producer = here.producer(name)
        if producer is None or canonical_domain(producer.node.domain) != DEFAULT_DOMAIN:
            return None
        node = producer.node
        if node.refers_to_caller:
            return None
        if node.op_type not in ("Identity", "Cast"):
            return _made(node, here)
        passed.append(node)
        name = node.input(0)
    return None


def _made(node: Node, scope: Scope) -> Tensor | None:
    if node.op_type == "Constant":
        return constant_node(node)
    if node.op_type == "Shape" and not node.attributes:
        return _shape_tensor(scope.shape(node.input(0)))
    return None


def _shape_tensor(shape: Shape | None) -> Tensor | None:
    if shape is None or None in shape:
        return None
    return Tensor("int64", (len(shape),), shape)


def constant_node(node: Node) -> Tensor | None:
    """The value of a Constant, in whichever of its attributes it is."""
    for name, element_type, kind in PLAIN:
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
    """A constant cast where no value can change; other casts are not followed."""
    to = node.attribute("to")
    kind = BY_NUMBER.get(to) if isinstance(to, int) else None
    if tensor is None or kind is None:
        return None
    source, target = tensor.element_type, kind.name
    if source == target or target in WIDER.get(source, ()):
        return Tensor(target, tensor.dims, tensor.values)
    held = HELD.get(target)
    if source not in (*WHOLE, "bool") or held is None or not all(each in held for each in tensor.values):
        return None
    plain = float if target in FLOATS else int
    return Tensor(target, tensor.dims, tuple(map(plain, tensor.values)))
