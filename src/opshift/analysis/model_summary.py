"""Summary of a model: its versions, inputs, outputs and operators."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from opshift.model.files import requiring_text
from opshift.model.graphs import nested_containers, require_graph, training_graphs
from opshift.model.messages import FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto
from opshift.model.model_version import unpack_version
from opshift.model.operator_ids import (
    LocalFunction,
    called_function,
    function_id,
    functions_with_opsets,
    opset_imports,
)
from opshift.model.types import declared_dims, dims_text, type_to_string
from opshift.registry.errors import ResolveError
from opshift.registry.registry import Registry


@dataclass(frozen=True)
class ValueSummary:
    """Graph input or output; `type` and `shape` are empty if the model does not declare them."""

    name: str
    type: str
    shape: str


@dataclass(frozen=True)
class OperatorUse:
    """Operator used by a model: its number of nodes, its kind, and a remark (`reason`) with a remedy."""

    operator: str
    count: int
    kind: Literal["operator", "function", "foreign", "unresolved"]
    reason: str = ""
    remedy: str = ""

    @property
    def note(self) -> str:
        """The reason, with the remedy in parentheses."""
        advice = f" ({self.remedy})" if self.remedy else ""
        return f"{'unresolved: ' if self.kind == 'unresolved' else ''}{self.reason}{advice}"


@dataclass(frozen=True)
class ModelSummary:
    """Versions, metadata, inputs, outputs and operators of a model."""

    ir_version: int
    producer: str
    domain: str
    model_version: str
    author: str
    license: str
    opsets: dict[str, int]
    nodes: dict[str, int]
    """Number of nodes in the main graph, in subgraphs, in functions and in training graphs."""
    initializers: int
    inputs: tuple[ValueSummary, ...]
    outputs: tuple[ValueSummary, ...]
    functions: tuple[str, ...]
    operators: tuple[OperatorUse, ...]

    @property
    def unresolved(self) -> int:
        """Number of nodes with an operator that cannot be resolved."""
        return sum(use.count for use in self.operators if use.kind == "unresolved")


@requiring_text
def summarize_model(model: ModelProto, registry: Registry) -> ModelSummary:
    """Count the nodes of a model and resolve their operators; raise InvalidModel if it has no graph."""
    require_graph(model)
    opsets = opset_imports(model.opset_import, model.ir_version)
    functions = [function_id(each) for each in model.functions]
    counter = OperatorCounter(registry, frozenset(functions))
    graph, *subgraphs = counter.count(model.graph, opsets)
    training = [sum(counter.count(each.graph, opsets)) for each in training_graphs(model)]
    bodies = []
    for function, imports in functions_with_opsets(model):
        bodies.append(sum(counter.count(function, imports)))
    # to omit initializers from the inputs: below IR version 4, every initializer has to be a graph input
    initialized = {each.name for each in model.graph.initializer}
    metadata = {each.key: each.value for each in model.metadata_props}
    return ModelSummary(
        model.ir_version,
        f"{model.producer_name} {model.producer_version}".strip(),
        model.domain,
        unpack_version(model.model_version),
        metadata.get("model_author", ""),
        metadata.get("model_license", ""),
        opsets,
        {"graph": graph, "subgraphs": sum(subgraphs), "functions": sum(bodies), "training": sum(training)},
        len(model.graph.initializer) + len(model.graph.sparse_initializer),
        tuple(_value_summary(each) for each in model.graph.input if each.name not in initialized),
        tuple(map(_value_summary, model.graph.output)),
        tuple(f"{each.domain}.{each.name}" for each in functions),
        counter.uses(),
    )


def _value_summary(value: ValueInfoProto) -> ValueSummary:
    dims = declared_dims(value.type)
    return ValueSummary(value.name, type_to_string(value.type) or "", "" if dims is None else dims_text(dims))


class OperatorCounter:
    """Counter of nodes per operator; it resolves each operator once for the same opset imports."""

    def __init__(self, registry: Registry, functions: frozenset[LocalFunction]) -> None:
        self._registry = registry
        self._functions = functions
        self._resolved: defaultdict[frozenset[tuple[str, int]], dict[LocalFunction, OperatorUse]]
        self._resolved = defaultdict(dict)
        self._counts: Counter[OperatorUse] = Counter()

    def count(self, container: GraphProto | FunctionProto, opsets: Mapping[str, int]) -> Iterator[int]:
        """Count nodes; yield the number of nodes of the graph or function, then of each nested subgraph."""
        resolved = self._resolved[frozenset(opsets.items())]  # functions have their own opset imports
        for each in nested_containers([container]):
            for node in each.node:
                key = called_function(node)
                if key not in resolved:
                    resolved[key] = self._resolve_operator(node, opsets)
                self._counts[resolved[key]] += 1
            yield len(each.node)

    def uses(self) -> tuple[OperatorUse, ...]:
        """Return the counted operators, most frequent first and unresolved ones last."""
        uses = [replace(use, count=count) for use, count in self._counts.items()]
        return tuple(sorted(uses, key=lambda use: (use.kind == "unresolved", -use.count, use.operator)))

    def _resolve_operator(self, node: NodeProto, opsets: Mapping[str, int]) -> OperatorUse:
        called = called_function(node)
        domain, name = called.domain, f"{called.domain}.{node.op_type}"
        is_function, opset = called in self._functions, opsets.get(domain)
        if not is_function and opset is not None and self._registry.is_undefined(called.name, opset, domain):
            return OperatorUse(name, 0, "foreign", "the registry does not define it")
        try:
            resolved = self._registry.resolve(node, opsets, self._functions)
        except ResolveError as error:
            nonstandard = self._registry.known_at(node.op_type, opset or 0, domain)
            if nonstandard is not None and nonstandard.domain != domain:
                return OperatorUse(str(nonstandard.id), 0, "operator", f"nonstandard in {domain}")
            return OperatorUse(name, 0, "unresolved", error.reason, error.remedy)
        if isinstance(resolved, LocalFunction):
            return OperatorUse(name, 0, "function", "local function of the model")
        return OperatorUse(str(resolved.id), 0, "operator", "deprecated" if resolved.deprecated else "")
