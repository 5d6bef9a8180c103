"""Partial knowledge about the elements of a value: no element is negative, or all elements are equal."""

from __future__ import annotations

from opshift.inference.constants import INTEGER_RANGES
from opshift.inference.evaluator.element_facts import computing_node, defining_scope
from opshift.inference.facts import InferenceScope, Producer
from opshift.inference.symbols import is_symbol
from opshift.model.element_types import BY_NUMBER
from opshift.model.node import Node, Tensor
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.tensors import read_tensor

MAX_VALUES = 64
"""Maximum number of values that a search visits, and of elements that `nonzero_elements` returns."""

DEFAULT_NUMBER = Tensor("float", (1,), (0.0,))
"""Default `value` of ConstantOfShape."""

COUNTS = frozenset(("ArgMax", "ArgMin", "NonZero", "Shape", "Size"))
"""Operators with outputs that never have a negative element."""

COPIES = frozenset((
    "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape", "Slice", "Split",
    "Squeeze", "Tile", "Transpose", "Unsqueeze",
))  # fmt: skip
"""Operators with outputs that contain only elements of the first input."""

COMBINATIONS = {"Concat": 0, "Div": 0, "Min": 0, "Where": 1}
"""Number of leading inputs to ignore, by operator: the output is nonnegative if all other inputs are."""

WRAPPING_CASTS = frozenset(("uint32", "uint64"))
"""Types whose largest numbers become negative in a Cast to a signed type of the same size."""


def is_nonnegative(scope: InferenceScope, name: str) -> bool:
    """Return True if an integer tensor has no negative element in any run, False if this is unknown."""
    pending = [(scope, name)]
    seen = {name}
    while pending:
        user, current = pending.pop()
        owner = defining_scope(user, current)
        if owner is None or len(seen) > MAX_VALUES:
            return False
        if _is_known_nonnegative(owner, current):
            continue
        producer = computing_node(owner, current)
        sources = None if producer is None else _sources(producer, owner)
        if sources is None:
            return False
        pending += [(owner, each) for each in sources if each not in seen]
        seen.update(sources)
    return True


def uniform_element(scope: InferenceScope, name: str) -> Tensor | None:
    """Return the number that all elements of a tensor equal in every run, as a scalar; else `None`."""
    for _ in range(MAX_VALUES):
        owner = defining_scope(scope, name)
        if owner is None:
            return None
        producer = computing_node(owner, name)
        op_type = "" if producer is None or not is_standard(producer) else producer.node.op_type
        if producer is None or op_type not in COPIES:
            found = _number_of_shape(producer.node) if producer and op_type == "ConstantOfShape" else None
            return found or _only_element(owner, name)
        scope, name = owner, producer.node.input(0)
    return None


def _number_of_shape(node: Node) -> Tensor | None:
    """Return the number that a ConstantOfShape repeats, as a scalar; `None` if it cannot be read."""
    given = node.attribute("value", DEFAULT_NUMBER)
    found = given if isinstance(given, Tensor) else read_tensor(given)
    return None if found is None or len(found.values) != 1 else Tensor(found.element_type, (), found.values)


def _only_element(scope: InferenceScope, name: str) -> Tensor | None:
    """Return the common element of a constant with at most one dimension other than 1, or `None`."""
    dims = scope.shape(name)
    if dims is None or None in dims or len([each for each in dims if each != 1]) > 1:
        return None
    found = scope.constant(name)
    # compared as text, because 0.0 equals -0.0, and NaN differs from itself
    if found is None or len(set(map(repr, found.values))) != 1:
        return None
    return Tensor(found.element_type, (), found.values[:1])


def is_standard(producer: Producer) -> bool:
    """Return whether the operator of a producer is known, and in the default domain."""
    return producer.operator is not None and producer.operator.domain == DEFAULT_DOMAIN


def _is_known_nonnegative(scope: InferenceScope, name: str) -> bool:
    elements = scope.elements(name)
    return elements is not None and all(
        is_symbol(each) or (isinstance(each, int) and each >= 0) for each in elements.values
    )


def _sources(producer: Producer, scope: InferenceScope) -> list[str] | None:
    """Return values that, if nonnegative, make the output nonnegative; `None` if there are no such values."""
    node = producer.node
    if not is_standard(producer):
        return None
    if node.op_type in COUNTS or (node.op_type == "TopK" and producer.position == 1):
        return []
    if node.op_type in COPIES:
        return [node.input(0)]
    if node.op_type in COMBINATIONS:
        return list(node.inputs[COMBINATIONS[node.op_type] :])
    if node.op_type == "Range":
        return _start_of_range(producer, scope)
    return _source_of_cast(producer, scope) if node.op_type == "Cast" else None


def _start_of_range(producer: Producer, scope: InferenceScope) -> list[str] | None:
    """Return the start of a Range with a constant positive integer step, in a list; otherwise `None`."""
    inputs = producer.node.inputs
    step = scope.constant(inputs[2]) if len(inputs) == 3 else None
    if step is None or step.element_type not in INTEGER_RANGES or len(step.values) != 1:
        return None
    return [inputs[0]] if step.values[0] > 0 else None


def _source_of_cast(producer: Producer, scope: InferenceScope) -> list[str] | None:
    """Return, in a list, the input of a Cast to int64 from integers not in `WRAPPING_CASTS`; else `None`."""
    source = scope.element_type(producer.node.input(0))
    target = BY_NUMBER.get(producer.node.attribute("to", 0))
    is_exact = target is not None and target.name == "int64" and source in INTEGER_RANGES
    return [producer.node.input(0)] if is_exact and source not in WRAPPING_CASTS else None
