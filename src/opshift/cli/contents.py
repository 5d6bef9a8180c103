"""What a model is made of, counted; every operator resolved once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from opshift.converter.errors import InvalidModel
from opshift.converter.opsets import opset_imports
from opshift.converter.types import type_text
from opshift.registry.catalogue import LocalFunction, Registry
from opshift.registry.errors import ResolveError
from opshift.registry.names import canonical_domain

HOLDS_GRAPHS = frozenset((0, 5, 10))
"""`AttributeProto.type` of an attribute that holds a graph, graphs, or does not say."""


class Call(NamedTuple):
    """What a node says that it is."""

    domain: str
    op_type: str
    overload: str


@dataclass(frozen=True)
class Use:
    """An operator, how many nodes are of it, and why it cannot be told if so."""

    operator: str
    count: int
    kind: Literal["operator", "function", "foreign", "unresolved"]
    reason: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Value:
    """A graph input or output; empty where the model does not say."""

    name: str
    type: str
    shape: str


@dataclass(frozen=True)
class Contents:
    """A model in numbers and names."""

    ir_version: int
    producer: str
    opsets: dict[str, int]
    nodes: dict[str, int]
    """How many there are in the graph, in subgraphs, in functions, and for training."""
    initializers: int
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    functions: tuple[str, ...]
    operators: tuple[Use, ...]

    @property
    def unresolved(self) -> int:
        """How many nodes name no operator."""
        return sum(use.count for use in self.operators if use.kind == "unresolved")

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


def contents_of(model: Any, registry: Registry) -> Contents:
    """Count and resolve.

    Raises:
        InvalidModel: it has no graph, or no clear opset imports.
    """
    if not model.HasField("graph"):
        raise InvalidModel("is no model: it has no graph", remedy="check that it is the right file")
    opsets = opset_imports(model.opset_import, model.ir_version)
    functions = frozenset((each.domain, each.name, each.overload) for each in model.functions)
    resolver = _Resolver(registry, functions)
    graph, *subgraphs = resolver.count(model.graph, opsets)
    training = [
        sum(resolver.count(part, opsets))
        for info in model.training_info
        for part in (info.initialization, info.algorithm)
    ]
    bodies = [
        sum(resolver.count(each, opset_imports(each.opset_import or model.opset_import, model.ir_version)))
        for each in model.functions
    ]
    initialized = {each.name for each in model.graph.initializer}
    return Contents(
        model.ir_version,
        " ".join(filter(None, (model.producer_name, model.producer_version))),
        opsets,
        {"graph": graph, "subgraphs": sum(subgraphs), "functions": sum(bodies), "training": sum(training)},
        len(model.graph.initializer) + len(model.graph.sparse_initializer),
        tuple(_value(each) for each in model.graph.input if each.name not in initialized),
        tuple(map(_value, model.graph.output)),
        tuple(f"{canonical_domain(each.domain)}.{each.name}" for each in model.functions),
        resolver.uses(),
    )


class _Resolver:
    """Counts nodes by what they say, and resolves each kind once."""

    def __init__(self, registry: Registry, functions: frozenset[tuple[str, str, str]]) -> None:
        self._registry = registry
        self._functions = functions
        self._counts: Counter[tuple[Call, tuple[tuple[str, int], ...]]] = Counter()

    def count(self, container: Any, opsets: dict[str, int]) -> Iterator[int]:
        """The number of nodes in a graph or function, then of each graph within."""
        key = tuple(opsets.items())
        waiting = [container]
        while waiting:
            nodes = waiting.pop().node
            for node in nodes:
                self._counts[Call(node.domain, node.op_type, node.overload), key] += 1
                for attribute in node.attribute:
                    if attribute.type in HOLDS_GRAPHS:
                        waiting += [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]
            yield len(nodes)

    def uses(self) -> tuple[Use, ...]:
        """Every operator in use, the most frequent first, what is unresolved at the end."""
        found: Counter[Use] = Counter()
        for (call, key), count in self._counts.items():
            found[self._resolve(call, dict(key))] += count
        counted = [Use(use.operator, count, use.kind, use.reason, use.remedy) for use, count in found.items()]
        return tuple(sorted(counted, key=lambda use: (use.kind == "unresolved", -use.count, use.operator)))

    def _resolve(self, call: Call, opsets: dict[str, int]) -> Use:
        domain = canonical_domain(call.domain)
        name = f"{domain}.{call.op_type}"
        if (*call,) not in self._functions and domain in opsets and domain not in self._registry.domains():
            return Use(name, 0, "foreign", "the registry has no definitions of its domain")
        try:
            found = self._registry.resolve(call, opsets, self._functions)
        except ResolveError as error:
            return Use(name, 0, "unresolved", error.reason, error.remedy)
        if isinstance(found, LocalFunction):
            return Use(name, 0, "function", "a function of the model")
        return Use(str(found.id), 0, "operator", "deprecated" if found.deprecated else "")


def _value(value: Any) -> Value:
    """A graph input or output, its shape as `[N, 3, ?]`."""
    kind = value.type.WhichOneof("value")
    shape = ""
    if kind in ("tensor_type", "sparse_tensor_type") and getattr(value.type, kind).HasField("shape"):
        dims = getattr(value.type, kind).shape.dim
        shape = f"[{', '.join(str(dim.dim_value) if dim.HasField('dim_value') else dim.dim_param or '?' for dim in dims)}]"
    return Value(value.name, type_text(value.type) or "", shape)
