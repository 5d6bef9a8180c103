"""Evaluate the conditions in restrictions of kernels for a node."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, Final

from opshift.inference.facts import InferenceScope
from opshift.inference.infer_shapes import known_shapes
from opshift.model.element_types import type_string
from opshift.model.errors import CannotConvert
from opshift.model.graphs import captured_names, is_graph
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.tensors import read_tensor
from opshift.model.types import Shape, element_type_of
from opshift.registry.requirements import parse_requirement
from opshift.registry.runtimes.restrictions import Condition, Restriction, pattern_operators
from opshift.registry.shapes.shape_context import InvalidFlag
from opshift.runtimes.constant_values import has_known_sizes, has_typed_data, is_stored
from opshift.runtimes.element_conditions import differ, elements_are, has_negative, may_exceed_int32
from opshift.runtimes.model_nodes import ModelNode
from opshift.runtimes.pattern_search import PatternSearch
from opshift.runtimes.subgraph_conditions import ignores_inputs, returns_inputs, subgraphs


def concerns(restriction: Restriction, node: ModelNode) -> bool | None:
    """Return whether a restriction concerns a node; `None` if this is unknown, as without any condition."""
    if restriction.when is None and restriction.unless is None:
        return None
    conditions = [(restriction.when, True), (restriction.unless, False)]
    if restriction.when is not None and not SEARCHES.isdisjoint(restriction.when.parts):
        conditions.reverse()  # test `unless` first: a search through other nodes is slower
    is_known = True
    for condition, expected in conditions:
        holds = expected if condition is None else _holds(condition, node)
        if holds is not None and holds is not expected:
            return False
        is_known &= holds is not None
    return True if is_known else None


def depends_on_node(restriction: Restriction, node: ModelNode) -> bool:
    """Return whether `concerns` may have different answers for nodes with equal operators and types."""
    if restriction.when is None:
        return restriction.unless is not None
    return node.operator is None or _types(restriction.when, node) is not False


def _all(answers: Iterable[bool | None]) -> bool | None:
    """Return whether all answers are true; `None` if one is unknown and no answer is false."""
    is_known = True
    for each in answers:
        if each is False:
            return False
        is_known &= each is not None
    return True if is_known else None


def _holds(condition: Condition, node: ModelNode) -> bool | None:
    if node.operator is None and any(name != "attributes" for name in condition.parts):
        known = _all(PARTS[name](condition, node) for name in condition.parts if name in WITHOUT_OPERATOR)
        return False if known is False else None
    is_known = True
    for test in _tests(condition.parts):  # not `_all`: a generator would take most of the time
        holds = test(condition, node)
        if holds is False:
            return False
        is_known &= holds is not None
    return True if is_known else None


@cache
def _tests(parts: tuple[str, ...]) -> tuple[Callable[[Condition, ModelNode], bool | None], ...]:
    """Return the functions for the parts of a condition in the order of `PARTS`."""
    return tuple(test for name, test in PARTS.items() if name in parts)


def _attributes(condition: Condition, node: ModelNode) -> bool | None:
    return _all(_attribute_is(node, name, allowed) for name, allowed in condition.attributes.items())


def _declared(condition: Condition, node: ModelNode) -> bool:
    return all(name in node.node.attributes for name in condition.stated)


def _opsets(condition: Condition, node: ModelNode) -> bool:
    assert condition.opsets is not None
    first, last = condition.opsets
    return first <= node.scope.opset_of(DEFAULT_DOMAIN) <= last


def _present(condition: Condition, node: ModelNode) -> bool:
    return all(_has(name, node) for name in condition.present)


def _absent(condition: Condition, node: ModelNode) -> bool:
    return not any(_has(name, node) for name in condition.absent)


def _has(name: str, node: ModelNode) -> bool:
    """Return whether a node has an input or output; a name of both means the output."""
    if name not in node.values:
        return False
    assert node.operator is not None
    # `mean` and `var` of BatchNormalization below opset 14 are inputs and outputs
    is_output = any(each.name == name for each in node.operator.outputs)
    return not is_output or node.values[name] in node.node.outputs


def _constant(condition: Condition, node: ModelNode) -> bool:
    return all(_is_constant(name, node) is True for name in condition.constant)


def _computed(condition: Condition, node: ModelNode) -> bool:
    return all(_is_constant(name, node) is False for name in condition.computed)


def _fed(condition: Condition, node: ModelNode) -> bool:
    return all(_is_constant(name, node, knows_sizes=True) is False for name in condition.fed)


def _is_constant(
    name: str, node: ModelNode, *, knows_sizes: bool = False, allows_defaults: bool = True
) -> bool | None:
    """Return whether an input is the same in every run; `None` if the node omits it.

    With `knows_sizes`, the sizes of values count as the same in every run; without `allows_defaults`,
    initializers that callers can override do not.
    """
    value = node.values.get(name)
    if value is None:
        return None
    return node.constants.contain(node.scope, value, knows_sizes=knows_sizes, allows_defaults=allows_defaults)


def _fixed(condition: Condition, node: ModelNode) -> bool:
    return all(_is_constant(name, node, allows_defaults=False) is True for name in condition.fixed)


def _stored(condition: Condition, node: ModelNode) -> bool:
    values = node.values
    return all(name in values and is_stored(node.scope, values[name]) for name in condition.stored)


def _typed_data(condition: Condition, node: ModelNode) -> bool:
    values = node.values
    return all(name in values and has_typed_data(node.scope, values[name]) for name in condition.typed_data)


def _captures(condition: Condition, node: ModelNode) -> bool:
    return all(_captures_values(name, node) for name in condition.captures)


def _captures_outputs(condition: Condition, node: ModelNode) -> bool:
    scope, container = node.scope, node.scope.container
    outputs = container.output if scope.parent is None and is_graph(container) else ()
    results = {each.name for each in outputs if scope.producer(each.name) is not None}
    return all(_reads_any(name, node, results) for name in condition.captures_outputs)


def _untyped(condition: Condition, node: ModelNode) -> bool:
    return all(_has_untyped_inputs(name, node) for name in condition.untyped)


def _unread(condition: Condition, node: ModelNode) -> bool | None:
    return _all(ignores_inputs(name, count, node) for name, count in condition.unread.items())


def _returned(condition: Condition, node: ModelNode) -> bool | None:
    return _all(returns_inputs(name, count, node) for name, count in condition.returned.items())


def _ranks(condition: Condition, node: ModelNode) -> bool | None:
    return _all(
        name in node.values and _is_one_of(node.scope.rank(node.values[name]), ranks)
        for name, ranks in condition.ranks.items()
    )


def _dimensions(condition: Condition, node: ModelNode) -> bool | None:
    return _all(
        name in node.values and _is_one_of(_size(node.scope, node.values[name], int(axis)), sizes)
        for name, sizes_of in condition.dimensions.items()
        for axis, sizes in sizes_of.items()
    )


def _equal_sizes(condition: Condition, node: ModelNode) -> bool | None:
    values = node.values
    # a list of pairs, not a dictionary, because two inputs may be the same value
    axes_of = [(values[name], axis) for name, axis in condition.equal_sizes.items() if name in values]
    shapes = node.scope.comparable_shapes([value for value, _ in axes_of])
    return _are_equal(shapes, [axis for _, axis in axes_of])


def _sized(condition: Condition, node: ModelNode) -> bool:
    values = node.values
    return all(name in values and has_known_sizes(node.scope, values[name]) for name in condition.sized)


def _sized_axes(condition: Condition, node: ModelNode) -> bool:
    return all(
        name in node.values and _size(node.scope, node.values[name], axis) is not None
        for name, axes in condition.sized_axes.items()
        for axis in axes
    )


def _ranked(condition: Condition, node: ModelNode) -> bool:
    values = node.values
    return all(name in values and node.scope.rank(values[name]) is not None for name in condition.ranked)


def _empty(condition: Condition, node: ModelNode) -> bool:
    return all(
        any(0 in (node.scope.shape(value) or ()) for value in node.values_of(name))
        for name in condition.empty
    )


def _single(condition: Condition, node: ModelNode) -> bool:
    return all(len(node.values_of(name)) == 1 for name in condition.single)


def _odd_sizes(condition: Condition, node: ModelNode) -> bool | None:
    return _all(_is_odd(name, axis, node) for name, axis in condition.odd_sizes.items())


def _is_odd(name: str, axis: int, node: ModelNode) -> bool | None:
    size = _size(node.scope, node.values[name], axis) if name in node.values else 0
    return None if size is None else size % 2 == 1


def _single_after(condition: Condition, node: ModelNode) -> bool:
    return _have_single_sizes(condition.single_after, node, skipped=1)


def _single_from(condition: Condition, node: ModelNode) -> bool:
    return _have_single_sizes(condition.single_from, node, skipped=0)


def _have_single_sizes(axes: Mapping[str, str], node: ModelNode, *, skipped: int) -> bool:
    """Return whether the sizes from an axis on have a known product of at most 1 for each input.

    Args:
        axes: for each input, the attribute with the axis.
        node: the node.
        skipped: 1 to leave out the size of the axis itself, otherwise 0.
    """
    values = node.values
    return all(
        name in values
        and _is_single_from(node.scope.shape(values[name]), _attribute(node, attribute), skipped)
        for name, attribute in axes.items()
    )


def _is_single_from(shape: Shape | None, axis: object, skipped: int) -> bool:
    if skipped and axis == -1:
        return True  # no size remains
    return shape is not None and isinstance(axis, int) and _is_single(shape[axis + skipped :])


def _is_single(sizes: Shape) -> bool:
    return 0 in sizes or all(size == 1 for size in sizes)


def _values(condition: Condition, node: ModelNode) -> bool | None:
    return _all(elements_are(name, elements, node) for name, elements in condition.values.items())


def _expressions(condition: Condition, node: ModelNode) -> bool | None:
    if node.operator is None:
        return None
    context = known_shapes(node.node, node.operator, node.scope)
    try:
        return _all(_truth(parse_requirement(each).evaluate(context)) for each in condition.holds)
    # the node lacks a valid value of an attribute that the expression uses
    except (CannotConvert, InvalidFlag):
        return None


def _truth(value: object) -> bool | None:
    return None if value is None else bool(value)


def _differing(condition: Condition, node: ModelNode) -> bool | None:
    values = node.values
    return _all(name in values and differ(values[name], node.scope) for name in condition.differing)


def _patterns(condition: Condition, node: ModelNode) -> bool:
    op_types = node.scope.op_types
    return any(
        PatternSearch(each, node.scope, node.constants).finds(node.node, node.operator)
        for each in condition.patterns
        # few graphs contain all operators of a pattern: search only these graphs
        if pattern_operators(each.nodes) <= op_types
    )


def _types(condition: Condition, node: ModelNode) -> bool | None:
    types = dict(node.types)
    return _all(
        name in types and _is_one_of(types[name], accepted) for name, accepted in condition.types.items()
    )


def _some_types(condition: Condition, node: ModelNode) -> bool:
    return all(_has_type(name, accepted, node) for name, accepted in condition.some_types.items())


def _has_type(name: str, accepted: Collection[str], node: ModelNode) -> bool:
    found = map(node.scope.element_type, node.values_of(name))
    return any(each is not None and type_string(each) in accepted for each in found)


def _diverging(condition: Condition, node: ModelNode) -> bool:
    ranks = (
        [node.scope.child(graph).rank(each.name) for each in graph.output]
        for graph in subgraphs(condition.diverging, node)
    )
    # ranks 0 and 1 count as equal: OpenVINO turns a scalar into a vector if the other branch returns one
    return any(
        None in each or not (len(set(each)) == 1 or {0, 1}.issuperset(each))
        for each in zip(*ranks, strict=False)
    )


def _computed_by(condition: Condition, node: ModelNode) -> bool:
    return all(
        name in node.values and node.origins.include(node.scope, node.values[name], operators)
        for name, operators in condition.computed_by.items()
    )


def _depends_on(condition: Condition, node: ModelNode) -> bool:
    return all(
        name in node.values and node.origins.include(node.scope, node.values[name], operators, any_type=True)
        for name, operators in condition.depends_on.items()
    )


def _negative(condition: Condition, node: ModelNode) -> bool | None:
    return _all(has_negative(name, node) for name in condition.negative)


def _beyond_int32(condition: Condition, node: ModelNode) -> bool:
    return all(
        any(may_exceed_int32(value, node) for value in node.values_of(name))
        for name in condition.beyond_int32
    )


def _beside(condition: Condition, node: ModelNode) -> bool:
    return not node.scope.op_types.isdisjoint(condition.beside)


PARTS: Mapping[str, Callable[[Condition, ModelNode], bool | None]] = {
    "attributes": _attributes,
    "stated": _declared,
    "present": _present,
    "absent": _absent,
    "opsets": _opsets,
    "constant": _constant,
    "fixed": _fixed,
    "stored": _stored,
    "typed_data": _typed_data,
    "computed": _computed,
    "fed": _fed,
    "captures": _captures,
    "captures_outputs": _captures_outputs,
    "untyped": _untyped,
    "unread": _unread,
    "returned": _returned,
    "ranks": _ranks,
    "dimensions": _dimensions,
    "equal_sizes": _equal_sizes,
    "sized": _sized,
    "sized_axes": _sized_axes,
    "ranked": _ranked,
    "empty": _empty,
    "single": _single,
    "odd_sizes": _odd_sizes,
    "single_after": _single_after,
    "single_from": _single_from,
    "values": _values,
    "holds": _expressions,
    "differing": _differing,
    "types": _types,
    "some_types": _some_types,
    "patterns": _patterns,
    "computed_by": _computed_by,
    "depends_on": _depends_on,
    "diverging": _diverging,
    "negative": _negative,
    "beyond_int32": _beyond_int32,
    "beside": _beside,
}
"""Functions that return whether a part of a condition holds (`None` if unknown), by name of the part.

See `Condition` for the meaning of the parts. Parts that take little time come first.
"""

SEARCHES: Final = frozenset({"computed_by", "depends_on", "patterns"})
"""Parts that search through nodes of the graph."""

OF_DISTANT_NODES: Final = SEARCHES | {"computed", "constant", "fed", "fixed"}
"""Parts that depend on more nodes than the producers of the inputs."""

OF_CONSTANTS: Final = frozenset({"beyond_int32", "computed", "constant", "fed", "fixed", "patterns"})
"""Parts that depend on which values a runtime computes before the first run."""

WITHOUT_OPERATOR: Final = frozenset({"attributes", "stated", "opsets"})
"""Parts that can be decided for operators without a definition, whose inputs have no names."""


def _size(scope: InferenceScope, name: str, axis: int) -> int | None:
    """Return the size of an axis of a value: 1 if the axis does not exist, `None` if it is unknown."""
    shape = scope.shape(name)
    return None if shape is None else _size_in(shape, axis)


def _size_in(shape: Shape, axis: int) -> int | None:
    return shape[axis] if -len(shape) <= axis < len(shape) else 1


def _are_equal(shapes: Sequence[Shape | None], axes: Sequence[int]) -> bool | None:
    """Return whether `axes`, one per shape, have equal sizes; `None` if unknown. See `comparable_shapes`."""
    pairs = zip(shapes, axes, strict=True)
    sizes = {None if shape is None else _size_in(shape, axis) for shape, axis in pairs}
    if len(sizes) == 1 and None not in sizes:
        return True
    return None if any(size is None or size < 0 for size in sizes) else False


def _captures_values(name: str, node: ModelNode) -> bool:
    names = chain.from_iterable(map(captured_names, subgraphs([name], node)))
    return not all(is_stored(node.scope, each) for each in names)


def _reads_any(name: str, node: ModelNode, values: set[str]) -> bool:
    return any(not values.isdisjoint(captured_names(each)) for each in subgraphs([name], node))


def _has_untyped_inputs(name: str, node: ModelNode) -> bool:
    inputs = chain.from_iterable(graph.input for graph in subgraphs([name], node))
    return any(element_type_of(each.type) is None for each in inputs)


def _is_one_of(fact: object, allowed: Collection[object]) -> bool | None:
    return None if fact is None else fact in allowed


def _attribute(node: ModelNode, name: str) -> Any:
    """Return the value of an attribute, or its default.

    Raises:
        CannotConvert: the function that contains the node is never called, so its attributes have no values.
    """
    value = node.node.attribute(name)
    definition = node.operator.attributes.get(name) if node.operator else None
    return definition.default if value is None and definition is not None else value


def _attribute_is(node: ModelNode, name: str, allowed: Collection[object]) -> bool | None:
    try:
        value = _attribute(node, name)
    except CannotConvert:
        return None
    definition = node.operator.attributes.get(name) if node.operator else None
    if definition is not None and definition.type == "TENSOR" and value is not None:
        tensor = read_tensor(value)
        if tensor is None:
            return None
        value = tensor.values
    elements = value if isinstance(value, tuple) else (value,)
    return all(
        (each.decode(errors="replace") if isinstance(each, bytes) else each) in allowed for each in elements
    )
