"""Change of a graph to the chosen element types: casts, constants, attributes and declarations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from opshift.converter.element_types.choose_types import has_stated_type
from opshift.converter.element_types.element_change import ElementChange
from opshift.converter.element_types.graph_types import GraphTypes, TypedValue
from opshift.converter.internal_types.node_writer import NodeWriter
from opshift.converter.internal_types.widen_tensors import type_numbers, widen_type
from opshift.inference.constants import read_constant_node
from opshift.inference.infer_types import parameter_at
from opshift.model.attributes import INT, STRING, TENSOR, graphs_in, types_in
from opshift.model.element_types import BY_NAME, BY_NUMBER, element_names
from opshift.model.errors import CannotConvert
from opshift.model.external_data import EXTERNAL
from opshift.model.graphs import graphs_of, node_place
from opshift.model.messages import GraphProto, NodeProto, TensorProto, TypeProto
from opshift.model.node import Node, Tensor
from opshift.model.offloaded_tensors import store_of, with_payload
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.tensors import DATA_FIELDS, pack_tensor, read_tensor, write_tensor
from opshift.rewriting.constant_nodes import CAST_NAMES_TYPE_UNTIL
from opshift.rewriting.workspace import FreshNames

EXTERNAL_REMEDY = "convert the file: opshift convert, or convert_file in Python"


@dataclass
class TypeChange:
    """Changes of the types of one model.

    Attributes:
        changes: new element types by old ones.
        keeps_interface: whether inputs and outputs of the main graph keep their types.
        clamps: whether constants out of the range of the new type become the nearest number.
        names: generator of the names of new values.
        reasons: reasons against the conversion, by place.
    """

    changes: Mapping[str, str]
    keeps_interface: bool
    clamps: bool
    names: FreshNames
    reasons: dict[str, CannotConvert]
    casts: int = 0

    def change(self, types: GraphTypes, graph: GraphProto, parent: _Graph | None = None) -> None:
        """Change a copy of the graph for which types were chosen."""
        state = _Graph(types, parent, NodeWriter(type(graph)(), self.names))
        self._change_inputs(state, graph)
        is_main = parent is None
        required = not (is_main and self.keeps_interface)
        for position, node in enumerate(graph.node):
            try:
                self._change_node(position, node, state, required if is_main else None)
            except CannotConvert as error:
                self.reasons[node_place(types.path, node)] = error
        for value in graph.output:
            found = types.find(value.name)
            if found is None:
                continue
            is_new = required and found.can_change if is_main else found.passes_subgraphs
            if not is_main:
                value.name = self._name_of(value.name, found, state, is_new=is_new)
            if is_new:
                self._set_type(value.type)
        for value in graph.value_info:
            own = types.values.get(value.name)
            if own and state.names.get((value.name, True)) == value.name:
                self._set_type(value.type)
        del graph.node[:]
        graph.node.extend(state.writer.result.node)

    def _change_inputs(self, state: _Graph, graph: GraphProto) -> None:
        values = state.types.values
        tensors = [*graph.initializer, *(each.values for each in graph.sparse_initializer)]
        for name, own in values.items():
            state.names[name, bool(own.is_new)] = name
        for declared in graph.input:
            if declared.name in values and values[declared.name].is_new:
                self._set_type(declared.type)
        for tensor in tensors:
            value = values.get(tensor.name)
            if value is None:
                continue
            name, is_required = tensor.name, not self.keeps_interface and value.can_change
            if value.is_new:
                self._change_tensor(tensor, f"{state.types.path}, tensor {name!r}")
            if value.is_result and state.parent is None and value.is_new != is_required:
                tensor.name = self.names.fresh(name)
                state.names[name, bool(value.is_new)] = tensor.name
                self._cast(tensor.name, name, value, state, is_new=is_required)

    def _change_node(self, position: int, node: NodeProto, state: _Graph, required: bool | None) -> None:
        types = state.types.nodes[position]
        for place, is_new in types.inputs.items():
            value = state.types.find(node.input[place])
            assert value is not None, "only values with changeable types are listed"
            node.input[place] = self._name_of(node.input[place], value, state, is_new=is_new)
        originals = list(graphs_of(state.types.scope.container.node[position]))
        copies = [each for attribute in node.attribute for each in graphs_in(attribute)]
        for old, new in zip(originals, copies, strict=True):
            self.change(state.types.children[id(old)], new, state)
        results: list[tuple[str, str, TypedValue]] = []
        for place in types.outputs:
            name = node.output[place]
            value = state.types.values[name]
            if value.is_new:
                self._set_output_type(node, place, value, state)
            if value.is_result and required is not None and value.is_new != (required and value.can_change):
                node.output[place] = self.names.fresh(name)
                state.names[name, bool(value.is_new)] = node.output[place]
                results.append((node.output[place], name, value))
        state.writer.result.node.append(node)
        for source, name, value in results:
            self._cast(source, name, value, state, is_new=bool(required))

    def _name_of(self, name: str, value: TypedValue, state: _Graph, *, is_new: bool) -> str:
        """Return the name of a value in its old or new type, after a cast if it has none."""
        found = state.find(name, is_new)
        if found is not None:
            return found
        source = state.find(name, not is_new)
        wanted = value.new if is_new else value.old
        assert source is not None, "a value has one of its types"
        output = self.names.fresh(f"{name}_{wanted}")
        self._cast(source, output, value, state, is_new=is_new, name=name)
        return output

    def _cast(
        self, source: str, output: str, value: TypedValue, state: _Graph, *, is_new: bool, name: str = ""
    ) -> None:
        wanted = value.new if is_new else value.old
        if wanted not in BY_NAME:
            reason = f"{name or output!r} is {value.old}, and no operator casts it to {value.new}"
            remedy = "keep its element type, or convert to a newer opset first"
            raise CannotConvert(reason, "type.sequence", subject=value.old, remedy=remedy)
        if state.types.scope.opset_of("") > CAST_NAMES_TYPE_UNTIL:
            state.writer.emit("Cast", [source], output, to=BY_NAME[wanted].number)
        else:
            node = state.writer.result.node.add(op_type="Cast", input=[source], output=[output])
            node.attribute.add(name="to", type=STRING, s=wanted.upper().encode())
        state.names[name or output, is_new] = output
        self.casts += 1

    def _set_output_type(self, proto: NodeProto, position: int, value: TypedValue, state: _Graph) -> None:
        """Set the attribute that determines the type of an output."""
        node = Node.from_proto(proto)
        operator = state.types.scope.operator(proto.op_type, proto.domain)
        if operator is None:
            return
        if operator.name == "Constant" and operator.domain == DEFAULT_DOMAIN:
            self._change_constant(proto, node)
            return
        formal = parameter_at(operator.outputs, position)
        for attribute in proto.attribute:
            for each in types_in(attribute):
                self._set_type(each)
        if formal is None or formal.type_attribute is None:
            return
        name = formal.type_attribute
        is_stated = name in node.attributes
        if not (is_stated or has_stated_type(operator, node, formal)):
            return
        stated = next((each for each in proto.attribute if each.name == name), None)
        attribute = proto.attribute.add(name=name) if stated is None else stated
        if operator.attributes[name].type == "TENSOR":
            if not is_stated:
                attribute.type = TENSOR
                write_tensor(attribute.t, Tensor(value.old, (1,), (0,)))
            self._change_tensor(attribute.t, "")
        elif operator.attributes[name].type == "STRING":
            attribute.type, attribute.s = STRING, value.new.upper().encode()
        else:
            (element_type,) = element_names(value.new)
            attribute.type, attribute.i = INT, BY_NAME[element_type].number

    def _change_constant(self, proto: NodeProto, node: Node) -> None:
        for attribute in proto.attribute:
            if attribute.name == "value":
                self._change_tensor(attribute.t, "")
                return
            if attribute.name == "sparse_value":
                self._change_tensor(attribute.sparse_tensor.values, "")
                return
        constant = read_constant_node(node)
        if constant is not None:
            del proto.attribute[:]
            attribute = proto.attribute.add(name="value", type=TENSOR)
            write_tensor(attribute.t, constant)
            self._change_tensor(attribute.t, "")

    def _change_tensor(self, tensor: TensorProto, place: str) -> None:
        """Convert the elements of a tensor; with a place, an error becomes a reason there."""
        try:
            change_tensor(tensor, self.changes, clamps=self.clamps)
        except CannotConvert as error:
            if not place:
                raise
            self.reasons[place] = error

    def _set_type(self, value_type: TypeProto) -> None:
        widen_type(value_type, type_numbers(self.changes))


def change_tensor(tensor: TensorProto, changes: Mapping[str, str], *, clamps: bool) -> None:
    """Convert the elements of a tensor of a type to change.

    Raises:
        CannotConvert: an element is out of the range of the new type, or the elements are in another file, or
            do not match the dimensions.
    """
    kind = BY_NUMBER[tensor.data_type]
    change = ElementChange(kind.name, changes[kind.name], clamps)
    store = store_of(tensor)
    placeholder = store.convert(tensor.raw_data, change) if store else None
    if placeholder is None:
        placeholder = _converted(with_payload(tensor), change)
    for name in DATA_FIELDS:
        tensor.ClearField(name)
    tensor.raw_data, tensor.data_type = placeholder, BY_NAME[change.new].number


def _converted(tensor: TensorProto, change: ElementChange) -> bytes:
    data: bytes | tuple[bytes, ...] | None = tensor.raw_data
    if tensor.data_location == EXTERNAL:
        reason = f"tensor {tensor.name!r} has its elements in another file"
        raise CannotConvert(reason, "tensor.unreadable", remedy=EXTERNAL_REMEDY)
    if not tensor.HasField("raw_data"):
        values = read_tensor(tensor)
        data = None if values is None else pack_tensor(values)
    if not isinstance(data, bytes) or len(data) % change.sizes[0]:
        raise CannotConvert(f"tensor {tensor.name!r} has invalid data", "tensor.unreadable")
    return change.convert(data)


@dataclass
class _Graph:
    """Graph whose nodes are being written.

    Attributes:
        types: the chosen types.
        parent: the enclosing graph.
        writer: writer of the nodes.
        names: names of values, by original name and whether they have the new type.
    """

    types: GraphTypes
    parent: _Graph | None
    writer: NodeWriter
    names: dict[tuple[str, bool], str] = field(default_factory=dict)

    def find(self, name: str, is_new: bool) -> str | None:
        """Return the name of a value with the old or new type; `None` if it does not exist yet."""
        found = self.names.get((name, is_new))
        if found is not None or self.parent is None or self.types.scope.is_local(name):
            return found
        return self.parent.find(name, is_new)
