"""Integers of 4 and 2 bits that stay inside of a model, as integers of 8 bits with the same values."""

from copy import deepcopy
from math import prod

from opshift.converter.constant_nodes import add_constant_node
from opshift.converter.rewrite.validation import validate_node
from opshift.converter.rewrite.workspace import FreshNames
from opshift.converter.root_scopes import root_scopes
from opshift.inference.function_scope import CallScope
from opshift.inference.model_element_types import element_types_in
from opshift.model.attributes import INT, graphs_in, tensors_in, types_in
from opshift.model.element_types import BY_NAME, BY_NUMBER, INTEGER_BITS, element_names
from opshift.model.errors import CannotConvert
from opshift.model.external_data import EXTERNAL
from opshift.model.graphs import (
    ContainerProto,
    is_graph,
    nested_containers,
    nested_nodes,
    node_place,
    root_graphs,
)
from opshift.model.messages import AttributeProto, ModelProto, NodeProto, TensorProto, TypeProto
from opshift.model.node import Node, Tensor
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.tensors import PACKED_BITS, packed_range, unpacked_bytes
from opshift.model.types import type_to_string
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry

WIDER = {name: "int8" if name.startswith("int") else "uint8" for name in PACKED_BITS}

NUMBERS = {BY_NAME[name].number: BY_NAME[wider].number for name, wider in WIDER.items()}
"""Numbers of the narrow types, and of the types that replace them."""

EXACT_SOURCES = {*INTEGER_BITS, *WIDER, "bool"}
"""Types with a defined Cast to narrow integers; runtimes differ in how they round others."""

COMPUTING_OPERATORS = ("Cast", "CastLike", "QuantizeLinear")
"""Operators that compute narrow integers; others only move them, or read their values."""

REMEDY = "convert to opset 21 or later, or use integers of 8 bits"


def replace_narrow_integers(
    model: ModelProto, registry: Registry
) -> tuple[ModelProto | None, dict[str, CannotConvert]]:
    """Return a copy of a model without narrow integers, or the reasons against it by the places of nodes."""
    containers: list[ContainerProto] = [*root_graphs(model), *model.functions]
    operators = {(node.domain, node.op_type) for node in nested_nodes(*containers)}
    values = (value for graph in root_graphs(model) for value in (*graph.input, *graph.output))
    roots = [scope for scope, _, _ in root_scopes(model, model, registry)]
    graphs = ((root, each) for root in roots for each in nested_containers([root.container]))
    scopes = [*roots, *(root.child(each) for root, each in graphs if is_graph(each))]
    types = element_types_in(scopes, operators)
    if types.isdisjoint(WIDER) or any(_is_narrow(value.type) for value in values):
        return None, {}
    names, copy, reasons = FreshNames(), deepcopy(model), dict[str, CannotConvert]()
    names.avoid(*containers)
    for scope, container, path in root_scopes(model, copy, registry):
        _Pass(scope, container, path, names, reasons).run()
    return None if reasons else copy, reasons


def _is_narrow(value_type: TypeProto) -> bool:
    return not WIDER.keys().isdisjoint(element_names(type_to_string(value_type) or ""))


class _Pass:
    """Pass over the copy of a graph or function; `scope` is that of the original."""

    def __init__(
        self,
        scope: CallScope,
        container: ContainerProto,
        path: str,
        names: FreshNames,
        reasons: dict[str, CannotConvert],
    ) -> None:
        self._scope = scope
        self._container = container
        self._path = path
        self._names = names
        self._reasons = reasons
        self._result: ContainerProto = type(container)()

    def run(self) -> None:
        """Rewrite the container, and add the reasons for refusal."""
        container = self._container
        values = [*getattr(container, "value_info", ())]
        if is_graph(container):
            values += [*container.input, *container.output]
            for tensor in container.initializer:
                if tensor.data_type in NUMBERS and tensor.data_location == EXTERNAL and prod(tensor.dims) > 0:
                    self._unpack(tensor)
                self._widen(tensor, self._path)
            for sparse in container.sparse_initializer:
                self._widen(sparse.values, self._path)
        for value in values:
            _widen_type(value.type)
        for proto, copy in zip(self._scope.container.node, container.node, strict=True):
            try:
                self._rewrite(proto, copy)
            except CannotConvert as error:
                self._reasons[node_place(self._path, proto)] = error
        del container.node[:]
        container.node.extend(self._result.node)

    def _rewrite(self, proto: NodeProto, copy: NodeProto) -> None:
        operator = self._scope.operator(proto.op_type, proto.domain)
        types = [self._scope.element_type(name) for name in (*proto.input, *proto.output) if name]
        narrow = next((each for each in types if each in WIDER), None)
        # Operators of other domains may read bytes as packed integers, such as GatherBlockQuantized.
        only_moves = operator and operator.domain == DEFAULT_DOMAIN and operator.name != "BitCast"
        if narrow and not only_moves and self._scope.functions.find(proto) is None:
            reason = f"{proto.op_type} may depend on the number of bits of {narrow}"
            raise CannotConvert(reason, "type.narrow-integer", subject=narrow, remedy=REMEDY)
        named = {output.type_attribute for output in operator.outputs} if operator else set()
        for attribute, new in zip(proto.attribute, copy.attribute, strict=True):
            self._widen_attribute(attribute, new, proto)
            if attribute.name in named and attribute.ref_attr_name:
                reason = f"the type {attribute.name!r} depends on the calls of the function"
                raise CannotConvert(reason, "function.reference", remedy="inline the function")
            if attribute.name in named and new.i in NUMBERS:
                new.i = NUMBERS[new.i]
        self._result.node.append(copy)
        if operator and operator.domain == DEFAULT_DOMAIN and proto.op_type in COMPUTING_OPERATORS:
            self._restrict(Node.from_proto(proto), self._result.node[-1], operator)

    def _restrict(self, node: Node, copy: NodeProto, operator: OperatorVersion) -> None:
        """Restrict the result of the last node to the values of the narrow type."""
        validate_node(node, operator)
        source, name = self._scope.element_type(node.inputs[0]), node.output(0)
        result = self._scope.element_type(name) if name else "uint8"
        if result is None:
            reason = f"the element type of {name!r} is unknown"
            raise CannotConvert(reason, "unknown.element-type", remedy=f"add a value_info for {name!r}")
        if result not in WIDER:
            return
        values = packed_range(result)
        if node.op_type == "QuantizeLinear":
            copy.output[0] = self._names.fresh(name)
            bounds = [
                self._constant(WIDER[result], (), values[0]),
                self._constant(WIDER[result], (), values[-1]),
            ]
            self._emit("Clip", [copy.output[0], *bounds], name)
            return
        if source not in EXACT_SOURCES:
            reason = f"runtimes round a Cast from {source} to {result} differently"
            raise CannotConvert(reason, "result.runtime-dependent", remedy=REMEDY)
        copy.op_type = "Cast"
        del copy.input[1:], copy.attribute[:]
        copy.attribute.add(name="to", type=INT, i=BY_NAME["int32"].number)
        copy.output[0] = self._names.fresh(name)
        self._emit("Cast", [self._low_bits(copy.output[0], result)], name, to=BY_NAME[WIDER[result]].number)

    def _low_bits(self, value: str, element_type: str) -> str:
        """Return the number with the low bits of an int32 value."""
        values = packed_range(element_type)
        shifted = self._emit("Sub", [value, self._constant("int32", (), values[0])])
        low = self._emit("Mod", [shifted, self._constant("int32", (), len(values))])
        return self._emit("Add", [low, self._constant("int32", (), values[0])])

    def _unpack(self, tensor: TensorProto) -> None:
        """Add the nodes that unpack an external tensor, and turn it into one of packed bytes."""
        element_type, dims, name = BY_NUMBER[tensor.data_type].name, tuple(tensor.dims), tensor.name
        tensor.name = self._names.fresh(f"{name}_packed")
        bits, count = PACKED_BITS[element_type], prod(dims)
        tensor.data_type = BY_NAME["uint8"].number
        tensor.dims[:] = [-(-count * bits // 8)]
        packed = self._emit("Cast", [tensor.name], to=BY_NAME["int32"].number)
        column = self._emit("Reshape", [packed, self._constant("int64", (2,), -1, 1)])
        divisors = [1 << shift for shift in range(0, 8, bits)]
        rows = self._emit("Div", [column, self._constant("int32", (len(divisors),), *divisors)])
        flat = self._emit("Reshape", [rows, self._constant("int64", (1,), -1)])
        bounds = [self._constant("int64", (1,), each) for each in (0, count)]
        integers = self._low_bits(self._emit("Slice", [flat, *bounds]), element_type)
        shaped = self._emit("Reshape", [integers, self._constant("int64", (len(dims),), *dims)])
        self._emit("Cast", [shaped], name, to=BY_NAME[WIDER[element_type]].number)

    def _emit(self, op_type: str, inputs: list[str], output: str = "", **attributes: int) -> str:
        output = output or self._names.fresh(op_type.lower())
        node = self._result.node.add(op_type=op_type, input=inputs, output=[output])
        for name, value in attributes.items():
            node.attribute.add(name=name, type=INT, i=value)
        return output

    def _constant(self, element_type: str, dims: tuple[int, ...], *values: int) -> str:
        name = self._names.fresh("const")
        add_constant_node(self._result, name, Tensor(element_type, dims, values))
        return name

    def _widen_attribute(self, attribute: AttributeProto, copy: AttributeProto, owner: NodeProto) -> None:
        for value_type in types_in(copy):
            _widen_type(value_type)
        for tensor in tensors_in(copy):
            self._widen(tensor, node_place(self._path, owner))
        for old, new in zip(graphs_in(attribute), graphs_in(copy), strict=True):
            scope = self._scope.child(old)
            scope.owner = owner
            path = f"{self._path} / {owner.name or owner.op_type}.{attribute.name}"
            _Pass(scope, new, path, self._names, self._reasons).run()

    def _widen(self, tensor: TensorProto, place: str) -> None:
        """Unpack the elements of a tensor."""
        if tensor.data_type not in NUMBERS:
            return
        unpacked = unpacked_bytes(tensor)
        if unpacked is None:
            reason = f"tensor {tensor.name!r} has external or invalid data"
            self._reasons[place] = CannotConvert(
                reason, "tensor.unreadable", remedy="load the external data into the model"
            )
            return
        tensor.ClearField("int32_data")
        tensor.raw_data, tensor.data_type = unpacked, NUMBERS[tensor.data_type]


def _widen_type(value_type: TypeProto) -> None:
    """Replace narrow types in a type."""
    kind = value_type.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(value_type, kind)
        if tensor.elem_type in NUMBERS:
            tensor.elem_type = NUMBERS[tensor.elem_type]
    elif kind in ("sequence_type", "optional_type"):
        _widen_type(getattr(value_type, kind).elem_type)
    elif kind == "map_type":
        _widen_type(value_type.map_type.value_type)
