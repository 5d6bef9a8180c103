"""Collect the messages of a model that can use features of some IR versions, in one pass."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from opshift.model.attributes import ATTRIBUTE_TYPES, INT, TENSOR, graphs_in, tensors_in
from opshift.model.graphs import nested_nodes, node_place, training_graphs
from opshift.model.messages import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
)
from opshift.model.operator_ids import (
    DEFAULT_DOMAIN,
    LocalFunction,
    called_function,
    canonical_domain,
    function_id,
    function_label,
)
from opshift.registry.ir_versions import ir_versions
from opshift.registry.registry import Registry
from opshift.registry.steps import Allow

MESSAGE_TYPES = frozenset({0, *(kind.number for kind in ATTRIBUTE_TYPES.values() if not kind.is_plain)})
"""Numbers of attribute types with messages, such as TENSOR; 0 means undeclared, as in IR version 1."""

BASE_TYPES = frozenset(range(1, 16))
"""Numbers of the element types that every IR version has."""

ANY_ATTRIBUTE = frozenset({"*"})
"""Placeholder for unknown attributes; only those with messages are examined."""


MessageT = TypeVar("MessageT", NodeProto, AttributeProto, TensorProto, ValueInfoProto)


FIRST_IR_WITH_STANDALONE_INITIALIZERS = 4
"""First IR version in which an initializer does not have to be a graph input."""

STANDALONE = "standalone_initializers"


class Located(NamedTuple, Generic[MessageT]):
    """A message, and the path of the graph or function that contains it.

    Attributes:
        node: the node itself, or the node of an attribute; `None` for other messages and function defaults.
        role: the noun for the message in `place`, such as `initializer`; empty for a node.
    """

    path: str
    proto: MessageT
    node: NodeProto | None = None
    role: str = ""

    @property
    def place(self) -> str:
        """The place of the message, for findings and refusals."""
        owner, node = self.path, self.node
        if node is not None:
            owner = node_place(owner, node)
        return f"{owner}, {self.role} {self.proto.name!r}" if self.role else owner


class LocatedCall(NamedTuple):
    """Call of a local function; `caller` is the function that contains the call, or `None`."""

    located: Located[NodeProto]
    caller: FunctionProto | None


TensorOwner = Located[AttributeProto] | Located[TensorProto]
"""Attribute or initializer that contains a tensor; for a sparse initializer, its tensor `values`."""


class Contents:
    """Messages of a model that can use features of the IR versions after `oldest`, up to `newest`.

    If `model` is from an older `onnx` package, its classes lack the fields of newer IR versions.

    Attributes:
        targets: the opsets to which domains are converted before the IR version is changed.
        graphs: the main graph, training graphs and all nested graphs, also those in functions, by path.
        functions: the functions of the model, by path.
        node_lists, value_lists: the nodes and the ValueInfoProtos of each graph and function, by path.
        calls: the nodes that call a function of the model.
        attributes: the attributes that hold newer tensors, graphs or types, or set an element type.
        tensors: pairs of an owner and its tensor with metadata, external data or a newer element type; the
            values and indices of sparse tensors are included.
    """

    def __init__(
        self,
        model: ModelProto,
        registry: Registry,
        newest: int,
        *,
        targets: Mapping[str, int] = MappingProxyType({}),
        oldest: int = 0,
        operators: Collection[tuple[str, str]] | None = None,
    ) -> None:
        """Collect the messages.

        `operators`, if given, has domain and op_type of every node. If none of these operators can be a call
        or have attributes to collect, the attributes of all nodes are skipped.
        """
        self.model, self.registry, self.targets = model, registry, targets
        self.oldest, self.newest = oldest, newest
        self.graphs: list[tuple[str, GraphProto]] = []
        self.functions: list[tuple[str, FunctionProto]] = []
        self.node_lists: list[tuple[str, Sequence[NodeProto]]] = []
        self.value_lists: list[tuple[str, Sequence[ValueInfoProto]]] = []
        self.calls: list[LocatedCall] = []
        self.attributes: list[Located[AttributeProto]] = []
        self.tensors: list[tuple[TensorOwner, TensorProto]] = []
        self._caller: FunctionProto | None = None
        self._element_type_attributes = _element_type_attributes(model, registry)
        self._function_names = {function.name for function in model.functions}
        self._attribute_names: dict[str, frozenset[str]] = {}
        """Cache of the attribute names to examine, by operator of the default domain."""
        # The flags skip objects that cannot use a feature of these IR versions.
        features, types = ir_versions().features, ir_versions().element_types.values()
        self._collects_metadata = newest >= features["metadata"]
        self._collects_external_data = oldest < features["external_data"]
        self._collects_types = any(oldest < version <= newest for version in types)
        self._skips_nodes = operators is not None and self._are_irrelevant(operators)
        self._collect_graph("graph", model.graph)
        for each in training_graphs(model):
            self._collect_graph(each.path, each.graph)
        for function in model.functions:
            self._collect_function(f"function {function_label(function)}", function)

    def _are_irrelevant(self, operators: Collection[tuple[str, str]]) -> bool:
        """Return whether the model has no functions, and no attributes of these operators are collected."""
        if self._function_names:
            return False
        return not any(
            _attributes_of_interest(self.registry, canonical_domain(domain), op_type)
            for domain, op_type in operators
        )

    def _collect_function(self, path: str, function: FunctionProto) -> None:
        self.functions.append((path, function))
        self._caller = function
        element_types = self._element_type_attributes[function_id(function)]
        for attribute in getattr(function, "attribute_proto", ()):
            if attribute.type != INT or attribute.name in element_types:
                self._collect_attribute(Located(path, attribute, None, "attribute"))
        self.value_lists.append((path, getattr(function, "value_info", ())))
        self._collect_nodes(path, function.node)

    def _collect_graph(self, path: str, graph: GraphProto) -> None:
        self.graphs.append((path, graph))
        for tensor in self._relevant_tensors(graph.initializer):
            self.tensors.append((Located(path, tensor, None, "initializer"), tensor))
        for sparse in graph.sparse_initializer:
            for part in filter(self._is_relevant, (sparse.values, sparse.indices)):
                self.tensors.append((Located(path, sparse.values, None, "initializer"), part))
        self.value_lists += [(path, values) for values in (graph.input, graph.output, graph.value_info)]
        self._collect_nodes(path, graph.node)

    @property
    def has_newer_values(self) -> bool:
        """Whether initializers or `value_info` of the main graph may use newer features."""
        return any((owner.path, owner.role) == ("graph", "initializer") for owner, _ in self.tensors) or any(
            each.type.tensor_type.elem_type not in BASE_TYPES or getattr(each, "metadata_props", ())
            for each in self.model.graph.value_info
        )

    def leave_out(self, names: Collection[str]) -> None:
        """Remove initializers of the main graph, and their `value_info`, from the collected messages."""
        if names:
            graph, role = self.model.graph, "initializer"
            self.tensors = [
                (owner, tensor)
                for owner, tensor in self.tensors
                if (owner.path, owner.role) != ("graph", role) or owner.proto.name not in names
            ]
            values = [each for each in graph.value_info if each.name not in names]
            self.value_lists = [("graph", graph.input), ("graph", graph.output), ("graph", values)] + [
                each for each in self.value_lists if each[0] != "graph"
            ]

    def nodes_with(self, field: str) -> Iterator[Located[NodeProto]]:
        """Yield the nodes in which a field is set; NodeProto of an older `onnx` may lack the field."""
        for path, nodes in self.node_lists:
            for node in nodes:
                if getattr(node, field, None):
                    yield Located(path, node, node)

    @property
    def values(self) -> Iterator[Located[ValueInfoProto]]:
        """ValueInfoProtos with a newer element type, or without a dense tensor type."""
        for path, values in self.value_lists:
            for value in values:
                if value.type.tensor_type.elem_type not in BASE_TYPES:
                    yield Located(path, value, None, "value")

    def _relevant_tensors(self, tensors: Iterable[TensorProto]) -> Iterable[TensorProto]:
        # Like `_is_relevant`, but without a slow call for each tensor if metadata is not collected.
        if self._collects_metadata:
            return filter(self._is_relevant, tensors)
        if self._collects_external_data:
            return [each for each in tensors if each.data_type not in BASE_TYPES or each.data_location]
        return [each for each in tensors if each.data_type not in BASE_TYPES] if self._collects_types else ()

    def _is_relevant(self, tensor: TensorProto) -> bool:
        """Return whether a tensor has a newer element type, external data, or metadata that is collected."""
        if tensor.data_type not in BASE_TYPES or tensor.data_location:
            return True
        return self._collects_metadata and bool(getattr(tensor, "metadata_props", None))

    def _collect_nodes(self, path: str, nodes: Sequence[NodeProto]) -> None:
        self.node_lists.append((path, nodes))
        if self._skips_nodes:
            return
        cached = self._attribute_names
        for node in nodes:
            names = None if node.domain else cached.get(node.op_type)
            if names is None:
                names = self._look_up(path, node)
            if names:
                self._collect_attributes(path, node, names)

    def _look_up(self, path: str, node: NodeProto) -> frozenset[str]:
        """Return the names of attributes to examine, and collect the node if it is a call.

        The result is cached for operators of the default domain only; calls must be collected each time.
        """
        called = called_function(node)
        if called in self._element_type_attributes:
            self.calls.append(LocatedCall(Located(path, node, node), self._caller))
            return ANY_ATTRIBUTE | self._element_type_attributes[called]
        names = _attributes_of_interest(self.registry, called.domain, called.name)
        # Not cached for the name of a function: another node with this op_type may call an overload of it.
        if not node.domain and node.op_type not in self._function_names:
            self._attribute_names[node.op_type] = names
        return names

    def is_constant(self, node: NodeProto) -> bool:
        """Return whether a node has the standard operator Constant, not a local function of that name."""
        called = called_function(node)
        return called == (DEFAULT_DOMAIN, "Constant", "") and called not in self._element_type_attributes

    def _collect_attributes(self, path: str, node: NodeProto, names: frozenset[str]) -> None:
        for attribute in node.attribute:
            kind = attribute.type
            # Skip tensors with types that all IR versions have: these are most attributes with messages.
            is_examined = (
                self._is_relevant(attribute.t)
                if kind == TENSOR
                else kind in MESSAGE_TYPES or (kind == INT and attribute.name in names)
            )
            if is_examined:
                self._collect_attribute(Located(path, attribute, node, "attribute"))

    def _collect_attribute(self, held: Located[AttributeProto]) -> None:
        self.attributes.append(held)
        self.tensors += [(held, tensor) for tensor in filter(self._is_relevant, tensors_in(held.proto))]
        for graph in graphs_in(held.proto):
            holder = "" if held.node is None else held.node.name or held.node.op_type
            self._collect_graph(f"{held.path} / {holder}.{held.proto.name}", graph)


def _element_type_attributes(model: ModelProto, registry: Registry) -> Mapping[LocalFunction, Set[str]]:
    """Return the attributes of each function that nodes use for element types or messages, also via calls."""
    found: dict[LocalFunction, set[str]] = {function_id(function): set() for function in model.functions}
    pending: list[tuple[LocalFunction, str]] = []
    """Function attributes to be added to `found`."""
    sources: defaultdict[tuple[LocalFunction, str], list[tuple[LocalFunction, str]]] = defaultdict(list)
    """For each function attribute, the attributes of callers that calls pass to it."""
    for function in model.functions:
        caller = function_id(function)
        has_attributes = bool(function.attribute or getattr(function, "attribute_proto", None))
        for node in nested_nodes(function) if has_attributes else ():
            called = called_function(node)
            for attribute in node.attribute:
                if not (source := attribute.ref_attr_name):
                    continue
                if called in found:
                    sources[called, attribute.name].append((caller, source))
                elif attribute.name in _attributes_of_interest(registry, called.domain, called.name):
                    pending.append((caller, source))
    while pending:
        owner, name = pending.pop()
        # Each attribute is added once, because functions may call each other in a cycle.
        if name not in found[owner]:
            found[owner].add(name)
            pending += sources[owner, name]
    return found


@lru_cache(maxsize=4096)
def _attributes_of_interest(registry: Registry, domain: str, op_type: str) -> frozenset[str]:
    """Return the attributes that contain messages or an element type, in any version of an operator.

    Operators of other domains may have more attributes than their definitions: runtimes add some.
    """
    operator = registry.operator(op_type, domain)
    if operator is None:
        return ANY_ATTRIBUTE
    names: set[str] = set() if domain == DEFAULT_DOMAIN else set(ANY_ATTRIBUTE)
    for version in operator.versions:
        names.update(output.type_attribute for output in version.outputs if output.type_attribute)
        attributes = version.attributes.items()
        names.update(name for name, each in attributes if not ATTRIBUTE_TYPES[each.type].is_plain)
    return frozenset(names)


def since(feature: str) -> int:
    """Return the first IR version with a feature or an element type."""
    versions = ir_versions()
    return versions.features.get(feature) or versions.element_types[feature]


class Use(NamedTuple):
    """Use of an element type or a feature of `ir_versions.yaml`; `remedy` is advice about the obstacle.

    Attributes:
        obstacle: why the use cannot be rewritten for an older IR version; empty if it can be rewritten.
        allowance: the value of `allow` with which the converter drops the feature; `None` if it never does.
    """

    feature: str
    place: str
    obstacle: str = ""
    remedy: str = ""
    allowance: Allow | None = None
