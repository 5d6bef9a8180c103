"""Diagnosis of a model: the opsets at which its nodes are valid, and the opset imports that it declares."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from opshift.analysis.doctor.diagnosis import Diagnosis, IrStamp, NodeValidity, Stamp, opset_ranges
from opshift.analysis.doctor.valid_opsets import OpsetValidity
from opshift.checker.ir_features.use import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.converter.ir_version.lower import required_ir_version
from opshift.inference.facts import OperatorStatus
from opshift.inference.repair import repaired_copy
from opshift.inference.scope import Scope
from opshift.inference.survey import ContainerSurvey, survey
from opshift.model.errors import InvalidModel, not_utf8_error
from opshift.model.files import ModelLike, model_of, reading_onnx_ir
from opshift.model.graphs import (
    ContainerProto,
    initializer_inputs,
    node_place,
    require_limited_lists,
    training_graphs,
)
from opshift.model.messages import ModelProto
from opshift.model.node import Node
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain, declared_opsets, function_label
from opshift.registry.ir_versions import ir_versions
from opshift.registry.registry import Registry, default_registry

EXAMINE_ALL = OperatorStatus(has_step=True, has_graphs=True)
"""Status that includes every node in the survey."""


class _NodeOpsets(NamedTuple):
    """Operator, the opsets at which a node is valid, and the one from which other operators replace it."""

    operator: str
    valid: frozenset[int]
    replaced_from: int | None

    def is_possible(self, opset: int) -> bool:
        """Return whether a node is valid at an opset, or can be replaced there."""
        return opset in self.valid or (self.replaced_from is not None and opset >= self.replaced_from)


@reading_onnx_ir
def diagnose(model: ModelLike, *, registry: Registry | None = None) -> Diagnosis:
    """Determine the opsets at which each node is valid, and whether the declared versions match them.

    A node is valid at an opset if the operator version of that opset allows its number of inputs and outputs,
    its attributes and their values, and the types of its values that are known. Nodes out of order are
    diagnosed in the order to which a conversion sorts them.

    Args:
        model: a ModelProto, serialized bytes, a path, or a file object; it is not changed.
        registry: the operator definitions, if not the project's own.

    Returns:
        The declared and the fitting versions, and the valid opsets of each node.

    Raises:
        InvalidModel: the input is not a model, or is invalid at every opset.
    """
    source, _ = model_of(model)
    definitions = registry or default_registry()
    try:
        try:
            return _Doctor(source, definitions).diagnosis()
        except InvalidModel as error:
            repaired, repairs = repaired_copy(source, error, definitions)
        return replace(_Doctor(repaired, definitions).diagnosis(), repairs=repairs)
    except UnicodeDecodeError as error:
        raise not_utf8_error() from error


class _Doctor:
    def __init__(self, model: ModelProto, registry: Registry) -> None:
        self._model = model
        self._registry = registry
        self._validity = OpsetValidity(registry)
        # calls of the model's own functions have no operator definition
        self._functions = {(canonical_domain(each.domain), each.name) for each in model.functions}
        self._nodes: list[NodeValidity] = []
        self._unknown = 0

    def diagnosis(self) -> Diagnosis:
        model = self._model
        require_limited_lists(model)
        opsets = declared_opsets(model.opset_import, model.ir_version)
        graph = self._survey(model.graph, "graph", opsets)
        training = (
            self._survey(each.graph, each.path, opsets, graph.scope) for each in training_graphs(model)
        )
        stamps = self._stamps("model", opsets, [graph, *training])
        for function in model.functions:
            imports = declared_opsets(function.opset_import, model.ir_version) or opsets
            place = f"function {function_label(function)}"
            function_stamps = self._stamps(place, imports, [self._survey(function, place, imports)])
            stamps += function_stamps if function.opset_import else []
        ir_version = self._ir_stamp(stamps)
        overridable: tuple[str, ...] = ()
        if ir_version.fitting >= FIRST_IR_WITH_STANDALONE_INITIALIZERS:
            overridable = tuple(sorted(initializer_inputs(model.graph)))
        return Diagnosis(
            tuple(stamps), ir_version, tuple(self._nodes), self._unknown, overridable=overridable
        )

    def _survey(
        self, container: ContainerProto, path: str, opsets: Mapping[str, int], parent: Scope | None = None
    ) -> ContainerSurvey:
        scope = Scope(container, opsets, self._registry, {}, parent)
        return survey(scope, path, lambda proto, scope: EXAMINE_ALL)

    def _stamps(self, place: str, opsets: Mapping[str, int], parts: list[ContainerSurvey]) -> list[Stamp]:
        """Return a stamp for each domain that the graphs or the function import or use."""
        found: dict[str, set[_NodeOpsets]] = {domain: set() for domain in opsets}
        for part in parts:
            for node, scope, path in _nodes(part):
                domain = canonical_domain(node.domain)
                examined = self._examine(node, scope, path, opsets.get(domain))
                if examined is not None:
                    found.setdefault(domain, set()).add(examined)
        return [self._stamp(place, domain, opsets, nodes) for domain, nodes in found.items()]

    def _examine(self, node: Node, scope: Scope, path: str, opset: int | None) -> _NodeOpsets | None:
        domain = canonical_domain(node.domain)
        is_call = (domain, node.op_type) in self._functions
        valid = None if is_call else self._validity.opsets(node, scope)
        if valid is None:
            self._unknown += 1
            return None
        reason = ""
        if opset is None:
            reason = f"domain {domain} has no opset import"
        elif opset not in valid:
            reason = self._validity.violation(node, scope, opset)
        self._nodes.append(NodeValidity(path, f"{domain}.{node.op_type}", opset_ranges(valid), reason))
        return _NodeOpsets(node.op_type, valid, self._validity.replaced_from(node, valid))

    def _stamp(
        self, place: str, domain: str, opsets: Mapping[str, int], nodes: Collection[_NodeOpsets]
    ) -> Stamp:
        opset = opsets.get(domain)
        if self._registry.is_open(domain):
            return Stamp(place, domain, opset, (), opset)
        published = frozenset(range(1, self._registry.newest_opset(domain) + 1))
        common = published.intersection(*(each.valid for each in nodes))
        possible = common or [each for each in published if all(node.is_possible(each) for node in nodes)]
        preferred = self._probable_opset(domain, opsets) if opset is None else opset
        # of two opsets at the same distance, the newer one
        fitting = min(possible, key=lambda each: (abs(each - preferred), -each), default=None)
        lacking = {each.operator for each in nodes if fitting is not None and fitting not in each.valid}
        return Stamp(place, domain, opset, opset_ranges(common), fitting, tuple(sorted(lacking)))

    def _probable_opset(self, domain: str, opsets: Mapping[str, int]) -> int:
        """Return the likely opset of a domain that is not imported, released with the declared versions."""
        default = opsets.get(DEFAULT_DOMAIN)
        newest, ir_version = self._registry.newest_opset(domain), self._model.ir_version
        candidates = (
            each
            for each in self._registry.releases.onnx.values()
            if (each.ir_version <= ir_version if default is None else each.opsets[DEFAULT_DOMAIN] <= default)
        )
        return max((each.opsets.get(domain, 1) for each in candidates), default=newest)

    def _ir_stamp(self, stamps: list[Stamp]) -> IrStamp:
        published, declared = ir_versions(), self._model.ir_version
        needed = required_ir_version(self._model, self._registry)
        if 1 <= declared <= published.newest and needed <= max(declared, published.oldest):
            return IrStamp(declared, needed, declared)
        opsets = {each.domain: each.fitting for each in stamps if each.fitting is not None}
        return IrStamp(declared, needed, max(needed, self._registry.releases.ir_version_for(opsets)))


def _nodes(surveyed: ContainerSurvey) -> Iterator[tuple[Node, Scope, str]]:
    """Yield the nodes of a graph or function and of all nested subgraphs, with their scopes and labels."""
    for current in surveyed.walk():
        for line in current.candidates:
            proto = current.scope.proto_of(line)
            yield Node.from_proto(proto), current.scope, node_place(current.path, proto)
