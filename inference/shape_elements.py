"""Elements of computed shapes: numbers, symbols for sizes known only at run time, or unknown."""

from math import prod

from opshift.inference.facts import InferenceScope
from opshift.inference.symbols import LARGEST_SYMBOL, Symbol, SymbolicShape
from opshift.model.element_types import BY_NAME
from opshift.model.node import Node
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.types import MAX_RANK, SMALLEST_SYMBOL

MAX_DEPTH = 16
"""Maximum number of nodes to follow from a shape to its sources."""

FORWARDING_OPERATORS = ("Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten")
"""Operators that keep the elements of their first input, and their order."""

INTEGER_TYPES = tuple(BY_NAME[name].number for name in ("int32", "int64"))
"""Types that represent sizes exactly."""


def copies_zeros(scope: InferenceScope, data: str, shape: str) -> bool:
    """Return whether a Reshape with `allowzero` has the same result without it, whatever the sizes are.

    Without it, a 0 in the shape copies a dimension of the data. So each element has to be nonzero, or the
    size of that dimension. ONNX forbids a 0 next to -1.
    """
    elements = _Elements().find(scope, shape, MAX_DEPTH)
    if elements is None:
        return False
    sizes = scope.symbolic_shape(data) or ()
    copied = (*sizes, *[None] * len(elements))
    return -1 in elements or all(
        each == size if type(each) is Symbol else bool(each)
        for each, size in zip(elements, copied, strict=False)
    )


class _Elements:
    """Elements of integer scalars and lists by scope and name, each found once."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, str], SymbolicShape | None] = {}

    def find(self, scope: InferenceScope, name: str, depth: int) -> SymbolicShape | None:
        """Return the elements of a value, `None` for each unknown one; `None` if their number is unknown."""
        current: InferenceScope | None = scope
        while current is not None and not current.is_local(name):
            current = current.parent
        if current is None or not depth or current.rank(name) not in (0, 1):
            return None
        key = id(current), name
        if key not in self._found:
            found = self._infer(current, name, depth - 1)
            self._found[key] = found if found is not None and len(found) <= MAX_RANK else None
        return self._found[key]

    def _infer(self, scope: InferenceScope, name: str, depth: int) -> SymbolicShape | None:
        constant, producer = scope.constant(name), scope.producer(name)
        if constant is not None:
            return tuple(constant.values)
        if producer is None or canonical_domain(producer.node.domain) != DEFAULT_DOMAIN:
            return None
        node = producer.node
        if node.op_type in ("Shape", "Size"):
            return _sizes(node, scope)
        parts = [self.find(scope, each, depth) for each in node.inputs[:1]]
        if node.op_type in ("Concat", "Mul"):
            parts += [self.find(scope, each, depth) for each in node.inputs[1:]]
        known = [each for each in parts if each is not None]
        if not known or len(known) < len(parts):
            return None
        if node.op_type == "Concat":
            return tuple(element for each in known for element in each)
        if node.op_type == "Mul" and len(known) == 2:
            return _products(*known)
        if node.op_type == "Gather":
            return _gathered(known[0], node, scope)
        if node.op_type == "Slice":
            return _sliced(known[0], node, scope)
        is_forwarded = node.op_type == "Cast" and node.attribute("to") in INTEGER_TYPES
        return known[0] if is_forwarded or node.op_type in FORWARDING_OPERATORS else None


def _sizes(node: Node, scope: InferenceScope) -> SymbolicShape | None:
    shape = scope.symbolic_shape(node.inputs[0])
    if shape is None or node.has_attribute_references:
        return None
    if node.op_type == "Shape":
        return shape[node.attribute("start", 0) : node.attribute("end")]
    sizes = [size for size in shape if size is not None]
    return (_number(prod(sizes), sizes),) if len(sizes) == len(shape) else (None,)


def _number(value: int, factors: list[int]) -> int | None:
    """Return a product, as a symbol if a factor is one."""
    if not any(type(each) is Symbol for each in factors):
        return value
    return Symbol(value) if SMALLEST_SYMBOL <= value < LARGEST_SYMBOL else None


def _products(first: SymbolicShape, second: SymbolicShape) -> SymbolicShape | None:
    if len(first) != len(second) and 1 not in (len(first), len(second)):
        return None
    count = max(len(first), len(second)) if first and second else 0
    pairs = zip(first * (count // (len(first) or 1)), second * (count // (len(second) or 1)), strict=True)
    return tuple(None if a is None or b is None else _number(a * b, [a, b]) for a, b in pairs)


def _gathered(elements: SymbolicShape, node: Node, scope: InferenceScope) -> SymbolicShape | None:
    indices = scope.constant(node.input(1))
    if indices is None or not all(-len(elements) <= index < len(elements) for index in indices.values):
        return None
    return tuple(elements[index] for index in indices.values)


def _sliced(elements: SymbolicShape, node: Node, scope: InferenceScope) -> SymbolicShape | None:
    """Return the elements that a forward Slice with constant inputs selects."""
    bounds = [scope.constant(name) for name in (*node.inputs[1:3], *node.inputs[4:])]
    if len(bounds) < 2 or any(each is None or len(each.values) != 1 for each in bounds):
        return None
    start, end, *steps = (each.values[0] for each in bounds if each is not None)
    return elements[start : end : steps[0] if steps else 1] if not steps or steps[0] > 0 else None
