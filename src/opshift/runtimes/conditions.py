"""Evaluate the restrictions of kernels for a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from opshift.inference.facts import InferenceScope, Producer
from opshift.inference.scope import Scope
from opshift.model.element_types import type_string
from opshift.model.errors import CannotConvert
from opshift.model.graphs import captured_names
from opshift.model.messages import GraphProto
from opshift.model.node import Node
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.tensors import read_tensor
from opshift.model.types import Shape, element_type_of
from opshift.registry.models import OperatorVersion
from opshift.registry.runtimes.patterns import Pattern, pattern_nodes
from opshift.registry.runtimes.restrictions import Condition, Restriction
from opshift.runtimes.constant_values import ConstantValues, has_known_sizes, is_stored
from opshift.runtimes.model_nodes import ModelNode

COMMUTATIVE: Final = ("Add", "Mul")
"""Operators with two inputs that optimizers accept in any order."""

Bound = Mapping[str, str]
"""Values of the model by name in the pattern."""


class PatternSearch:
    """Search for nodes of a graph that form a pattern."""

    def __init__(self, pattern: Pattern, scope: Scope, constants: ConstantValues) -> None:
        """`constants` are the values of the model that are the same in every run."""
        *inner, self._last = pattern_nodes(pattern.nodes)
        self._producers = {name: each for each in inner for name in each.outputs}
        self._reads = Counter(name for each in (*inner, self._last) for name in each.inputs)
        self._node = pattern.node
        self._ranks = pattern.ranks
        self._types = pattern.types
        self._shared = pattern.shared
        self._attributes = pattern.attributes
        self._scalars = pattern.scalars
        self._skipped = (*pattern.skips, "Identity")  # optimizers remove Identity first
        self._scope = scope
        self._constants = constants

    def finds(self, node: Node, operator: OperatorVersion | None) -> bool:
        """Return whether a node with this operator version is the one with the condition."""
        if not self._node:
            return any(True for _ in self._match(self._last, node, operator, {}))
        for output, record in ((name, each) for name in node.outputs for each in self._scope.readers(name)):
            reader = self._scope.node_of(record)
            known = self._scope.operator(reader.op_type, reader.domain)
            if any(each[self._node] == output for each in self._match(self._last, reader, known, {})):
                return True
        return False

    def _match(
        self, pattern: Node, node: Node, operator: OperatorVersion | None, bound: Bound
    ) -> Iterator[Bound]:
        """Yield the values of the names for each way in which a node and its producers match."""
        domains = canonical_domain(pattern.domain), canonical_domain(node.domain)
        if pattern.op_type != node.op_type or domains[0] != domains[1]:
            return
        known = operator.attributes if operator is not None else {}
        if any(node.attribute(name) not in each for name, each in self._attributes.items() if name in known):
            return
        names, count = pattern.inputs, len(pattern.inputs)
        is_variadic = operator is not None and operator.inputs and operator.inputs[-1].option == "variadic"
        further = node.inputs[count:] if is_variadic else ()
        if not all(any(True for _ in self._bind([(names[-1], each)], {})) for each in further):
            return
        given = [node.input(position) for position in range(count)]
        for values in (given, given[::-1]) if node.op_type in COMMUTATIVE else (given,):
            yield from self._bind([*zip(names, values, strict=True)], bound)

    def _bind(self, pairs: Sequence[tuple[str, str]], bound: Bound) -> Iterator[Bound]:
        """Yield the values of the names for each way in which names stand for given values."""
        if not pairs:
            yield bound
            return
        (name, value), *others = pairs
        if name in bound:
            if bound[name] == value:
                yield from self._bind(others, bound)
            return
        known, pattern = {**bound, name: value}, self._producers.get(name)
        if pattern is None:
            if self._is_allowed(name, value):
                yield from self._bind(others, known)
            return
        found = self._producer(value, name)
        if found is not None and found.position == pattern.outputs.index(name):
            for each in self._match(pattern, found.node, found.operator, known):
                yield from self._bind(others, each)

    def _is_allowed(self, name: str, value: str) -> bool:
        """Return whether a value fulfils the conditions on an input of the nodes."""
        constant = self._scope.constant(value) if name in self._scalars else None
        if name in self._scalars and (constant is None or len(constant.values) != 1):
            return False
        if name in self._types:
            element = self._scope.element_type(value)
            if element is None or type_string(element) not in self._types[name]:
                return False
        return name not in self._ranks or self._scope.rank(value) in self._ranks[name]

    def _producer(self, value: str, name: str) -> Producer | None:
        """Return the node that computes a value, unless an optimizer keeps or folds the value."""
        scope, reads = self._scope, self._reads[name]
        while (found := scope.producer(value)) is not None:
            has_other_readers = scope.is_captured(value) or len(scope.readers(value)) > reads
            if value in scope.outputs or (has_other_readers and name not in self._shared):
                return None
            if self._constants.contain(scope, value):
                return None
            if found.node.op_type not in self._skipped or found.node.domain:
                return found
            value = found.node.input(0)
        return None


NEWEST: Final = 2**31 - 1
"""Opset that is newer than all published ones."""


def concerns(restriction: Restriction, node: ModelNode) -> bool | None:
    """Return whether a restriction concerns a node; `None` if this is unknown."""
    if restriction.when is None and restriction.unless is None:
        return None
    applies = _holds(restriction.when or Condition(), node)
    if applies is False or restriction.unless is None:
        return applies
    excepted = _holds(restriction.unless, node)
    return _all((applies, None if excepted is None else not excepted))


def _all(answers: Iterable[bool | None]) -> bool | None:
    """Return whether all answers are true; `None` if one is unknown and none is false."""
    is_known = True
    for each in answers:
        if each is False:
            return False
        is_known &= each is not None
    return True if is_known else None


def _holds(condition: Condition, node: ModelNode) -> bool | None:
    return _all(_parts(condition, node))


def _parts(condition: Condition, node: ModelNode) -> Iterator[bool | None]:
    """Yield whether each part of a condition holds; `None` for unknown facts."""
    for name, allowed in condition.attributes.items():
        yield _attribute_is(node, name, allowed)
    yield all(name in node.node.attributes for name in condition.stated)
    first, last = condition.opsets or (0, NEWEST)
    yield first <= node.scope.opset_of(DEFAULT_DOMAIN) <= last
    values = node.values
    if node.operator is None and (condition != Condition(attributes=condition.attributes)):
        yield None
        return
    scope, constants = node.scope, node.constants
    yield all(name in values for name in condition.present)
    yield all(name not in values for name in condition.absent)
    yield all(name in values and constants.contain(scope, values[name]) for name in condition.constant)
    yield all(name in values and not constants.contain(scope, values[name]) for name in condition.computed)
    for name in condition.fed:
        yield name in values and not constants.contain(scope, values[name], knows_sizes=True)
    yield all(_captures_values(name, node) for name in condition.captures)
    yield all(_has_untyped_inputs(node.node.attribute(name)) for name in condition.untyped)
    yield from _shape_parts(condition, values, scope)
    yield from _constant_parts(condition, values, scope)
    types = dict(node.types)
    for name, accepted in condition.types.items():
        yield name in types and _is_one_of(types[name], accepted)
    for name in condition.single:
        yield sum(each == name for _, each, _ in node.parameters()) == 1
    for name in condition.empty:
        yield any(each == name and 0 in (scope.shape(value) or ()) for value, each, _ in node.parameters())
    for name, accepted in condition.some_types.items():
        found = (scope.element_type(value) for value, each, _ in node.parameters() if each == name)
        yield any(each is not None and type_string(each) in accepted for each in found)
    if condition.patterns:
        yield any(
            PatternSearch(each, scope, constants).finds(node.node, node.operator)
            for each in condition.patterns
        )


def _shape_parts(
    condition: Condition, values: Mapping[str, str], scope: InferenceScope
) -> Iterator[bool | None]:
    for name, ranks in condition.ranks.items():
        yield name in values and _is_one_of(scope.rank(values[name]), ranks)
    for name, sizes_of in condition.dimensions.items():
        for axis, sizes in sizes_of.items():
            yield name in values and _is_one_of(_size(scope, values[name], int(axis)), sizes)
    if condition.equal_sizes:
        axes_of = {values[name]: axis for name, axis in condition.equal_sizes.items() if name in values}
        yield _are_equal(scope.comparable_shapes(list(axes_of)), list(axes_of.values()))
    for name in condition.sized:
        yield name in values and has_known_sizes(scope, values[name])
    for name, axes in condition.sized_axes.items():
        yield name in values and all(_size(scope, values[name], each) is not None for each in axes)
    yield all(name in values and scope.rank(values[name]) is not None for name in condition.ranked)
    for name, odd_axis in condition.odd_sizes.items():
        size = _size(scope, values[name], odd_axis) if name in values else 0
        yield None if size is None else size % 2 == 1


def _size(scope: InferenceScope, name: str, axis: int) -> int | None:
    """Return the size of an axis of a value; `None` if it is unknown."""
    shape = scope.shape(name)
    return None if shape is None else _size_in(shape, axis)


def _size_in(shape: Shape, axis: int) -> int | None:
    return shape[axis] if -len(shape) <= axis < len(shape) else 1


def _are_equal(shapes: Sequence[Shape | None], axes: Sequence[int]) -> bool | None:
    """Return whether axes have the same size; negative sizes are unknown, but comparable."""
    pairs = zip(shapes, axes, strict=True)
    sizes = {None if shape is None else _size_in(shape, axis) for shape, axis in pairs}
    if len(sizes) == 1 and None not in sizes:
        return True
    return None if any(size is None or size < 0 for size in sizes) else False


def _constant_parts(
    condition: Condition, values: Mapping[str, str], scope: InferenceScope
) -> Iterator[bool | None]:
    """Yield whether each part about elements of constant inputs holds."""
    for name, elements in condition.values.items():
        constant = scope.constant(values[name]) if name in values else None
        yield name in values and (None if constant is None else set(constant.values) <= set(elements))
    for name in condition.differing:
        yield name in values and _differ(values[name], scope)


def _differ(value: str, scope: InferenceScope) -> bool | None:
    """Return whether the elements of a value are not all equal; `None` if this depends on the run."""
    constant, shape = scope.constant(value), scope.shape(value)
    if constant is not None:
        return len(set(constant.values)) > 1
    return False if shape is not None and all(size == 1 for size in shape) else None


def _captures_values(name: str, node: ModelNode) -> bool:
    graph = node.node.attribute(name)
    return graph is not None and not all(is_stored(node.scope, each) for each in captured_names(graph))


def _has_untyped_inputs(graph: GraphProto | None) -> bool:
    return graph is not None and any(element_type_of(each.type) is None for each in graph.input)


def _is_one_of(fact: object, allowed: Collection[object]) -> bool | None:
    return None if fact is None else fact in allowed


def _attribute_is(node: ModelNode, name: str, allowed: Collection[object]) -> bool | None:
    value: Any
    try:
        value = node.node.attribute(name)
    except CannotConvert:  # the function that contains the node is never called
        return None
    definition = node.operator.attributes.get(name) if node.operator else None
    if value is None and definition is not None:
        value = definition.default
    if definition is not None and definition.type == "TENSOR" and value is not None:
        tensor = read_tensor(value)
        if tensor is None:
            return None
        value = tensor.values
    elements = value if isinstance(value, tuple) else (value,)
    return all(
        (each.decode(errors="replace") if isinstance(each, bytes) else each) in allowed for each in elements
    )
