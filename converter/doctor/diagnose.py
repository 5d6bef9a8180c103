"""Look at every node of a model, and at what the model says of itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from opshift.adapters.node import Node
from opshift.converter.concessions import Concessions
from opshift.converter.convert import model_of
from opshift.converter.doctor.diagnosis import Diagnosis, IrStamp, NodeLegality, Stamp, ranges
from opshift.converter.doctor.legal import Judge
from opshift.converter.errors import InvalidModel
from opshift.converter.functions import title
from opshift.converter.ir.lowering import least_version
from opshift.converter.ir_version import needed_for
from opshift.converter.names import Names
from opshift.converter.scope import Scope, Standing
from opshift.converter.survey import Surveyed, label, survey
from opshift.registry.catalogue import Registry, default_registry
from opshift.registry.ir_versions import ir_versions
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain

EVERYTHING = Standing(has_step=True, has_graphs=True)
Judged = tuple[Node, NodeLegality, frozenset[int]]


def diagnose(model: Any, *, registry: Registry | None = None) -> Diagnosis:
    """For which opsets each node is legal as it stands, whether what the model states fits, and what would.

    A node is legal at an opset if the operator version in force there has its number of inputs and outputs,
    its attributes and their values, and the types of its values as far as they are known.

    Args:
        model: a ModelProto, its bytes, or a path; it is left as it is.
        registry: the definitions to go by, if not the project's own.

    Raises:
        InvalidModel: the input is not a model, or has no meaning whatever it states.
    """
    source, _ = model_of(model)
    try:
        return _Doctor(source, registry or default_registry()).diagnosis()
    except UnicodeDecodeError as error:
        raise InvalidModel("a name in the model is not UTF-8 text") from error


class _Doctor:
    def __init__(self, model: Any, registry: Registry) -> None:
        self._model = model
        self._registry = registry
        self._judge = Judge(registry)
        self._functions = {(canonical_domain(each.domain), each.name) for each in model.functions}
        self._nodes: list[NodeLegality] = []
        self._unknown = 0

    def diagnosis(self) -> Diagnosis:
        """All of it."""
        model = self._model
        opsets = _stated(model.opset_import, model.ir_version)
        graph = self._survey(model.graph, "graph", opsets)
        training = [
            self._survey(getattr(info, part), f"training_info[{index}].{part}", opsets, graph.scope)
            for index, info in enumerate(model.training_info)
            for part in ("initialization", "algorithm")
        ]
        stamps = self._stamps("model", opsets, [graph, *training])
        for each in model.functions:
            own = _stated(each.opset_import, model.ir_version) or opsets
            place = f"function {title(each)}"
            found = self._stamps(place, own, [self._survey(each, place, own)])
            stamps += found if each.opset_import else []
        return Diagnosis(tuple(stamps), self._ir_stamp(stamps), tuple(self._nodes), self._unknown)

    def _survey(
        self, container: Any, path: str, opsets: Mapping[str, int], parent: Scope | None = None
    ) -> Surveyed:
        scope = Scope(container, opsets, self._registry, Names(), Concessions(), {}, parent)
        return survey(scope, path, lambda proto, scope: EVERYTHING)

    def _stamps(self, place: str, opsets: Mapping[str, int], surveyed: list[Surveyed]) -> list[Stamp]:
        """What the nodes of some graphs, or of a function, ask of the opset imports that hold for them."""
        legal: dict[str, set[frozenset[int]]] = {domain: set() for domain in opsets}
        for each in surveyed:
            for node, scope, path in _nodes(each):
                domain = canonical_domain(node.domain)
                found = self._look(node, scope, path, opsets.get(domain))
                if found is not None:
                    legal.setdefault(domain, set()).add(found)
        return [self._stamp(place, domain, opsets, found) for domain, found in legal.items()]

    def _look(self, node: Node, scope: Scope, path: str, opset: int | None) -> frozenset[int] | None:
        domain = canonical_domain(node.domain)
        is_call = (domain, node.op_type) in self._functions
        found = None if is_call else self._judge.opsets(node, scope)
        if found is None:
            self._unknown += 1
            return None
        reason = ""
        if opset is None:
            reason = f"domain {domain} has no opset import"
        elif opset not in found:
            reason = self._judge.why_not(node, scope, opset)
        self._nodes.append(NodeLegality(path, f"{domain}.{node.op_type}", ranges(found), reason))
        return found

    def _stamp(
        self, place: str, domain: str, opsets: Mapping[str, int], legal: Iterable[frozenset[int]]
    ) -> Stamp:
        opset = opsets.get(domain)
        if domain not in self._registry.domains():
            return Stamp(place, domain, opset, (), opset)
        known = frozenset(range(1, self._registry.newest_opset(domain) + 1))
        common = known.intersection(*legal)
        near = self._likely(domain, opsets) if opset is None else opset
        fitting = min(common, key=lambda each: (abs(each - near), -each), default=None)
        return Stamp(place, domain, opset, ranges(common), fitting)

    def _likely(self, domain: str, opsets: Mapping[str, int]) -> int:
        """The opset of a domain that is not imported: that which came with what is."""
        default = opsets.get(DEFAULT_DOMAIN)
        newest, ir_version = self._registry.newest_opset(domain), self._model.ir_version
        releases = (
            each
            for each in self._registry.releases.onnx.values()
            if (each.ir_version <= ir_version if default is None else each.opsets[DEFAULT_DOMAIN] <= default)
        )
        return max((each.opsets.get(domain, 1) for each in releases), default=newest)

    def _ir_stamp(self, stamps: list[Stamp]) -> IrStamp:
        known, stated = ir_versions(), self._model.ir_version
        needed = least_version(self._model, self._registry)
        if 1 <= stated <= known.newest and needed <= max(stated, known.oldest):
            return IrStamp(stated, needed, stated)
        opsets = {each.domain: each.fitting for each in stamps if each.fitting is not None}
        return IrStamp(stated, needed, max(needed, needed_for(opsets, self._registry.releases)))


def _stated(imports: Any, ir_version: int) -> dict[str, int]:
    """Domain to opset; of a domain that is imported twice, the first. Before IR 3 none means opset 1."""
    found: dict[str, int] = {}
    for each in imports:
        found.setdefault(canonical_domain(each.domain), each.version)
    return found or ({DEFAULT_DOMAIN: 1} if ir_version < 3 else {})


def _nodes(surveyed: Surveyed) -> Iterator[tuple[Node, Scope, str]]:
    """Every node of a graph or function and of the graphs within, with its place."""
    waiting = [surveyed]
    while waiting:
        current = waiting.pop()
        for line in current.todo:
            proto = current.scope.proto_of(line)
            place = f"{current.path}, node {label(proto.name, proto.op_type, proto.output)}"
            yield Node.of(proto), current.scope, place
        waiting += reversed([each[3] for each in current.subgraphs])
