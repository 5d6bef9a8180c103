"""Constant values: initializers, Constant nodes, and values derived by moving or casting their elements."""

import math
from collections.abc import Callable
from functools import partial
from itertools import product
from operator import mul

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


RESHAPING_OPERATORS = ("Reshape", "Squeeze", "Unsqueeze", "Flatten")
"""Operators that keep the elements and their order; inputs after the first determine the shape."""

MAX_FOLDED_ELEMENTS = 1 << 16
"""Maximum number of elements of a constant to follow through operators that move elements."""

Derivation = Callable[[Tensor], Tensor | None]
"""Computation of a value from the constant that a node reads; `None` if the result is not exact."""


def find_constant(scope: InferenceScope, name: str) -> Tensor | None:
    """Return the value of a constant, propagated through operators that move or cast its elements exactly."""
    return _find_constant(scope, name, is_shape=False)


def _find_constant(scope: InferenceScope, name: str, *, is_shape: bool) -> Tensor | None:
    """Return the value of a constant.

    A shape that a Reshape reads is followed only through Identity and Cast, to bound the recursion.
    """
    chain: list[Derivation] = []
    found = _chain_start(scope, name, chain, is_shape)
    for derive in reversed(chain):
        found = None if found is None else derive(found)
    return found


def _chain_start(scope: InferenceScope, name: str, chain: list[Derivation], is_shape: bool) -> Tensor | None:
    """Return the constant at the start of a chain of nodes; collect what these compute in `chain`."""
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
        if node.op_type == "Cast":
            chain.append(partial(_cast, node=node))
        elif node.op_type != "Identity":
            derive = None if is_shape else _derivation(node, current)
            if derive is None:
                return _value_of_node(node, current)
            chain.append(derive)
        name = node.input(0)
    return None


def _derivation(node: Node, scope: InferenceScope) -> Derivation | None:
    """Return how a node moves elements to a known shape, or `None` if it does not."""
    is_transpose = node.op_type == "Transpose"
    if not is_transpose and node.op_type not in RESHAPING_OPERATORS:
        return None
    # The shape of the output is a fact only if the inputs that determine it are the same in every run.
    if any(name and _find_constant(scope, name, is_shape=True) is None for name in node.inputs[1:]):
        return None
    shape = scope.shape(node.outputs[0])
    dims = tuple(dim for dim in shape or () if dim is not None)
    if shape is None or len(dims) < len(shape) or math.prod(dims) > MAX_FOLDED_ELEMENTS:
        return None
    return partial(_transpose, node=node, dims=dims) if is_transpose else partial(_reshape, dims=dims)


def _reshape(tensor: Tensor, dims: tuple[int, ...]) -> Tensor | None:
    is_valid = math.prod(dims) == len(tensor.values)
    return Tensor(tensor.element_type, dims, tensor.values) if is_valid else None


def _transpose(tensor: Tensor, node: Node, dims: tuple[int, ...]) -> Tensor | None:
    rank = len(tensor.dims)
    perm = tuple(node.attribute("perm") or reversed(range(rank)))
    if sorted(perm) != list(range(rank)) or tuple(tensor.dims[axis] for axis in perm) != dims:
        return None
    strides = [math.prod(tensor.dims[axis + 1 :]) for axis in perm]
    sources = (sum(map(mul, index, strides)) for index in product(*map(range, dims)))
    return Tensor(tensor.element_type, dims, tuple(tensor.values[source] for source in sources))


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
    sparse = node.attribute("sparse_value")
    if hasattr(sparse, "indices"):
        return read_sparse_tensor(sparse)
    value = node.attribute("value")
    return read_tensor(value) if hasattr(value, "data_type") else value if isinstance(value, Tensor) else None


def _cast(tensor: Tensor, node: Node) -> Tensor | None:
    """Cast a constant if the target type represents every value exactly; return `None` otherwise."""
    to = node.attribute("to")
    kind = BY_NUMBER.get(to) if isinstance(to, int) else None
    if kind is None:
        return None
    source, target = tensor.element_type, kind.name
    if source == target or target in WIDER_FLOATS.get(source, ()):
        return Tensor(target, tensor.dims, tensor.values)
    is_number = source in EXACT_INTEGER_RANGES or source == "bool"
    if not is_number or target not in EXACT_INTEGER_RANGES:
        return None
    values = tensor.values
    # Only an integer is looked up: for a float, Python would walk through the range.
    if source in FLOAT_INTEGER_RANGES and not all(map(float.is_integer, values)):
        return None
    if not all(int(each) in EXACT_INTEGER_RANGES[target] for each in values):
        return None
    convert = float if target in FLOAT_INTEGER_RANGES else int
    return Tensor(target, tensor.dims, tuple(map(convert, values)))
