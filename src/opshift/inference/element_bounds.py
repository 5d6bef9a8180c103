"""Bounds of the elements of integer tensors that hold in every run, even if arithmetic wraps around."""

from __future__ import annotations

import operator
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from opshift.inference.constants import INTEGER_RANGES, SIZE_TYPES
from opshift.inference.evaluator.element_facts import computing_node, defining_scope
from opshift.inference.evaluator.numbers import divide_integers
from opshift.inference.facts import Answers, FactQuestion, InferenceScope, Producer, answered
from opshift.inference.partial_elements import COPIES, COUNTS, MAX_VALUES, is_standard
from opshift.inference.symbols import is_symbol
from opshift.model.node import Tensor

RING_OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    "Add": operator.add,
    "Mul": operator.mul,
    "Sub": operator.sub,
}
"""Operators that keep congruence modulo 2**bits, so the bounds of inputs that wrap around are valid."""

ORDERED_OPERATIONS: Mapping[str, Callable[[int, int], int | None]] = {
    "Div": divide_integers,
    "Max": max,
    "Min": min,
}
"""Operators that compare or divide integers: an input that may wrap around can be any integer of its type."""

SELECTIONS = {**dict.fromkeys(COPIES, slice(1)), "Concat": slice(None), "Where": slice(1, None)}
"""By operator: slice of the inputs that contain all elements of the output."""


class Bounds(NamedTuple):
    """Interval of integers: each element is congruent to one of the integers, modulo 2**bits of its type."""

    low: int
    high: int


def element_bounds(scope: InferenceScope, name: str) -> Bounds | None:
    """Return the bounds of the elements of a value; `None` if they are unknown."""
    owner = defining_scope(scope, name)
    return None if owner is None else owner.bounds_facts.of(name, owner)


def nonzero_elements(scope: InferenceScope, name: str) -> tuple[bool, ...] | None:
    """Return, for each element of a 1-D integer tensor, whether it is known to differ from 0 in every run.

    Return `None` if the length is unknown or above `MAX_VALUES`.
    """
    shape = scope.shape(name)
    if shape is None or len(shape) != 1 or shape[0] is None or shape[0] > MAX_VALUES:
        return None
    owner = defining_scope(scope, name)
    parts = [
        (each, scope.shape(each)) for each in _concat_inputs(computing_node(owner, name) if owner else None)
    ]
    lengths = [dims[0] if dims and len(dims) == 1 else None for _, dims in parts]
    if None in lengths or sum(length or 0 for length in lengths) != shape[0]:
        parts, lengths = [(name, shape)], [shape[0]]
    are_nonzero = [
        _is_nonzero(element_bounds(scope, part), scope.element_type(part))
        for (part, _), length in zip(parts, lengths, strict=True)
        for _ in range(length or 0)
    ]
    elements = scope.elements(name)
    values = [None] * len(are_nonzero) if elements is None else elements.values
    return tuple(
        is_nonzero or (isinstance(value, int) and not is_symbol(value) and value != 0)
        for is_nonzero, value in zip(are_nonzero, values, strict=True)
    )


def _concat_inputs(producer: Producer | None) -> Sequence[str]:
    """Return the inputs of a Concat, and no values for other nodes."""
    is_concat = producer is not None and producer.node.op_type == "Concat" and is_standard(producer)
    return producer.node.inputs if producer is not None and is_concat else ()


def _is_nonzero(bounds: Bounds | None, element_type: str | None) -> bool:
    """Return whether no element with these bounds can be 0; False for unknown bounds."""
    if bounds is None or element_type is None:
        return False
    count = _count_of_values(element_type)
    return -(-bounds.low // count) * count > bounds.high


def _count_of_values(element_type: str) -> int:
    kept = INTEGER_RANGES[element_type]
    return kept.stop - kept.start


def _bounds_of_numbers(numbers: Iterable[int], element_type: str) -> Bounds | None:
    """Return bounds of numbers, shifted by a multiple of the number of values of the type.

    The result is `None` if the bounds contain every value of the type.
    """
    found = [*numbers]
    low, high = min(found), max(found)
    smallest, count = INTEGER_RANGES[element_type].start, _count_of_values(element_type)
    # Reduce `low`: otherwise, the bounds of repeated products would have millions of digits.
    start = (low - smallest) % count + smallest
    return Bounds(start, start + high - low) if high - low < count - 1 else None


def _in_range(bounds: Bounds | None, element_type: str) -> Bounds:
    """Return bounds of the elements themselves: the range of the type if a result may wrap around."""
    allowed = INTEGER_RANGES[element_type]
    return bounds if bounds is not None and bounds.high in allowed else Bounds(allowed[0], allowed[-1])


class ElementBounds(Answers[Bounds]):
    """Bounds of the elements of the values of one scope; each value is visited once."""

    def of(self, name: str, scope: InferenceScope) -> Bounds | None:
        """Return the bounds of the elements of a value that `scope` defines; `None` if they are unknown."""
        if name not in self._known:
            scope.evaluation.answer(self, name, scope)
        return self._known[name]

    def visit(self, name: str, scope: InferenceScope) -> Iterator[FactQuestion]:
        """Compute the bounds of a value from its elements or from its producer."""
        facts = yield from answered(
            lambda: (
                scope.element_type(name),
                scope.element_facts.elements_or_id(name, scope),
                computing_node(scope, name),
            ),
            scope,
            (),
            (),
        )
        element_type, elements, producer = facts
        if element_type not in SIZE_TYPES:
            self._known[name] = None
            return
        values = elements.values if isinstance(elements, Tensor) else ()
        # A symbol assumes that the element does not overflow, so only numbers give bounds for every run.
        numbers = [each for each in values if isinstance(each, int) and not is_symbol(each)]
        if numbers and len(numbers) == len(values):
            self._known[name] = _bounds_of_numbers(numbers, element_type)
        elif producer is None or not is_standard(producer):
            self._known[name] = None
        else:
            self._known[name] = yield from _bounds_of_result(producer, element_type, scope)


def _bounds_of_result(
    producer: Producer, element_type: str, scope: InferenceScope
) -> Generator[FactQuestion, None, Bounds | None]:
    """Return the bounds of the output of a node, from the bounds of its inputs."""
    node = producer.node
    op_type = node.op_type
    if op_type in COUNTS or (op_type == "TopK" and producer.position == 1):
        return Bounds(0, INTEGER_RANGES[element_type][-1])
    if op_type == "Cast":
        return (yield from _bounds_of_cast(node.input(0), element_type, scope))
    if op_type in ORDERED_OPERATIONS:
        inputs = yield from _bounds_of_inputs(node.inputs, scope, needs_all=False)
        known = [_in_range(each, element_type) for each in inputs]
        divisors = known[1:] if op_type == "Div" else ()
        if not known or any(each.low < 1 for each in divisors):
            return None
        return _combined(ORDERED_OPERATIONS[op_type], known, element_type)
    names = node.inputs if op_type in RING_OPERATIONS else node.inputs[SELECTIONS.get(op_type, slice(0))]
    found = yield from _bounds_of_inputs(names, scope, needs_all=True)
    parts = [each for each in found if each is not None]
    if not parts or len(parts) < len(names):
        return None
    if op_type in RING_OPERATIONS:
        return _combined(RING_OPERATIONS[op_type], parts, element_type)
    return _bounds_of_numbers((number for each in parts for number in each), element_type)


def _bounds_of_inputs(
    names: Iterable[str], scope: InferenceScope, *, needs_all: bool
) -> Generator[FactQuestion, None, list[Bounds | None]]:
    """Return the bounds of values; with `needs_all`, stop at the first value without bounds."""
    found: list[Bounds | None] = []
    for name in names:
        owner = defining_scope(scope, name)
        if owner is not None and not owner.bounds_facts.is_known(name):
            yield FactQuestion(owner.bounds_facts, name, owner)
        found.append(None if owner is None else owner.bounds_facts.of(name, owner))
        if needs_all and found[-1] is None:
            break
    return found


def _bounds_of_cast(
    name: str, element_type: str, scope: InferenceScope
) -> Generator[FactQuestion, None, Bounds | None]:
    """Return the bounds of a Cast; `None` if the input has no integers, or one may not fit the new type."""
    source = yield from answered(lambda: scope.element_type(name), scope, (), ())
    if source not in INTEGER_RANGES:
        return None
    (found,) = yield from _bounds_of_inputs([name], scope, needs_all=True)
    bounds = _in_range(found, source)
    fits = all(number in INTEGER_RANGES[element_type] for number in bounds)
    return _bounds_of_numbers(bounds, element_type) if fits else None


def _combined(
    operation: Callable[[int, int], int | None], inputs: list[Bounds], element_type: str
) -> Bounds | None:
    """Return bounds of an operation whose largest and smallest results are at the bounds of its inputs.

    Return `None` if the result may be any element of the type.
    """
    found = inputs[0]
    for each in inputs[1:]:
        results = [operation(one, other) for one in found for other in each]
        known = [result for result in results if result is not None]
        found = Bounds(min(known), max(known))
    return _bounds_of_numbers(found, element_type)
