"""Structure of a model: what each output computes, apart from names, weights and the order of nodes."""

from collections import ChainMap
from collections.abc import Container, Iterable, MutableMapping
from graphlib import CycleError, TopologicalSorter
from hashlib import sha256

from opshift.model.attributes import dense_tensors_in, graphs_in
from opshift.model.element_types import BY_NUMBER
from opshift.model.errors import InvalidModel
from opshift.model.graphs import ContainerProto, initializer_inputs, is_graph, nested_containers
from opshift.model.messages import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
)
from opshift.model.node import Tensor
from opshift.model.operator_ids import (
    DEFAULT_DOMAIN,
    LocalFunction,
    called_function,
    canonical_domain,
    function_id,
    function_label,
)
from opshift.model.tensors import element_count, read_tensor

PARAMETER_TYPES = frozenset(("int64", "int32", "bool", "string"))
"""Element types of constants such as axes and shapes, which determine what a node computes."""

MAX_PARAMETER_ELEMENTS = 4096
"""Maximum size of such a constant; larger ones are tables that training may change."""

WEIGHT = "weight"
"""Digest of all other constants."""

Digests = MutableMapping[str, str]
"""Digests of values by name."""


def output_digests(model: ModelProto, inputs: Container[str]) -> Digests:
    """Return a digest for each output of the graph: equal digests mean the same operators and connections.

    Digests ignore opsets: the same nodes have the same digest at all of them. Initializers that callers can
    override are constants, except those in `inputs`.

    Raises:
        InvalidModel: functions call each other in a cycle.
    """
    defaults = initializer_inputs(model.graph)
    names = [each.name for each in model.graph.input if each.name in inputs or each.name not in defaults]
    values: Digests = {name: f"input {name}" for name in names}
    Structure(model.functions).add(model.graph, values)
    return {each.name: values.get(each.name, "") for each in model.graph.output}


class Structure:
    """Digests of the values in a model with local functions."""

    def __init__(self, functions: Iterable[FunctionProto]) -> None:
        self._digests: dict[LocalFunction, str] = {}
        by_id = {function_id(each): each for each in functions}
        # Callees first, without recursion: a chain of calls may be long.
        for called in _callees_first(by_id):
            self._digests[called] = self._function_digest(by_id[called])

    def add(self, container: ContainerProto, values: Digests, depth: int = 0) -> None:
        """Add the digests of the initializers and nodes of a graph or function to `values`."""
        if is_graph(container):
            for tensor in container.initializer:
                values.setdefault(tensor.name, _constant_digest(tensor))
            for sparse in container.sparse_initializer:
                values.setdefault(sparse.values.name, WEIGHT)
        for node in container.node:
            self._add_node(node, values, depth)

    def _add_node(self, node: NodeProto, values: Digests, depth: int) -> None:
        inputs = [values.get(name, name) for name in node.input]
        operator = (canonical_domain(node.domain), node.op_type)
        if operator == (DEFAULT_DOMAIN, "Identity") and inputs:
            found = inputs[:1]
        elif operator == (DEFAULT_DOMAIN, "Constant") and len(node.attribute) == 1:
            found = [_constant_attribute_digest(node.attribute[0])]
        else:
            while inputs and not inputs[-1]:  # omitted inputs
                inputs.pop()
            attributes = [self._attribute(each, values, depth) for each in sorted(node.attribute, key=_name)]
            key = _digest(self._digests.get(called_function(node), operator), attributes, inputs)
            found = [f"{key} {index}" for index in range(len(node.output))]
        values.update(zip(node.output, found, strict=False))

    def _attribute(self, attribute: AttributeProto, values: Digests, depth: int) -> object:
        graphs = [self._subgraph(each, values, depth + 1) for each in graphs_in(attribute)]
        tensors = [read_tensor(each) or each.SerializeToString() for each in dense_tensors_in(attribute)]
        if graphs or tensors:
            return attribute.name, graphs, tensors
        if attribute.doc_string:
            attribute = type(attribute).FromString(attribute.SerializeToString())
            attribute.ClearField("doc_string")
        return attribute.SerializeToString(deterministic=True)

    def _subgraph(self, graph: GraphProto, outer: Digests, depth: int) -> str:
        inputs = {each.name: f"input {depth} {index}" for index, each in enumerate(graph.input)}
        values = ChainMap(inputs, outer)  # a copy per subgraph would make the cost quadratic
        self.add(graph, values, depth)
        return _digest([values.get(each.name, "") for each in graph.output])

    def _function_digest(self, function: FunctionProto) -> str:
        values: Digests = {name: f"input {index}" for index, name in enumerate(function.input)}
        self.add(function, values)
        defaults = sorted(each.SerializeToString() for each in function.attribute_proto)
        outputs = [values.get(name, "") for name in function.output]
        return _digest(sorted(map(str, function.attribute)), defaults, outputs)


def _callees_first(functions: dict[LocalFunction, FunctionProto]) -> list[LocalFunction]:
    calls = TopologicalSorter[LocalFunction]()
    for caller, function in functions.items():
        nodes = (node for each in nested_containers([function]) for node in each.node)
        calls.add(caller, *(functions.keys() & set(map(called_function, nodes))))
    try:
        return list(calls.static_order())
    except CycleError as error:
        names = " -> ".join(function_label(functions[each]) for each in error.args[1])
        raise InvalidModel(f"functions call each other in a cycle: {names}", remedy="inline them") from error


def _constant_digest(tensor: TensorProto) -> str:
    kind, count = BY_NUMBER.get(tensor.data_type), element_count(tensor)
    if kind is None or kind.name not in PARAMETER_TYPES or count is None or count > MAX_PARAMETER_ELEMENTS:
        return WEIGHT
    value = read_tensor(tensor)
    return WEIGHT if value is None else _digest(value)


def _constant_attribute_digest(attribute: AttributeProto) -> str:
    """Return the digest of a Constant node's value, which is that of an initializer with the value."""
    if attribute.name == "value":
        return _constant_digest(attribute.t)
    if attribute.name in ("value_int", "value_ints", "value_string", "value_strings"):
        is_list = attribute.name.endswith("s")
        values = tuple(attribute.ints or attribute.strings) if is_list else (attribute.s or attribute.i,)
        kind = "string" if "string" in attribute.name else "int64"
        return _digest(Tensor(kind, (len(values),) if is_list else (), values))
    return WEIGHT


def _digest(*parts: object) -> str:
    return sha256(repr(parts).encode()).hexdigest()


def _name(attribute: AttributeProto) -> str:
    return str(attribute.name)  # protobuf may return bytes for text that is not UTF-8
