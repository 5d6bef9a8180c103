"""Diagnosis of a model: the opsets at which its nodes are valid, and the opset imports that it declares."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import Final, NamedTuple

from opshift.analysis.doctor.ambiguity import choices
from opshift.analysis.doctor.diagnosis import (
    Diagnosis,
    IrStamp,
    NodeValidity,
    Stamp,
    missing_import,
    opset_ranges,
)
from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.converter.ir_version.lower import required_ir_version
from opshift.inference.facts import OperatorStatus
from opshift.inference.repair import repaired_copy
from opshift.inference.scope import Scope
from opshift.inference.survey import ContainerSurvey, survey
from opshift.model.attributes import ATTRIBUTE_TYPES, INT, STRING
from opshift.model.element_types import type_string
from opshift.model.errors import CannotConvert, InvalidModel
from opshift.model.files import ModelLike, model_of, reading_onnx_ir
from opshift.model.graphs import (
    ContainerProto,
    initializer_inputs,
    node_place,
    require_graph,
    training_graphs,
)
from opshift.model.message_text import count_text
from opshift.model.messages import AttributeProto, FunctionProto, ModelProto
from opshift.model.node import Node
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain, declared_opsets, function_label
from opshift.model.types import Shape
from opshift.registry.ir_versions import ir_versions
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.registry import Registry, registry_or_default
from opshift.rewriting.routes import replaced_from
from opshift.rewriting.validation import validate_node

Shapes = Sequence[Shape | None]
"""Known shapes of the inputs of a node."""


def shape_violation(node: Node, shapes: Shapes, version: OperatorVersion) -> str:
    """Return the reason why an operator version does not allow the shapes of the inputs, or an empty text."""
    rule = SHAPE_VIOLATIONS.get((canonical_domain(node.domain), node.op_type))
    return rule(node, shapes, version) if rule and shapes else ""


def _group_normalization_violation(node: Node, shapes: Shapes, version: OperatorVersion) -> str:
    data, *others = shapes
    channels = data[1] if data is not None and len(data) > 1 else None
    is_per_group = version.since_version < 21
    wanted = node.attribute("num_groups", 0) if is_per_group else channels
    for name, shape in zip(node.inputs[1:3], others, strict=False):
        size = shape[0] if shape is not None and len(shape) == 1 else None
        if size is not None and wanted is not None and size != wanted:
            unit = "group" if is_per_group else "channel"
            return f"{name!r} has {size} elements, where {version.id} requires one per {unit} ({wanted})"
    return ""


def _broadcast_violation(node: Node, shapes: Shapes, version: OperatorVersion) -> str:
    is_limited = version.since_version < (8 if node.op_type in VARIADIC else 7)
    if not is_limited or node.attribute("broadcast", 0):
        return ""
    for one, other in pairwise(shapes):
        if one is None or other is None:
            continue
        sizes = zip(one, other, strict=False)
        if len(one) != len(other) or any(None not in pair and pair[0] != pair[1] for pair in sizes):
            return f"the shapes of its inputs differ, which {version.id} does not allow"
    return ""


def _scale_rank_violation(node: Node, shapes: Shapes, version: OperatorVersion) -> str:
    scale = shapes[1] if len(shapes) > 1 else None
    if scale is None or version.since_version >= 13 or all(size == 1 for size in scale):
        return ""
    return f"{node.inputs[1]!r} is not a scalar, which {version.id} requires"


VARIADIC: Final = ("Max", "Mean", "Min", "Sum")

_BINARY: Final = ("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")

SHAPE_VIOLATIONS: Final[dict[tuple[str, str], Callable[[Node, Shapes, OperatorVersion], str]]] = {
    (DEFAULT_DOMAIN, name): rule
    for rule, names in (
        (_group_normalization_violation, ("GroupNormalization",)),
        (_broadcast_violation, (*VARIADIC, *_BINARY)),
        (_scale_rank_violation, ("DequantizeLinear", "QuantizeLinear")),
    )
    for name in names
}
"""Functions that check the shapes of inputs, by domain and operator."""


NodeTypes = tuple[str | None, ...]
"""For each input and output: an element type, a type string, or `None` if it is unknown."""


class OpsetValidity:
    """Validity of nodes at the opsets of a registry.

    Results are cached by the properties that validity depends on, because models repeat similar nodes.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._cache: dict[Hashable, frozenset[int]] = {}

    def opsets(self, node: Node, scope: Scope) -> frozenset[int] | None:
        """Return the opsets at which a node is valid; `None` if unknown, as in open domains (`is_open`)."""
        domain = canonical_domain(node.domain)
        operator = self._registry.operator(node.op_type, domain)
        if self._registry.is_open(domain) or (self._is_nonstandard(node) and operator is None):
            return None
        types = _known_types(node, scope)
        shapes = _known_shapes(node, scope)
        key = _cache_key(node, types), shapes
        if key not in self._cache:
            valid: set[int] = set()
            for version, opsets in self._versions(node.op_type, domain):
                if not (first_violation(node, types, version) or shape_violation(node, shapes, version)):
                    valid.update(opsets)
            self._cache[key] = frozenset(valid)
        return self._cache[key]

    def nonstandard_opsets(self, node: Node) -> frozenset[int]:
        """Return the opsets that lack an operator of the default domain, but at which onnxruntime runs it.

        onnxruntime writes such nodes when it optimizes a model.
        """
        operator = self._registry.operator(node.op_type, canonical_domain(node.domain))
        if operator is None or not self._is_nonstandard(node):
            return frozenset()
        return frozenset(range(1, operator.versions[0].since_version))

    def _is_nonstandard(self, node: Node) -> bool:
        is_default = canonical_domain(node.domain) == DEFAULT_DOMAIN
        return is_default and node.op_type in self._registry.releases.nonstandard

    def replaced_from(self, node: Node, valid: frozenset[int]) -> int | None:
        """Return the opset from which the converter replaces the deprecated or removed operator of a node.

        The result is `None` unless `valid` has the previous opset, which defines the meaning of the node.
        """
        operator = self._registry.operator(node.op_type, canonical_domain(node.domain))
        first = replaced_from(operator) if operator else None
        return first if first and first - 1 in valid else None

    def violation(self, node: Node, scope: Scope, opset: int) -> str:
        """Return the reason why a node is invalid at an opset; empty if it is valid."""
        domain = canonical_domain(node.domain)
        for version, opsets in self._versions(node.op_type, domain):
            if opset in opsets:
                violation = first_violation(node, _known_types(node, scope), version)
                return violation or shape_violation(node, _known_shapes(node, scope), version)
        if opset in self.nonstandard_opsets(node):
            home = self._registry.releases.nonstandard[node.op_type]
            return f"{node.op_type} does not exist in opset {opset} of {domain}, only {home} defines it"
        exists = self._registry.has(node.op_type, opset, domain)
        reason = f"{node.op_type} is deprecated" if exists else f"{node.op_type} does not exist"
        return f"{reason} in opset {opset} of {domain}"

    def _versions(self, op_type: str, domain: str) -> Iterator[tuple[OperatorVersion, range]]:
        """Yield the versions of an operator that models may use, each with its opsets.

        A deprecated last version is skipped, because it may do nothing but deprecate the operator. Earlier
        deprecated versions are included: models were written with them before their deprecation.
        """
        operator = self._registry.operator(op_type, domain)
        versions = operator.versions if operator else ()
        ends = [each.since_version for each in versions[1:]] + [self._registry.newest_opset(domain) + 1]
        for version, end in zip(versions, ends, strict=False):
            if version.deprecation and end == ends[-1]:
                return
            last = min(end, version.removal.removed_in) if version.removal else end
            yield version, range(version.since_version, last)


def first_violation(node: Node, types: NodeTypes, version: OperatorVersion) -> str:
    """Return the first reason why a node violates an operator version's definition; empty if it is valid."""
    try:
        validate_node(node, version)
    except CannotConvert as error:
        return error.reason
    count = len(node.inputs)
    violations = [
        _attribute_violations(node, version),
        _value_violations(version.inputs, node.inputs, types[:count], version),
    ]
    # Not for Constant: version 1 allows floats only, but exporters wrote integers, which runtimes read.
    if version.name != "Constant":
        violations.append(_value_violations(version.outputs, node.outputs, types[count:], version))
    return next(chain.from_iterable(violations), "")


def _attribute_violations(node: Node, version: OperatorVersion) -> Iterator[str]:
    for name, attribute in node.attributes.items():
        declared = version.attributes.get(name)
        if declared is None:
            continue
        if attribute.type not in (0, ATTRIBUTE_TYPES[declared.type].number):
            yield f"attribute {name!r} has the wrong type: {version.id} requires {declared.type}"
        elif attribute.type in (INT, STRING) and not attribute.ref_attr_name:
            value = attribute.i if attribute.type == INT else attribute.s.decode("utf-8", "replace")
            if not declared.allows(value):
                yield f"attribute {name!r} has the value {value!r}, which {version.id} does not allow"


def _value_violations(
    formals: tuple[Parameter, ...], names: Sequence[str], types: NodeTypes, version: OperatorVersion
) -> Iterator[str]:
    is_variadic = bool(formals) and formals[-1].option == "variadic"
    if len(names) > len(formals) and not is_variadic:
        kind = "input" if formals is version.inputs else "output"
        yield f"the node has {count_text(len(names), kind)}; {version.id} allows at most {len(formals)}"
        return
    for position, (name, known_type) in enumerate(zip(names, types, strict=True)):
        formal = formals[min(position, len(formals) - 1)]
        known = type_string(known_type) if known_type else None
        if not name and formal.option == "single":
            yield f"{formal.name!r} is omitted, but {version.id} requires it"
        elif known and known not in version.types_of(formal):
            yield f"{name!r} is {known}, which {version.id} does not allow for {formal.name!r}"


def _known_types(node: Node, scope: Scope) -> NodeTypes:
    """Return the known types of a node's inputs and outputs.

    Only declared types of outputs count, because inference of outputs depends on the opset to be determined.
    """
    inputs = (scope.element_type(name) if name else None for name in node.inputs)
    return (*inputs, *map(scope.declared_type, node.outputs))


def _known_shapes(node: Node, scope: Scope) -> tuple[Shape | None, ...]:
    """Return the known shapes of a node's inputs if SHAPE_VIOLATIONS has its operator, else no shapes."""
    if (canonical_domain(node.domain), node.op_type) not in SHAPE_VIOLATIONS:
        return ()
    return tuple(scope.shape(name) if name else None for name in node.inputs)


def _cache_key(node: Node, types: NodeTypes) -> Hashable:
    """Return the properties of a node that its validity depends on."""
    present = tuple(map(bool, (*node.inputs, *node.outputs)))
    attributes = tuple(map(_attribute_key, node.attributes.values()))
    return (node.domain, node.op_type, len(node.inputs), present, types, attributes)


def _attribute_key(attribute: AttributeProto) -> Hashable:
    value = attribute.i if attribute.type == INT else attribute.s if attribute.type == STRING else None
    # Without a type, any field may hold the value: use the whole attribute as the key.
    untyped = None if attribute.type else attribute.SerializeToString()
    return (attribute.name, attribute.type, attribute.ref_attr_name, value, untyped)


EXAMINE_ALL = OperatorStatus(has_step=True, has_graphs=True)
"""Status that includes every node in the survey."""


class _NodeOpsets(NamedTuple):
    """Operator of a node, with the opsets at which it is valid, replaceable or executed by onnxruntime."""

    operator: str
    valid: frozenset[int]
    replaced_from: int | None
    """First opset at which other operators replace the operator, if it is deprecated or removed."""
    nonstandard: frozenset[int]
    """Opsets that lack the operator, but at which onnxruntime executes it."""

    def is_executed(self, opset: int) -> bool:
        """Return whether a node is valid at an opset, or onnxruntime executes it there."""
        return opset in self.valid or opset in self.nonstandard

    def is_possible(self, opset: int) -> bool:
        """Return whether a node is valid at an opset, executed by onnxruntime, or can be replaced there."""
        return self.is_executed(opset) or (self.replaced_from is not None and opset >= self.replaced_from)


@reading_onnx_ir
def diagnose(model: ModelLike, *, registry: Registry | None = None) -> Diagnosis:
    """Determine the opsets at which each node is valid, and whether the declared versions match them.

    A node is valid at an opset if the operator version of that opset allows its number of inputs and outputs,
    its attributes with their values, and the known types of its inputs and outputs; for a few operators, also
    the shapes of inputs. Unsorted nodes are sorted first, as in a conversion.

    Args:
        model: a ModelProto, serialized bytes, a path, or a file object; it is not changed.
        registry: operator definitions; by default the project's own.

    Returns:
        The declared and the fitting versions, and the valid opsets of each node.

    Raises:
        InvalidModel: the input is not a model, or cannot be repaired.
    """
    source, _ = model_of(model)
    definitions = registry_or_default(registry)
    try:
        return _Doctor(source, definitions).diagnosis()
    except InvalidModel as error:
        repaired, repairs = repaired_copy(source, error, definitions)
    return replace(_Doctor(repaired, definitions).diagnosis(), repairs=repairs)


class _Doctor:
    """Diagnosis of one model: the opsets and the IR version for which its nodes are valid."""

    def __init__(self, model: ModelProto, registry: Registry) -> None:
        self._model = model
        self._registry = registry
        self._validity = OpsetValidity(registry)
        # The valid opsets of calls of local functions are unknown: calls have no operator definition.
        self._functions = {(canonical_domain(each.domain), each.name) for each in model.functions}
        self._all_nodes: list[NodeValidity] = []
        self._unknown = 0

    def diagnosis(self) -> Diagnosis:
        """Return the diagnosis; raise InvalidModel if the model has no graph, or needs a repair."""
        model = self._model
        require_graph(model)
        imports = _imports_of(model)
        opsets = _last_opsets(imports) or declared_opsets((), model.ir_version)
        graph = self._survey_all(model.graph, "graph", opsets)
        training = (
            self._survey_all(each.graph, each.path, opsets, graph.scope) for each in training_graphs(model)
        )
        stamps = self._stamps_of("model", opsets, imports, self._examine_all([graph, *training], opsets))
        for function in model.functions:
            imports = _imports_of(function)
            own = _last_opsets(imports) or opsets
            place = f"function {function_label(function)}"
            examined = self._examine_all([self._survey_all(function, place, own)], own)
            stamps += self._stamps_of(place, own, imports, examined) if imports else []
        ir_version = self._ir_stamp(stamps)
        is_free = ir_version.fitting >= FIRST_IR_WITH_STANDALONE_INITIALIZERS
        overridable = tuple(sorted(initializer_inputs(model.graph))) if is_free else ()
        guesses = tuple(choices(model, stamps, self._registry))
        return Diagnosis(
            tuple(stamps), ir_version, tuple(self._all_nodes), self._unknown, (), overridable, guesses
        )

    def _survey_all(
        self, container: ContainerProto, path: str, opsets: Mapping[str, int], parent: Scope | None = None
    ) -> ContainerSurvey:
        scope = Scope(container, opsets, self._registry, {}, parent)
        return survey(scope, path, lambda proto, scope: EXAMINE_ALL)

    def _examine_all(
        self, parts: Iterable[ContainerSurvey], opsets: Mapping[str, int]
    ) -> Mapping[str, set[_NodeOpsets]]:
        """Return the opsets at which the nodes of graphs or of a function are valid, by domain."""
        found: defaultdict[str, set[_NodeOpsets]] = defaultdict(set)
        for part in parts:
            for node, scope, path in _all_nodes(part):
                examined = self._examine_node(node, scope, path, opsets)
                if examined is not None:
                    found[canonical_domain(node.domain)].add(examined)
        return found

    def _stamps_of(
        self,
        place: str,
        opsets: Mapping[str, int],
        imports: Mapping[str, Sequence[int]],
        examined: Mapping[str, set[_NodeOpsets]],
    ) -> list[Stamp]:
        """Return one `Stamp` per domain that the model or function at `place` imports or uses."""
        stamps = []
        for domain in dict.fromkeys((*opsets, *examined)):
            nodes = examined.get(domain, set[_NodeOpsets]())
            stamp = self._stamp_of_domain(place, domain, opsets, imports.get(domain, ()), nodes)
            last = opsets.get(domain)
            repeated = tuple(dict.fromkeys(each for each in imports.get(domain, ()) if each != last))
            stamps.append(replace(stamp, repeated=repeated))
        return stamps

    def _examine_node(
        self, node: Node, scope: Scope, path: str, opsets: Mapping[str, int]
    ) -> _NodeOpsets | None:
        domain = canonical_domain(node.domain)
        opset = opsets.get(domain)
        is_call = (domain, node.op_type) in self._functions
        valid = None if is_call else self._validity.opsets(node, scope)
        operator = f"{domain}.{node.op_type}"
        if valid is None:
            self._unknown += 1
            # below IR version 3, models have no opset imports, so the import is not missing
            if opset is not None or self._model.ir_version < 3:
                return None
            valid = self._undefined_opsets(domain)
            self._all_nodes.append(NodeValidity(path, operator, opset_ranges(valid), missing_import(domain)))
            return _NodeOpsets(node.op_type, valid, None, frozenset())
        reason = ""
        if opset is None:
            reason = missing_import(domain)
        elif opset not in valid:
            reason = self._validity.violation(node, scope, opset)
        self._all_nodes.append(NodeValidity(path, operator, opset_ranges(valid), reason))
        replaced = self._validity.replaced_from(node, valid)
        return _NodeOpsets(node.op_type, valid, replaced, self._validity.nonstandard_opsets(node))

    def _undefined_opsets(self, domain: str) -> frozenset[int]:
        """Return the possible opsets of an undefined node; empty for an unknown domain without functions."""
        if not self._registry.is_open(domain):
            return frozenset(range(1, self._registry.newest_opset(domain) + 1))
        newest = self._registry.releases.open_domains.get(domain, 0)
        if any(domain == each for each, _ in self._functions):
            # Any opset is valid, for example 1: runtimes ignore the opset of a local function's domain.
            newest = max(newest, 1)
        return frozenset(range(1, newest + 1))

    def _stamp_of_domain(
        self,
        place: str,
        domain: str,
        opsets: Mapping[str, int],
        imported: Sequence[int],
        nodes: Collection[_NodeOpsets],
    ) -> Stamp:
        opset = opsets.get(domain)
        if self._registry.is_open(domain):
            if opset is not None:
                return Stamp(place, domain, opset, (), opset)
            common = frozenset.intersection(*(each.valid for each in nodes))
            return Stamp(place, domain, None, (), max(common, default=None))
        published = frozenset(range(1, self._registry.newest_opset(domain) + 1))
        common = published.intersection(*(each.valid for each in nodes))
        possible = common or [each for each in published if all(node.is_possible(each) for node in nodes)]
        preferred = self._probable_opset(domain, opsets) if opset is None else opset
        # The last possible import, or else the nearest possible opset, on a tie the newer one.
        fitting = next((each for each in reversed(imported) if each in possible), None)
        if fitting is None:
            fitting = min(possible, key=lambda each: (abs(each - preferred), -each), default=None)
        lacking = {each.operator for each in nodes if fitting is not None and fitting not in each.valid}
        # If onnxruntime executes all nodes at the declared opset, changing only the import would change their
        # meaning: convert them.
        is_converted = opset is not None and fitting != opset and not lacking
        is_converted &= opset in published and all(each.is_executed(preferred) for each in nodes)
        return Stamp(
            place,
            domain,
            opset,
            opset_ranges(common),
            fitting,
            tuple(sorted(lacking)),
            converted=is_converted,
        )

    def _probable_opset(self, domain: str, opsets: Mapping[str, int]) -> int:
        """Guess the opset of a domain without an import: its newest in releases not newer than the model."""
        default = opsets.get(DEFAULT_DOMAIN)
        newest, ir_version = self._registry.newest_opset(domain), self._model.ir_version
        releases = self._registry.releases.onnx.values()
        if default is None:
            candidates = [each for each in releases if each.ir_version <= ir_version]
        else:
            candidates = [each for each in releases if each.opsets.get(DEFAULT_DOMAIN, 0) <= default]
        return max((each.opsets.get(domain, 1) for each in candidates), default=newest)

    def _ir_stamp(self, stamps: list[Stamp]) -> IrStamp:
        published, declared = ir_versions(), self._model.ir_version
        needed = required_ir_version(self._model, self._registry)
        if 1 <= declared <= published.newest and needed <= max(declared, published.oldest):
            return IrStamp(declared, needed, declared)
        opsets = {each.domain: each.fitting for each in stamps if each.fitting is not None}
        return IrStamp(declared, needed, max(needed, self._registry.releases.ir_version_for(opsets)))


def _all_nodes(surveyed: ContainerSurvey) -> Iterator[tuple[Node, Scope, str]]:
    """Yield the nodes of a graph or function and of all nested subgraphs, with their scopes and labels."""
    for current in surveyed.walk():
        for line in current.candidates:
            proto = current.scope.proto_of(line)
            yield Node.from_proto(proto), current.scope, node_place(current.path, proto)


def _imports_of(container: ModelProto | FunctionProto) -> dict[str, list[int]]:
    """Return the versions of all imports of each canonical domain."""
    found: dict[str, list[int]] = {}
    for each in container.opset_import:
        found.setdefault(canonical_domain(each.domain), []).append(each.version)
    return found


def _last_opsets(imports: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Return the last import of each domain, which onnxruntime and onnx.reference use."""
    return {domain: versions[-1] for domain, versions in imports.items()}
