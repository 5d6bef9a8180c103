"""What a model holds that IR versions differ in, found by one look at every node, value and tensor."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from opshift.converter.container import graphs_in
from opshift.converter.functions import title
from opshift.converter.ir.parts import Held, Holder, Initializer, Placed, tensors_in
from opshift.registry.catalogue import Registry
from opshift.registry.ir_versions import ir_versions
from opshift.registry.models import OperatorVersion
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain

PLAIN = frozenset({"FLOAT", "INT", "STRING", "FLOATS", "INTS", "STRINGS"})
INT, TENSOR = 2, 4
HOLDING = frozenset({0, TENSOR, 5, *range(9, 15)})
"""Types of attributes that hold messages or lists of them; one without a type may."""
OLDEST = frozenset(range(1, 16))
"""The element types that every IR version has."""
ANY = frozenset({"*"})


@dataclass
class Contents:
    """Everything in a model that an IR version may lack.

    Attributes:
        oldest, newest: what the IR versions after `oldest`, up to `newest`, added was looked for.
        targets: the opsets to which domains are converted before the IR version is.
        graphs: the main graph, those of training, and all within them and within functions.
        functions: the model's own.
        described, overloaded, distributed: nodes with metadata, with an overload, with device configurations.
        calls: nodes that call a function of the model's own.
        attributes: those that hold tensors or types, or name an element type.
        tensors: those with metadata, with data elsewhere or of a newer type, and what holds each; also those
            that sparse tensors are made of.
        values: ValueInfoProtos with metadata, or of a type that is newer or of no dense tensor.
    """

    model: Any
    registry: Registry
    oldest: int
    newest: int
    targets: Mapping[str, int]
    graphs: list[Placed] = field(default_factory=list)
    functions: list[Placed] = field(default_factory=list)
    described: list[Placed] = field(default_factory=list)
    overloaded: list[Placed] = field(default_factory=list)
    distributed: list[Placed] = field(default_factory=list)
    calls: list[Placed] = field(default_factory=list)
    attributes: list[Held] = field(default_factory=list)
    tensors: list[tuple[Holder, Any]] = field(default_factory=list)
    values: list[Placed] = field(default_factory=list)


def contents_of(
    model: Any,
    registry: Registry,
    newest: int,
    *,
    targets: Mapping[str, int] = MappingProxyType({}),
    oldest: int = 0,
    operators: Collection[tuple[str, str]] | None = None,
) -> Contents:
    """Look at all of a model once, for what came after the IR version `oldest`, up to `newest`.

    Args:
        model: a ModelProto.
        registry: the definitions to go by.
        newest: the newest IR version that is looked for.
        targets: the opsets to which domains are converted before the IR version is.
        oldest: the newest IR version that is not looked for.
        operators: the domain and op_type of every node, if they are known: nodes of many need no look.
    """
    return _Look(Contents(model, registry, oldest, newest, targets), operators).contents


class _Look:
    """One walk over a model. A ModelProto of an older `onnx` lacks the fields of newer IR versions."""

    def __init__(self, contents: Contents, operators: Collection[tuple[str, str]] | None) -> None:
        self.contents = contents
        model, features = contents.model, ir_versions().features
        self._functions = {(canonical_domain(each.domain), each.name) for each in model.functions}
        self._names: dict[str, frozenset[str]] = {}
        """Operator of the default domain to the names of its attributes that are worth a look."""
        self._seeks_metadata = contents.newest >= features["metadata"]
        self._seeks_devices = contents.newest >= features["device_configurations"]
        self._seeks_external_data = contents.oldest < features["external_data"]
        types = ir_versions().element_types.values()
        self._seeks_types = any(contents.oldest < each <= contents.newest for each in types)
        self._skips_nodes = operators is not None and self._tell_nothing(operators)
        self._graph("graph", model.graph)
        for index, info in enumerate(model.training_info):
            for part in ("initialization", "algorithm"):
                self._graph(f"training_info[{index}].{part}", getattr(info, part))
        for function in model.functions:
            self._function(function)

    def _tell_nothing(self, operators: Collection[tuple[str, str]]) -> bool:
        """Whether no node of these operators can hold anything that is looked for."""
        if self._seeks_metadata or self._functions:
            return False
        return not any(self._telling(canonical_domain(domain), op_type) for domain, op_type in operators)

    def _function(self, function: Any) -> None:
        path = f"function {title(function)}"
        self.contents.functions.append(Placed(path, function))
        for attribute in getattr(function, "attribute_proto", ()):
            self._hold(Held(path, None, attribute))
        self._values(path, getattr(function, "value_info", ()))
        self._nodes(path, function.node)

    def _graph(self, path: str, graph: Any) -> None:
        self.contents.graphs.append(Placed(path, graph))
        self.contents.tensors += [
            (Initializer(path, tensor), tensor) for tensor in self._telling_tensors(graph.initializer)
        ]
        for sparse in graph.sparse_initializer:
            parts = filter(self._tells, (sparse.values, sparse.indices))
            self.contents.tensors += [(Initializer(path, sparse.values), each) for each in parts]
        for values in (graph.input, graph.output, graph.value_info):
            self._values(path, values)
        self._nodes(path, graph.node)

    def _values(self, path: str, values: Iterable[Any]) -> None:
        for value in values:
            is_plain = value.type.tensor_type.elem_type in OLDEST
            if not is_plain or (self._seeks_metadata and getattr(value, "metadata_props", None)):
                self.contents.values.append(Placed(path, value))

    def _telling_tensors(self, tensors: Iterable[Any]) -> Iterable[Any]:
        if self._seeks_metadata:
            return filter(self._tells, tensors)
        if self._seeks_external_data:
            return [each for each in tensors if each.data_type not in OLDEST or each.data_location]
        return [each for each in tensors if each.data_type not in OLDEST] if self._seeks_types else ()

    def _tells(self, tensor: Any) -> bool:
        """Whether a tensor holds something that the oldest IR version lacks."""
        if tensor.data_type not in OLDEST or tensor.data_location:
            return True
        return self._seeks_metadata and bool(getattr(tensor, "metadata_props", None))

    def _nodes(self, path: str, nodes: Any) -> None:
        if self._skips_nodes:
            return
        known = self._names
        if self._seeks_metadata:
            self._annotations(path, nodes)
        for node in nodes:
            names = None if node.domain else known.get(node.op_type)
            if names is None:
                names = self._look_up(path, node)
            if names:
                self._attributes(path, node, names)

    def _annotations(self, path: str, nodes: Any) -> None:
        """What came with metadata, or later."""
        found = self.contents
        has_functions = bool(self._functions)
        for node in nodes:
            if getattr(node, "metadata_props", None):
                found.described.append(Placed(path, node))
            if has_functions and getattr(node, "overload", None):
                found.overloaded.append(Placed(path, node))
            if self._seeks_devices and getattr(node, "device_configurations", None):
                found.distributed.append(Placed(path, node))

    def _look_up(self, path: str, node: Any) -> frozenset[str]:
        """The attributes to look at; for an operator of the default domain asked once."""
        domain = canonical_domain(node.domain)
        if (domain, node.op_type) in self._functions:
            self.contents.calls.append(Placed(path, node))
            return ANY
        found = self._telling(domain, node.op_type)
        if not node.domain:
            self._names[node.op_type] = found
        return found

    def _telling(self, domain: str, op_type: str) -> frozenset[str]:
        operator = self.contents.registry.operator(op_type) if domain == DEFAULT_DOMAIN else None
        return ANY if operator is None else _telling(operator.versions)

    def _attributes(self, path: str, node: Any, names: frozenset[str]) -> None:
        for attribute in node.attribute:
            kind = attribute.type
            if kind in HOLDING or (kind == INT and attribute.name in names):
                self._hold(Held(path, node, attribute))

    def _hold(self, held: Held) -> None:
        self.contents.attributes.append(held)
        parts = filter(self._tells, tensors_in(held.attribute))
        self.contents.tensors += [(held, each) for each in parts]
        for graph in graphs_in(held.attribute):
            holder = "" if held.node is None else held.node.name or held.node.op_type
            self._graph(f"{held.path} / {holder}.{held.attribute.name}", graph)


@lru_cache(maxsize=4096)
def _telling(versions: tuple[OperatorVersion, ...]) -> frozenset[str]:
    """The attributes of an operator that hold messages or name an element type."""
    found: set[str] = set()
    for version in versions:
        found.update(each.type_attribute for each in version.outputs if each.type_attribute)
        found.update(name for name, each in version.attributes.items() if each.type not in PLAIN)
    return frozenset(found)
