"""The values that are the same in every run: initializers, Constant nodes, and what leads from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opshift.adapters.node import Node, Tensor
from opshift.converter.tensors import read_tensor
from opshift.converter.types import Shape
from opshift.registry.element_types import BY_NUMBER
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain

if TYPE_CHECKING:
    from opshift.converter.scope import Scope

WHOLE = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})


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
        producer = here.producer(name)
        if producer is None or canonical_domain(producer.node.domain) != DEFAULT_DOMAIN:
            return None
        node = producer.node
        if node.op_type not in ("Identity", "Cast"):
            return _made(node, here)
        passed.append(node)
        name = node.inputs[0]
    return None


def _made(node: Node, scope: Scope) -> Tensor | None:
    if node.op_type == "Constant":
        return constant_node(node)
    if node.op_type == "Shape" and not node.attributes:
        return _shape_tensor(scope.shape(node.inputs[0]))
    return None


def _shape_tensor(shape: Shape | None) -> Tensor | None:
    if shape is None or None in shape:
        return None
    return Tensor("int64", (len(shape),), shape)


def constant_node(node: Node) -> Tensor | None:
    """The value of a Constant, in whichever of its attributes it is."""
    if node.refers_to_caller:
        return None
    for name, element_type in (("int", "int64"), ("float", "float"), ("string", "string")):
        if f"value_{name}" in node.attributes:
            return Tensor(element_type, (), (node.attribute(f"value_{name}"),))
        if f"value_{name}s" in node.attributes:
            values = tuple(node.attribute(f"value_{name}s"))
            return Tensor(element_type, (len(values),), values)
    value = node.attribute("value")
    return value if value is None or isinstance(value, Tensor) else read_tensor(value)


def _cast(tensor: Tensor | None, node: Node) -> Tensor | None:
    """A constant cast where no value can change; other casts are not followed."""
    to = node.attribute("to")
    kind = BY_NUMBER.get(to) if isinstance(to, int) else None
    if tensor is None or kind is None:
        return None
    widened = tensor.element_type in ("float", "float16") and kind.name in ("float", "double")
    if widened or (tensor.element_type in WHOLE and kind.name == "int64") or tensor.element_type == kind.name:
        return Tensor(kind.name, tensor.dims, tensor.values)
    small = tensor.element_type in WHOLE and kind.name == "int32"
    fits = small and all(-(2**31) <= value < 2**31 for value in tensor.values)
    return Tensor(kind.name, tensor.dims, tensor.values) if fits else None
