"""Derive patterns of an operator by expanding it twice, with different attributes, types and shapes.

If both expansions have the same nodes, these form a pattern. Constants that differ depend on an attribute, or
on the inputs. A match is only a candidate: an expansion for the inputs in the model verifies it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from itertools import combinations, product
from typing import Any

from opshift.converter.recognition.expansion import Call, ExactGraph, InputFact, expand
from opshift.converter.recognition.generalize import Setting, SideInputs, Sides, generalized
from opshift.converter.recognition.patterns import BODY, Constant, Hole, InputRef, Pattern, Ref
from opshift.model.element_types import round_to_float32
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.registry.models import Attribute, Operator, OperatorVersion, Parameter
from opshift.registry.recognized_forms import NodeExample
from opshift.registry.registry import Registry

MAX_OPTIONAL_INPUTS = 3
"""Up to this number of optional inputs, all subsets are tried; above it, subsets of at most two."""

MAX_CHOICES = 16
"""Up to this number of attribute choices, an example gets two extra attributes at most; above it, one."""

SIZES = (2, 4, 6, 8, 10), (3, 8, 12, 16, 20)
"""Dimensions of the inputs in the first and in the second expansion."""

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19), (3, 5, 7, 11, 13, 17, 19, 23)
"""Values of the named sizes of an example, in the first and in the second expansion."""

TYPES = ("float", "float16", "int64")
"""Element types to try for the first input."""

INTEGER_TYPES = ("int32", "int8", "uint32", "uint64")
"""Further types for operators with at most one attribute: expansions to older opsets may cast these types."""

SIMILAR_TYPES = (("float", "float16"), ("int64", "int32"), ("int8", "uint8"))
"""Pairs of element types: a constant that differs between expansions for a pair depends on the type."""

FLOATS, INTS = (0.375, 0.625), (2, 4)
"""Values of FLOAT and INT attributes in both expansions; `_options` varies and extends these values."""


def derive(definition: Operator, registry: Registry) -> Iterator[Pattern]:
    """Yield the distinct patterns of an operator.

    Patterns of the newest version apply to all versions. An older version in the default domain adds patterns
    for itself if its function body has other nodes, inputs or attributes than the newest one.
    """
    opset = registry.newest_opset()
    newest = _Derivation(definition, definition.versions[-1], opset, registry)
    yield from newest.patterns()
    successors = definition.versions[1:]
    for version, successor in zip(definition.versions[:-1], successors, strict=True):
        if version.has_function and definition.domain == DEFAULT_DOMAIN:
            older = _Derivation(definition, version, successor.since_version - 1, registry)
            if older.body_nodes() != newest.body_nodes():
                yield from (each._replace(versions=(version.since_version,)) for each in older.patterns())


class _Derivation:
    """Derivation of the patterns of one operator version from nodes at one opset of the default domain."""

    def __init__(
        self, definition: Operator, operator: OperatorVersion, opset: int, registry: Registry
    ) -> None:
        self._operator, self._opset, self._registry = operator, opset, registry
        self._expansions: dict[tuple[Call, int], ExactGraph | None] = {}
        self._settings = list(_settings(definition, operator))
        # Find variants without other attributes: expansions depend on shapes much more than on attributes.
        basic = [each for each in self._settings if each.attributes == self._settings[0].attributes]
        self._basic = [_call(operator, each, 0, opset) for each in basic]

    def body_nodes(self) -> list[Hashable]:
        """Return op_type, domain and slots of the nodes of function bodies, to compare two versions."""
        found = (expand(each, BODY, self._registry) for each in self._basic)
        return [each and tuple((n.op_type, n.domain, tuple(n.slots)) for n in each.nodes) for each in found]

    def patterns(self) -> list[Pattern]:
        merged: dict[Hashable, Pattern] = {}
        found_variants = [_variants(each, self._opset, self._registry) for each in self._basic]
        variants = {each for variants in found_variants for each in variants}
        for setting in self._settings:
            for pattern in self._patterns_of(setting, sorted(variants, key=lambda v: (v > 0, -v))):
                key = _structure(pattern)
                merged[key] = _merged(merged[key], pattern) if key in merged else pattern
        found = [each for each in merged.values() if _is_recognizable(each, self._operator)]
        return [each for each in found if not any(_includes(other, each) for other in found)]

    def _patterns_of(self, setting: Setting, variants: Iterable[int]) -> Iterator[Pattern]:
        """Yield the patterns of a setting; a constant that depends on the type matches any number."""
        others = (_with_type(setting.inputs, *each) for each in SIMILAR_TYPES)
        inputs = next((each for each in others if each != setting.inputs), setting.inputs)
        other = setting._replace(inputs=inputs)
        calls = [_call(self._operator, setting, side, self._opset) for side in (0, 1)]
        third = _call(self._operator, other, 1, self._opset)
        found: list[ExactGraph] = []
        for variant in variants:
            graph = _usual(self._expand(calls[0], variant), self._expand(calls[0], BODY))
            # Most variants have equal expansions: if the first ones are equal, so are the second ones.
            if graph is None or graph in found:
                continue
            found.append(graph)
            other_graph = self._expand(calls[1], variant)
            pattern = other_graph and self._generalized([graph, other_graph], setting, variant)
            if pattern is None:
                continue
            third_graph = None if third == calls[1] else self._expand(third, variant)
            similar = third_graph and self._generalized([graph, third_graph], setting, variant)
            is_same = similar is not None and _structure(similar) == _structure(pattern)
            yield _merged(pattern, similar) if similar is not None and is_same else pattern

    def _expand(self, call: Call, variant: int) -> ExactGraph | None:
        """Return the expansion of a call, cached because settings share calls; `None` if there is none."""
        key = call, variant
        if key not in self._expansions:
            self._expansions[key] = expand(call, variant, self._registry)
        return self._expansions[key]

    def _generalized(self, graphs: list[ExactGraph], setting: Setting, variant: int) -> Pattern | None:
        common = generalized(graphs, setting)
        if common is None:
            return None
        nodes, outputs, copies = common
        name, domain = self._operator.name, self._operator.domain
        fixed = dict(setting.fixed)
        return Pattern(domain, name, variant, False, "", fixed, nodes, outputs, copies=copies)


def _includes(one: Pattern, other: Pattern) -> bool:
    """Return whether `one` equals `other`, except that it implies fewer attributes."""
    fewer = one.attributes.items() < other.attributes.items() and one.variant == other.variant
    return fewer and (one.nodes, one.outputs, one.copies) == (other.nodes, other.outputs, other.copies)


def _is_recognizable(pattern: Pattern, operator: OperatorVersion) -> bool:
    """Return whether a pattern reads all required inputs, and has several nodes, the last not an Identity."""
    refs = {ref for node in pattern.nodes for ref in node.slots.values() if isinstance(ref, InputRef)}
    required = {InputRef(i) for i, each in enumerate(operator.inputs) if each.option != "optional"}
    return len(pattern.nodes) > 1 and required <= refs and pattern.anchor.op_type != "Identity"


def _structure(pattern: Pattern) -> Hashable:
    """Return a key that is equal for patterns with the same nodes, holes and implied attributes."""
    nodes = tuple(
        (node.op_type, node.domain, tuple((slot, _holes_of(ref)) for slot, ref in node.slots.items()))
        for node in pattern.nodes
    )
    return nodes, tuple(pattern.outputs.items()), tuple(pattern.attributes.items()), pattern.variant


def _holes_of(ref: Ref) -> Hashable:
    if not isinstance(ref, Constant):
        return ref
    return ref.whole, tuple((i, e) for i, e in enumerate(ref.elements or ()) if isinstance(e, Hole))


def _merged(first: Pattern, second: Pattern) -> Pattern:
    """Merge patterns of equal structure; constant elements that differ become `None` (any number)."""
    nodes = tuple(
        node._replace(
            slots={
                slot: _common(ref, other.slots[slot]) if isinstance(ref, Constant) else ref
                for slot, ref in node.slots.items()
            }
        )
        for node, other in zip(first.nodes, second.nodes, strict=True)
    )
    return first._replace(nodes=nodes)


def _common(one: Constant, other: Any) -> Constant:
    if one.elements is None or other.elements is None:
        return one if one.elements is None else Constant(None, one.whole)
    pairs = zip(one.elements, other.elements, strict=False)
    return Constant(tuple(a if a == b or (a != a and b != b) else None for a, b in pairs), one.whole)


def _variants(call: Call, opset: int, registry: Registry) -> list[int]:
    """Return variants with different expansions: the body and, for `ai.onnx`, opsets without the operator.

    If two opsets have the same expansion, the search assumes that the opsets between them have it, too.
    """
    known: dict[int, ExactGraph | None] = {}

    def at(variant: int) -> ExactGraph | None:
        if variant not in known:
            found = expand(call, variant, registry)
            known[variant] = found if variant == BODY else _usual(found, at(BODY))
        return known[variant]

    def between(low: int, high: int) -> Iterator[int]:
        if high - low > 1 and at(low) != at(high):
            middle = (low + high) // 2
            yield from between(low, middle)
            yield middle
            yield from between(middle, high)

    operator = call.operator
    definition = registry.operator(operator.name, operator.domain)
    assert definition is not None
    newest = min(definition.versions[0].since_version - 1, opset)
    if operator.domain != DEFAULT_DOMAIN or newest < 1:
        return [BODY]
    found: list[ExactGraph | None] = []
    variants = []
    for variant in (BODY, newest, *reversed([*between(1, newest)]), 1):
        if at(variant) not in found:
            found.append(at(variant))
            variants.append(variant)
    return variants


def _usual(graph: ExactGraph | None, body: ExactGraph | None) -> ExactGraph | None:
    """Return an expansion, or `None` if it has subgraphs and the function body has none.

    Patterns with the loops of very old opsets would be a fifth of all patterns.
    """
    is_usual = graph is None or not graph.has_subgraphs or (body is not None and body.has_subgraphs)
    return graph if is_usual else None


def _settings(operator: Operator, version: OperatorVersion) -> Iterator[Setting]:
    """Yield settings of the examples, a basic setting, and settings that differ from it in 1 or 2 choices."""
    choices = list(_attribute_choices(version))
    types = _element_types(version)
    inputs = {each.name for each in version.inputs}
    size = 2 if len(choices) <= MAX_CHOICES else 1
    for example in operator.examples:
        if not (example.attributes.keys() <= version.attributes.keys() and example.inputs.keys() <= inputs):
            continue
        seen: list[Sides] = []
        for each, fixed in choices:
            one, other = ({n: v for n, v in side.items() if n not in example.attributes} for side in each)
            if len(one) <= size and (one, other) not in seen:
                seen.append((one, other))
                setting = _example_setting(example, version, (one, other), fixed, is_static=True)
                yield setting
                for element_type in types[1:] if size > 1 or not one else ():
                    yield setting._replace(inputs=_with_type(setting.inputs, types[0], element_type))
        yield _example_setting(example, version, ({}, {}), {}, is_static=False)
    required = frozenset(i for i, each in enumerate(version.inputs) if each.option != "optional")
    optional = [i for i, each in enumerate(version.inputs) if each.option == "optional"]
    size = len(optional) if len(optional) <= MAX_OPTIONAL_INPUTS else 2
    presences = [required.union(each) for count in range(size + 1) for each in combinations(optional, count)]
    for indices in product(*(range(len(each)) for each in (choices, presences, types, FACTS))):
        if sum(map(bool, indices)) <= (1 if operator.examples else 2):
            attributes, fixed = choices[indices[0]]
            given = presences[indices[1]], types[indices[2]], FACTS[indices[3]]
            yield Setting(attributes, fixed, (_inputs(version, *given, 0), _inputs(version, *given, 1)))


def _example_setting(
    example: NodeExample, version: OperatorVersion, extra: Sides, fixed: Mapping[str, Any], is_static: bool
) -> Setting:
    """Return the setting of an example with extra attributes; see `_size` for `is_static`."""
    texts = [each for each in example.attributes.values() if isinstance(each, str)]
    named = {name for each in texts for name in re.split(r" [*+] ", each)}
    names = sorted({str(dim) for dims in example.inputs.values() for dim in dims})
    letters = sorted({each for name in names for each in re.split(r" [*+] ", name) if not each.isdigit()})
    sides: list[tuple[dict[str, Any], tuple[InputFact | None, ...]]] = []
    for side in (0, 1):
        sizes = {letter: PRIMES[side][index] for index, letter in enumerate(letters)}
        inputs: list[InputFact | None] = []
        for formal in version.inputs:
            dims = example.inputs.get(formal.name)
            kind = example.types.get(formal.name) or _first_type(version, formal)
            fact = None if dims is None else tuple(_size(each, sizes, named, is_static) for each in dims)
            inputs.append(None if fact is None else InputFact(kind, fact))
        own = {
            name: _attribute_value(value, version.attributes[name], sizes, side)
            for name, value in example.attributes.items()
        }
        sides.append(({**own, **extra[side]}, tuple(inputs)))
    (first, inputs_before), (second, inputs_after) = sides
    agreed = {name: value for name, value in first.items() if name in fixed or value == second[name]}
    return Setting((first, second), agreed, (inputs_before, inputs_after))


def _with_type(inputs: SideInputs, old: str, new: str) -> SideInputs:
    before, after = (
        tuple(each._replace(element_type=new) if each and each.element_type == old else each for each in side)
        for side in inputs
    )
    return before, after


def _size(dim: int | str, sizes: Mapping[str, int], named: Collection[str], is_static: bool) -> int:
    """Return a size, negated (unknown) unless `is_static` or `dim` is a number, product or attribute."""
    if is_static or str(dim).isdigit() or "*" in str(dim) or dim in named:
        return _number(dim, sizes)
    return -_number(dim, sizes)


def _number(dim: int | str, sizes: Mapping[str, int]) -> int:
    """Evaluate a size such as `H`, a product such as `H * E`, or a sum such as `P + S`."""
    terms = [term.split(" * ") for term in str(dim).split(" + ")]
    return sum(math.prod(sizes.get(each) or int(each) for each in factors) for factors in terms)


def _attribute_value(value: Any, attribute: Attribute, sizes: Mapping[str, int], side: int) -> Any:
    if isinstance(value, tuple) and attribute.type != "INTS":
        return value[side]
    if attribute.type == "INT" and isinstance(value, str):
        return _number(value, sizes)
    return value.encode() if isinstance(value, str) else value


def _first_type(version: OperatorVersion, formal: Parameter) -> str:
    types = version.types_of(formal)
    preferred = next((each for each in ("tensor(float)", "tensor(int64)") if each in types), types[0])
    return preferred.removeprefix("tensor(").removesuffix(")")


def _element_types(operator: OperatorVersion) -> list[str]:
    first = operator.types_of(operator.inputs[0]) if operator.inputs else ()
    types = [each.removeprefix("tensor(").removesuffix(")") for each in first]
    tried = TYPES if len(operator.attributes) > 1 else (*TYPES, *INTEGER_TYPES)
    return [each for each in tried if each in types] or types[:1]


def _attribute_choices(
    operator: OperatorVersion,
) -> Iterator[tuple[tuple[Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]]]:
    """Yield the attributes of both expansions, and those with equal values.

    Each choice has all required attributes, and none, one or two optional ones, or all optional FLOAT ones.
    """
    options = {
        name: list(_options(name, each, position))
        for position, (name, each) in enumerate(operator.attributes.items())
    }
    required = [name for name in options if operator.attributes[name].required]
    optional = [name for name in options if name not in required and options[name]]
    floats = [name for name in optional if operator.attributes[name].type == "FLOAT"]
    names = [(), *((each,) for each in optional), *combinations(optional, 2)]
    if len(floats) > 2:
        names.append(tuple(floats))
    for extra in names:
        chosen = [*required, *extra]
        for values in product(*(options[name] for name in chosen)):
            sides = [{name: pair[side] for name, pair in zip(chosen, values, strict=True)} for side in (0, 1)]
            fixed = {name: pair[0] for name, pair in zip(chosen, values, strict=True) if pair[0] == pair[1]}
            yield (sides[0], sides[1]), fixed


def _options(name: str, attribute: Attribute, position: int) -> Iterator[tuple[Any, ...]]:
    """Yield pairs of values, one for each expansion; numbers vary with the position of the attribute."""
    if attribute.values is not None:
        for value in attribute.values:
            if attribute.type in ("INT", "STRING", "FLOAT") and value != attribute.default:
                encoded = value.encode() if isinstance(value, str) else value
                yield encoded, encoded
    elif attribute.type == "FLOAT":
        yield tuple(round_to_float32(each * (1 + position / 8)) for each in FLOATS)
    elif attribute.type == "INT" and name == "axis":
        yield from ((1, 2), (-2, -2), (0, 0))
    elif attribute.type == "INT":
        yield tuple(each << (position % 2) for each in INTS)
        yield 10, 11  # element types: FLOAT16 and DOUBLE
    elif attribute.type == "INTS":
        yield from (((1,), (0,)), ((0, 1), (1, 2)))


Facts = tuple[tuple[int, int], str, bool]

FACTS: tuple[Facts, ...] = (
    ((3, 4), "same", True), ((3, 4), "same", False), ((3, 3), "same", True), ((4, 4), "same", True),
    ((3, 4), "last", True), ((4, 4), "channels", True), ((3, 3), "unknown", True), ((3, 3), "same", False),
)  # fmt: skip
"""Rank of the first input in both expansions, shapes of the other inputs, and whether sizes are known.

Other inputs have the `same` shape, only its `last` or second (`channels`) dimension, or an `unknown` shape.
"""


def _inputs(
    operator: OperatorVersion, present: Collection[int], element_type: str, facts: Facts, side: int
) -> tuple[InputFact | None, ...]:
    ranks, shapes, is_static = facts
    dims = SIZES[side][: ranks[side]]
    inputs: list[InputFact | None] = []
    for position in range(len(operator.inputs)):
        if position not in present:
            inputs.append(None)
            continue
        own: tuple[int, ...] | None = dims
        if position:
            own = {"same": dims, "last": dims[-1:], "channels": dims[1:2], "unknown": None}[shapes]
        if not is_static and own is not None:
            own = tuple(-1 - SIZES[side].index(size) for size in own)
        inputs.append(InputFact(_type_of(operator, position, element_type), own))
    return tuple(inputs)


def _call(operator: OperatorVersion, setting: Setting, side: int, opset: int) -> Call:
    inputs = [*setting.inputs[side]]
    while inputs and inputs[-1] is None:
        inputs.pop()
    outputs = tuple(each.option != "optional" for each in operator.outputs)
    return Call(operator, opset, tuple(setting.attributes[side].items()), tuple(inputs), outputs)


def _type_of(operator: OperatorVersion, position: int, element_type: str) -> str:
    types = operator.types_of(operator.inputs[position])
    wanted = f"tensor({element_type})"
    return (wanted if wanted in types else types[0]).removeprefix("tensor(").removesuffix(")")
