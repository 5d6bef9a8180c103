"""Graphs and functions: indexes of values, walks over subgraphs, labels, limits, edits of repeated fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from operator import attrgetter, index
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeGuard, TypeVar, cast

from opshift.model.attributes import graphs_in
from opshift.model.element_types import BY_NUMBER
from opshift.model.errors import CannotConvert, InvalidModel, UsageError, wrong_type
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.types import Dim, InputFacts, element_type_of, fill_type

if TYPE_CHECKING:
    from opshift.model.messages import (
        FunctionProto,
        GraphProto,
        Message,
        ModelProto,
        NodeProto,
        Repeated,
        SparseTensorProto,
        TensorProto,
        TypeProto,
        ValueInfoProto,
    )


ContainerProto: TypeAlias = "GraphProto | FunctionProto"
"""Message with nodes: a graph or a function."""

ContainerT = TypeVar("ContainerT", bound=ContainerProto)

MAX_SUBGRAPH_DEPTH = 64
"""Maximum nesting depth of subgraphs; deeper than protobuf itself accepts when it parses bytes."""


MAX_LABEL, MAX_LABELLED_OUTPUTS = 1_000, 20
"""Maximum number of characters of a label, and maximum number of outputs that a label lists."""


def node_label(name: str, op_type: str, outputs: Sequence[str]) -> str:
    """Return the label of a node for messages: its name, or its operator and outputs.

    The label is cut to a limited length: a node may have thousands of findings, each with this label.
    """
    if name:
        return repr(name if len(name) <= MAX_LABEL else f"{name[:MAX_LABEL]}...")
    named = ", ".join(map(str, outputs[:MAX_LABELLED_OUTPUTS]))
    label = f"{op_type} -> {named}"
    more = len(outputs) - MAX_LABELLED_OUTPUTS
    return f"{label[:MAX_LABEL]}{f', and {more:,} more' if more > 0 else ''}"


def node_place(path: str, node: NodeProto) -> str:
    """Return the place of a node for messages: the path of its graph or function, and its label."""
    name = node.name
    # Most nodes have a name, and protobuf reads a repeated field slowly.
    return f"{path}, node {node_label(name, node.op_type, () if name else node.output)}"


_get_name = attrgetter("name")


def is_graph(container: ContainerProto) -> TypeGuard[GraphProto]:
    """Return whether a container of nodes is a graph, not a function: only graphs have initializers."""
    return hasattr(container, "initializer")


def too_deep_error(path: str) -> InvalidModel:
    """Return the error about a graph that is nested too deeply."""
    reason = f"graphs are nested more than {MAX_SUBGRAPH_DEPTH} deep"
    return InvalidModel(reason, place=path, remedy="move nodes of inner graphs to the enclosing graphs")


MAX_ENTRIES = {"training_info": 100, "opset_import": 1_000, "functions": 20_000}
"""Maximum lengths of lists of a model: each entry takes time to convert, even one of two bytes."""


def require_limited_lists(model: ModelProto, place: str = "") -> None:
    """Raise InvalidModel for a model with too many training graphs, opset imports or functions."""
    for field, limit in MAX_ENTRIES.items():
        count = len(getattr(model, field))
        if count > limit:
            reason = f"{field} has {count:,} entries, more than {limit:,}"
            raise InvalidModel(reason, place=place, remedy="remove the entries that are not needed")


def require_graph(model: ModelProto, place: str = "") -> None:
    """Raise InvalidModel if `require_limited_lists` does, or if the graph is missing."""
    require_limited_lists(model, place)
    if not model.HasField("graph"):
        remedy = "check that it is the right file"
        raise InvalidModel("this is not a model: it has no graph", place=place, remedy=remedy)


class Container:
    """Index of a GraphProto or FunctionProto, built lazily."""

    def __init__(self, container: ContainerProto) -> None:
        self.container = container
        self.is_function = not hasattr(container, "initializer")
        # The message has one of these two types: `is_function` determines which.
        self._graph, self._function = cast("GraphProto", container), cast("FunctionProto", container)
        # Cached, because reading a protobuf field takes longer than reading a Python attribute.
        self.nodes = container.node
        self._initializer_protos = () if self.is_function else self._graph.initializer
        self._initializer_names = [*map(_get_name, self._initializer_protos)]
        self.constant_inputs: frozenset[str] = frozenset()
        """Inputs with initializers that callers cannot override, as in subgraphs."""
        self.variables: frozenset[str] = frozenset()
        """Names of values that are not constant: training updates them, or Gradient substitutes other values.
        """
        self.read_in_training: frozenset[str] = frozenset()
        """Names of values that training graphs or bindings read or update."""

    @property
    def outputs(self) -> Iterator[str]:
        """Names of the outputs."""
        if self.is_function:
            return iter(self._function.output)
        return (value.name for value in self._graph.output)

    def initializer(self, name: str) -> TensorProto | None:
        """Return an initializer of this graph, or `None`."""
        position = self._initializers.get(name)
        return None if position is None else self._initializer_protos[position]

    def sparse_initializer(self, name: str) -> SparseTensorProto | None:
        """Return a sparse initializer of this graph, or `None`."""
        return self._sparse_initializers.get(name)

    def is_overridable(self, name: str) -> bool:
        """Return whether a value is an input that callers can pass, or is in `variables`."""
        return (name in self._inputs and name not in self.constant_inputs) or name in self.variables

    def own_declared_type(self, name: str) -> str | None:
        """Return the declared element type of a tensor, or the type string of another value, or `None`."""
        initializer = self.initializer(name) or (
            self._sparse_initializers[name].values if name in self._sparse_initializers else None
        )
        if initializer is not None:
            found = BY_NUMBER.get(initializer.data_type)
            return found.name if found else None
        declared = self.declared_type_proto(name)
        return element_type_of(declared) if declared is not None else None

    def declared_type_proto(self, name: str) -> TypeProto | None:
        """Return the declared type of a value, or `None`."""
        position = self.declared_positions.get(name)
        if position is None:
            return None
        for values in self._declaring_fields():
            if position < len(values):
                return values[position].type
            position -= len(values)
        raise AssertionError("the position of a declared value is out of range")

    def _declaring_fields(self) -> tuple[Sequence[ValueInfoProto], ...]:
        """Return the fields that declare types; if several fields declare a value, the last field counts."""
        if self.is_function:
            return (getattr(self.container, "value_info", ()),)
        return self._graph.value_info, self._graph.output, self._graph.input

    def predefined_names(self) -> set[str]:
        """Return the names defined before the first node, and the empty name of omitted values."""
        if self.is_function:
            return {"", *self._input_names}
        return {"", *self._input_names, *self._initializer_names, *self._sparse_initializers}

    @cached_property
    def node_records(self) -> list[NodeRecord]:
        """Records of the nodes, in order."""
        return list(read_node_records(self.container))

    def proto_of(self, record: NodeRecord) -> NodeProto:
        """Return the NodeProto of a record."""
        return self.nodes[record[0]]

    @cached_property
    def producing_records(self) -> dict[str, NodeRecord]:
        """Records of the nodes that produce values, by name of the value."""
        return {name: record for record in self.node_records for name in record[4]}

    @cached_property
    def op_types(self) -> frozenset[str]:
        """Names (op_type) of the operators of the nodes, without their domains."""
        return frozenset(record[2] for record in self.node_records)

    @cached_property
    def declared_positions(self) -> Mapping[str, int]:
        """Positions of the values with declared types, by name, counted over all `_declaring_fields`."""
        names = map(_get_name, chain.from_iterable(self._declaring_fields()))
        return {name: position for position, name in enumerate(names)}

    @cached_property
    def _initializers(self) -> dict[str, int]:
        # Positions, because holding many messages slows protobuf down (see `NodeRecord`).
        return {name: position for position, name in enumerate(self._initializer_names)}

    @cached_property
    def _sparse_initializers(self) -> dict[str, SparseTensorProto]:
        sparse = () if self.is_function else self._graph.sparse_initializer
        return {each.values.name: each for each in sparse}

    @cached_property
    def _input_names(self) -> list[str]:
        return self._function.input[:] if self.is_function else [*map(_get_name, self._graph.input)]

    @cached_property
    def _inputs(self) -> frozenset[str]:
        return frozenset(self._input_names)

    @cached_property
    def passed_positions(self) -> Mapping[str, int]:
        """Positions of the passed inputs (see `passed_inputs`), by name; the first one of a repeated name."""
        defaults = self.initializer_inputs()
        passed = [name for name in self._input_names if name not in defaults]
        return {name: position for position, name in reversed([*enumerate(passed)])}

    def initializer_inputs(self) -> frozenset[str]:
        """Return the names of the inputs that are initializers, too: inputs with a default value."""
        return self._inputs.intersection(chain(self._initializer_names, self._sparse_initializers))


def mentioned_names(container: ContainerProto) -> Iterator[str]:
    """Yield the names mentioned in `value_info` or quantization annotations.

    Optimizers may leave such an entry after they removed its value, so a new value must not take its name.
    """
    yield from map(_get_name, getattr(container, "value_info", ()))
    for each in getattr(container, "quantization_annotation", ()):
        yield each.tensor_name


def names_outside_nodes(container: ContainerProto) -> Iterator[str]:
    """Yield the names of inputs and outputs, and all value names in quantization annotations."""
    for value in (*container.input, *container.output):
        yield value if isinstance(value, str) else value.name
    for annotation in getattr(container, "quantization_annotation", ()):
        yield annotation.tensor_name
        yield from (each.value for each in annotation.quant_parameter_tensor_names)


def initializer_inputs(graph: GraphProto) -> frozenset[str]:
    """Return the names of the inputs of a graph that are initializers, too: inputs with a default value."""
    return Container(graph).initializer_inputs()


def passed_inputs(graph: GraphProto) -> list[ValueInfoProto]:
    """Return the inputs that a node passes to its subgraph: those without an initializer.

    Below IR version 4, initializers of a subgraph have to be inputs of it, too, in any position.
    """
    defaults = initializer_inputs(graph)
    return [value for value in graph.input if value.name not in defaults]


def graphs_of(node: NodeProto) -> Iterator[GraphProto]:
    """Return an iterator over the subgraphs in the attributes of a node."""
    attributes = node.attribute
    # most nodes have no attributes, and creating a generator for each of them takes longer
    return chain.from_iterable(map(graphs_in, attributes)) if attributes else iter(())


def captured_names(graph: GraphProto) -> list[str]:
    """Return the names that a graph and its subgraphs read from the enclosing graphs, with repetitions."""
    found: list[str] = []
    _add_captured_names(graph, set(), found)
    return found


def _add_captured_names(graph: GraphProto, defined: set[str], found: list[str]) -> None:
    # One set for all nested graphs: with generators, each name would pass through all enclosing graphs.
    added = [*Container(graph).predefined_names().difference(defined)]
    defined.update(added)
    for node in graph.node:
        found += [name for name in node.input if name not in defined]
        for each in graphs_of(node):
            _add_captured_names(each, defined, found)
        new = [name for name in node.output if name not in defined]
        defined.update(new)
        added += new
    found += [value.name for value in graph.output if value.name not in defined]
    defined.difference_update(added)


def nested_containers(roots: Iterable[ContainerT]) -> Iterator[ContainerT | GraphProto]:
    """Yield graphs or functions and all their subgraphs; each precedes its own subgraphs."""
    pending: list[ContainerT | GraphProto] = [*roots]
    while pending:
        container = pending.pop()
        yield container
        for node in container.node:
            pending += graphs_of(node)


def require_limited_depth(model: ModelProto) -> None:
    """Raise InvalidModel if subgraphs are nested deeper than `MAX_SUBGRAPH_DEPTH`, for code that recurses.

    Protobuf refuses to parse bytes with such nesting, but Python code can build such a message.
    """
    level: list[ContainerProto] = [*root_graphs(model), *model.functions]
    for _ in range(MAX_SUBGRAPH_DEPTH + 1):
        level = [graph for container in level for node in container.node for graph in graphs_of(node)]
    if level:
        raise too_deep_error("graph")


def defined_values(*roots: ContainerProto) -> Iterator[str]:
    """Yield the names of all values that graphs or functions define, including values in subgraphs."""
    for container in nested_containers(roots):
        yield from Container(container).predefined_names()
        for node in container.node:
            yield from node.output


def nested_nodes(*roots: ContainerProto) -> Iterator[NodeProto]:
    """Yield the nodes of graphs or functions, including the nodes in subgraphs."""
    for container in nested_containers(roots):
        yield from container.node


class TrainingGraph(NamedTuple):
    """Graph in the field `part` (`initialization` or `algorithm`) of a TrainingInfoProto."""

    position: int
    part: str
    graph: GraphProto

    @property
    def path(self) -> str:
        """Path of the graph for messages."""
        return f"training_info[{self.position}].{self.part}"


def count_model_nodes(model: ModelProto) -> int:
    """Return the number of nodes in all graphs, subgraphs and functions of a model."""
    roots: list[ContainerProto] = [*root_graphs(model), *model.functions]
    return sum(len(each.node) for each in nested_containers(roots))


MAX_NODES, MAX_GROWTH = 1 << 14, 8
"""Maximum number of nodes that a conversion adds, and maximum growth factor; the larger limit applies.

One node may become more than a thousand, and inlining functions that call the next one twice grows a model
exponentially. `fit` converts and checks about 8,000 nodes in a second, once for each opset that it compares.
"""


def max_node_count(model: ModelProto) -> int:
    """Return the maximum number of nodes that a conversion may add to a model."""
    return max(MAX_NODES, MAX_GROWTH * count_model_nodes(model))


def too_many_nodes(limit: int) -> CannotConvert:
    """Return the error for a conversion that would add more nodes than `max_node_count` allows."""
    reason = f"the conversion would add more than {limit:,} nodes to the model"
    return CannotConvert(reason, "limit.exceeded", remedy="convert to a newer opset")


def training_graphs(model: ModelProto) -> Iterator[TrainingGraph]:
    """Yield the initialization and the algorithm of each `training_info`."""
    for position, info in enumerate(model.training_info):
        yield TrainingGraph(position, "initialization", info.initialization)
        yield TrainingGraph(position, "algorithm", info.algorithm)


def domains_only_in_training(model: ModelProto) -> frozenset[str]:
    """Return the domains, except the default one, of nodes in training graphs that no other node has."""
    training = nested_nodes(*(each.graph for each in training_graphs(model)))
    found = {canonical_domain(node.domain) for node in training} - {DEFAULT_DOMAIN}
    others = nested_nodes(model.graph, *model.functions) if found else ()
    return frozenset(found.difference(canonical_domain(node.domain) for node in others))


def root_graphs(model: ModelProto) -> Iterator[GraphProto]:
    """Yield the main graph and the training graphs."""
    yield model.graph
    for each in training_graphs(model):
        yield each.graph


NodeRecord = tuple[int, str, str, tuple[str, ...], tuple[str, ...]]
"""Record of a node: its position, domain, op_type, and the names of its inputs and outputs.

A record does not hold the message: protobuf keeps a table of all messages that Python code references, and
a large table is slow. A record is a plain tuple, because a NamedTuple takes four times as long to create, in
a loop that takes half the time of a conversion with few changes.
"""


def read_node_record(position: int, node: NodeProto) -> NodeRecord:
    """Return the record of a NodeProto at a position."""
    return position, node.domain, node.op_type, tuple(node.input), tuple(node.output)


def read_node_records(container: ContainerProto) -> Iterator[NodeRecord]:
    """Yield a record for each node of a GraphProto or FunctionProto, in order."""
    interned: dict[str, str] = {}
    """Interned op_types: each access to the field returns a new string, and most models use few op_types."""
    # Reading a slice of a repeated field takes half the time of iterating over the field.
    for position, node in enumerate(container.node):
        op_type = node.op_type
        op_type = interned.setdefault(op_type, op_type)
        yield position, node.domain, op_type, tuple(node.input[:]), tuple(node.output[:])


Item = TypeVar("Item", bound="Message")


def sort_by_keys(field: Repeated[Item], keys: Iterable[int]) -> None:
    """Sort a repeated field by one key per message; messages with equal keys keep their order."""
    # A repeated field can neither insert nor take a list of keys. upb calls the key function once per
    # message, in the order of the field, so an iterator delivers the keys. `next` gets the message as its
    # default, which is not used: this takes less time than a function that ignores its argument.
    field.sort(key=partial(next, iter(keys)))


MAX_RUNS = 8
"""Maximum number of runs of adjacent messages that are deleted run by run, which takes quadratic time."""


def remove_messages(field: Repeated[Item], is_removed: Iterable[bool]) -> None:
    """Remove the messages for which `is_removed` is true, in linear time; the others keep their order."""
    flags = bytes(is_removed)
    runs: list[slice] = []
    stop = 0
    while (start := flags.find(1, stop)) >= 0 and len(runs) <= MAX_RUNS:
        stop = flags.find(0, start)
        stop = len(flags) if stop < 0 else stop
        runs.append(slice(start, stop))
    if len(runs) <= MAX_RUNS:
        for run in reversed(runs):
            del field[run]
    else:
        # a stable sort moves the removed messages to the end, where one slice deletes them
        sort_by_keys(field, flags)
        del field[-sum(flags) :]


def add_values(graph: GraphProto, known: Mapping[str, InputFacts], taken: Iterable[str]) -> None:
    """Add inputs, initializers and outputs to a graph with one node, for the values of the node.

    `known` has facts by input name; a tensor becomes an initializer. Names in `taken` become graph inputs,
    too, so that new values do not get these names. Raise UsageError for wrong names or facts in `known`.
    """
    node = graph.node[0]
    captured = (name for graph in graphs_of(node) for name in captured_names(graph))
    read = dict.fromkeys((*filter(None, node.input), *captured))
    for name in known:
        if name not in read:
            raise UsageError(f"the node has no input {name!r}", remedy=f"its inputs are {', '.join(read)}")
    produced = {name for name in node.output if name}
    for name in read:
        _add_value(graph, name, known.get(name))
    for name in dict.fromkeys(taken):
        if name and name not in read and name not in produced:
            graph.input.add(name=name)
    for name in filter(None, node.output):
        graph.output.add(name=name)


def _add_value(graph: GraphProto, name: str, known: Any) -> None:
    if hasattr(known, "data_type"):
        tensor = graph.initializer.add()
        tensor.ParseFromString(known.SerializeToString())
        tensor.name = name
        return
    value = graph.input.add(name=name)
    if hasattr(known, "tensor_type"):
        value.type.ParseFromString(known.SerializeToString())
    elif known is not None:
        is_pair = isinstance(known, tuple | list) and len(known) == 2
        element, dims = cast("tuple[str, Sequence[Dim] | None]", known if is_pair else (known, None))
        try:
            _set_type(value.type, name, element, dims)
        except (TypeError, ValueError) as error:  # protobuf refuses other values
            raise wrong_type(f"inputs[{name!r}]", dims, 'dimensions such as (2, "N", None)') from error


def _set_type(proto: TypeProto, name: str, text: str, dims: Sequence[Dim] | None) -> None:
    try:
        fill_type(proto, text, None)
    except (KeyError, AttributeError) as error:  # KeyError: an unknown name; AttributeError: not a string
        remedy = "pass an element type such as float, or a type such as seq(tensor(float))"
        raise UsageError(f"unknown element type {text!r} of input {name!r}", remedy=remedy) from error
    if dims is None or not proto.HasField("tensor_type"):
        return
    proto.tensor_type.shape.SetInParent()
    for dim in dims:
        added = proto.tensor_type.shape.dim.add()
        if isinstance(dim, str):
            added.dim_param = dim
        elif dim is not None:
            added.dim_value = index(dim)
