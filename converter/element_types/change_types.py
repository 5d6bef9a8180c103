"""Change a graph to the chosen element types: write casts, constants, attributes and declarations."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import copysign

from opshift.converter.element_types.choose_types import has_declared_type
from opshift.converter.element_types.graph_types import GraphTypes, TypedValue, is_standard
from opshift.converter.element_types.requested_types import EXACT_CHANGES, kept_operators
from opshift.converter.internal_types.float_formats import type_numbers, widen_type, widened_floats
from opshift.converter.internal_types.node_writer import NodeWriter
from opshift.inference.constants import read_constant_node
from opshift.inference.infer_types import parameter_at
from opshift.inference.scope import Scope
from opshift.model.attributes import ATTRIBUTE_TYPES, INT, STRING, TENSOR, graphs_in, types_in
from opshift.model.element_types import BY_NAME, BY_NUMBER, byte_size, element_bits, element_names
from opshift.model.errors import CannotConvert
from opshift.model.graphs import graphs_of, node_place
from opshift.model.indirect_reads import rename_shardings
from opshift.model.messages import GraphProto, NodeProto, TensorProto, TypeProto
from opshift.model.node import Node, Tensor
from opshift.model.offloaded_tensors import EXTERNAL, store_of, with_payload
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.shared_data import FrozenRecord
from opshift.model.tensors import DATA_FIELDS, element_count, pack_tensor, read_tensor, write_tensor
from opshift.rewriting.constant_nodes import CAST_NAMES_TYPE_UNTIL
from opshift.rewriting.workspace import FreshNames

EXTERNAL_REMEDY = "convert the file: opshift convert, or convert_file in Python"


CONSTANT_OPERATORS = ("Constant", "ConstantOfShape")
"""Operators that store the elements of their output in an attribute."""

PRECISION = "softmax_precision"
"""Attribute of FlexAttention with the element type of the inputs and outputs of its subgraphs."""

LIMITS = {"float16": 65504.0, "float": 3.4028234663852886e38}
"""Largest finite number of each floating-point type to which a conversion narrows."""

SMALLEST = {"float16": 2.0**-24, "float": 2.0**-149}
"""Smallest positive number of each type in `LIMITS`."""

SMALL_HEADS = bytes(byte for byte in range(256) if byte & 0x7F < 0x47)
"""Most significant bytes (last in memory) of numbers that certainly fit in the next narrower type.

They contain the sign and seven bits of the exponent. If these bits are below 0x47, a float or bfloat16
number is below 2 ** 15, and a double number is below 2 ** 113.
"""


@dataclass
class TypeChange:
    """Pass that changes the graphs of one model to the chosen types.

    Attributes:
        result_type: function of a value and `is_main` that returns the type of the value as an output of the
            main graph or of a subgraph.
        clamps: whether constants out of the range of the new type become the nearest number.
        names: generator of the names of new values.
        reasons: reasons against the conversion, by place in the model.
        casts: number of added Casts.
    """

    result_type: Callable[[TypedValue, bool], str]
    clamps: bool
    names: FreshNames
    reasons: dict[str, CannotConvert]
    casts: int = 0
    changed: int = 0
    """Number of values whose type changed, and of constants added in a new type."""

    def change(self, types: GraphTypes, graph: GraphProto, parent: _Graph | None = None) -> None:
        """Change the types in `graph`, a copy of the graph that `types` describes, and in its subgraphs."""
        state = _Graph(types, parent, NodeWriter(type(graph)(), self.names))
        self._change_inputs(state, graph)
        self.changed += sum(_stored_type(each) != each.old for each in types.values.values())
        is_main = parent is None
        for position, node in enumerate(graph.node):
            try:
                self._change_node(position, node, state, is_main=is_main)
            except CannotConvert as error:
                self.reasons[node_place(types.path, node)] = error
        for value in graph.output:
            found = types.find(value.name)
            if found is None:
                continue
            wanted = self.result_type(found, is_main)
            if not is_main:
                value.name = self._in_type(value.name, found, state, wanted)
            _set_type(value.type, found.old, wanted)
        for value in graph.value_info:
            own = types.values.get(value.name)
            for stored in (own.new, own.kept) if own else ():
                if own and state.names.get((value.name, stored)) == value.name:
                    _set_type(value.type, own.old, stored)
        del graph.node[:]
        graph.node.extend(state.writer.result.node)

    def _change_inputs(self, state: _Graph, graph: GraphProto) -> None:
        values = state.types.values
        tensors = [*graph.initializer, *(each.values for each in graph.sparse_initializer)]
        for name, own in values.items():
            state.names[name, _stored_type(own)] = name
        for declared in graph.input:
            if declared.name in values:
                own = values[declared.name]
                _set_type(declared.type, own.old, _stored_type(own))
        for tensor in tensors:
            value = values.get(tensor.name)
            if value is None:
                continue
            name, stored = tensor.name, _stored_type(value)
            self._change_tensor(tensor, stored, f"{state.types.path}, tensor {name!r}")
            wanted = self.result_type(value, True)
            if value.is_result and state.parent is None and stored != wanted:
                tensor.name = self.names.fresh(name)
                state.names[name, stored] = tensor.name
                self._add_cast(tensor.name, name, value, state, wanted)

    def _change_node(self, position: int, node: NodeProto, state: _Graph, *, is_main: bool) -> None:
        types = state.types.nodes[position]
        names = self._rename_inputs(position, node, state)
        originals = list(graphs_of(state.types.scope.container.node[position]))
        copies = [each for attribute in node.attribute for each in graphs_in(attribute)]
        for old, new in zip(originals, copies, strict=True):
            self.change(state.types.children[id(old)], new, state)
        operator = state.types.scope.operator(node.op_type, node.domain)
        if copies and operator is not None and PRECISION in operator.attributes:
            _set_precision(node, originals[0], copies[0])
        results: list[tuple[str, str, TypedValue]] = []
        view = Node.from_proto(node)
        for place in types.outputs:
            name = node.output[place]
            value = state.types.values[name]
            stored = _stored_type(value)
            if stored != value.old:
                self._set_output_type(node, view, place, value, stored, state)
                self._change_numbers(node, value, state)
            if value.is_result and is_main and stored != self.result_type(value, True):
                node.output[place] = self.names.fresh(name)
                names[name] = state.names[name, stored] = node.output[place]
                results.append((node.output[place], name, value))
        rename_shardings(node, names)
        state.writer.result.node.append(node)
        for source, name, value in results:
            self._add_cast(source, name, value, state, self.result_type(value, True))

    def _rename_inputs(self, position: int, node: NodeProto, state: _Graph) -> dict[str, str]:
        """Set the inputs of a node to values of the types it needs; return the new names by original name."""
        names: dict[str, str] = {}
        for place, wanted in state.types.nodes[position].inputs.items():
            name = node.input[place]
            value = state.types.find(name)
            assert value is not None, "only values with changeable types are listed"
            names[name] = node.input[place] = self._in_type(name, value, state, wanted or _stored_type(value))
        return names

    def _in_type(self, name: str, value: TypedValue, state: _Graph, wanted: str) -> str:
        """Return the name of a value in the wanted type; add a Cast or constant unless it exists already."""
        found = state.find(name, wanted)
        if found is not None:
            return found
        sources = (state.find(name, each) for each in (value.old, value.kept, value.new))
        source = next(filter(None, sources))
        output = self.names.fresh(f"{name}_{wanted}")
        self._add_cast(source, output, value, state, wanted, name)
        return output

    def _add_constant(self, name: str, output: str, value: TypedValue, state: _Graph, wanted: str) -> bool:
        """Add a copy of a constant in a narrower type; return False for other values and types.

        A Cast at run time would convert large numbers to infinity, and small ones to zero.
        """
        state = state.defining(name)
        scope, path = state.types.scope, state.types.path
        is_narrower = wanted in LIMITS and (value.old, wanted) not in EXACT_CHANGES
        if not (is_narrower and _is_constant(name, scope)):
            return False
        node = type(state.writer.result)().node.add(op_type="Constant", output=[output])
        place, record = f"{path}, tensor {name!r}", scope.producing_records.get(name)
        if record is not None:
            source = scope.proto_of(record)
            place, node.op_type = node_place(path, source), source.op_type
            node.input.extend(source.input)
            node.attribute.extend(source.attribute)
            self._rename_inputs(record[0], node, state)
        elif (tensor := scope.initializer(name)) is not None:
            node.attribute.add(name="value", type=TENSOR).t.CopyFrom(tensor)
        elif (sparse := scope.sparse_initializer(name)) is not None:
            kind = ATTRIBUTE_TYPES["SPARSE_TENSOR"].number
            node.attribute.add(name="sparse_value", type=kind).sparse_tensor.CopyFrom(sparse)
        try:
            self._set_output_type(node, Node.from_proto(node), 0, value, wanted, state)
        except CannotConvert as error:
            self.reasons[place] = error
        state.writer.result.node.append(node)
        state.names[name, wanted] = output
        self.changed += 1
        return True

    def _add_cast(
        self, source: str, output: str, value: TypedValue, state: _Graph, wanted: str, name: str = ""
    ) -> None:
        """Add a Cast; for a constant and a narrower type, add a second constant instead."""
        if self._add_constant(name or output, output, value, state, wanted):
            return
        if wanted not in BY_NAME:
            reason = f"{name or output!r} is {value.old}, and no operator casts it to {value.new}"
            remedy = "keep its element type, or convert to a newer opset first"
            raise CannotConvert(reason, "type.sequence", subject=value.old, remedy=remedy)
        if state.types.scope.opset_of("") > CAST_NAMES_TYPE_UNTIL:
            state.writer.emit("Cast", [source], output, to=BY_NAME[wanted].number)
        else:
            node = state.writer.result.node.add(op_type="Cast", input=[source], output=[output])
            node.attribute.add(name="to", type=STRING, s=wanted.upper().encode())
        state.names[name or output, wanted] = output
        self.casts += 1

    def _set_output_type(
        self, proto: NodeProto, node: Node, position: int, value: TypedValue, new: str, state: _Graph
    ) -> None:
        """Set the attributes that give an output the type `new`; `node` is a view of the unchanged node."""
        operator = state.types.scope.operator(proto.op_type, proto.domain)
        if operator is None:
            return
        if is_standard(operator, "Constant"):
            self._change_constant(proto, node, new)
            return
        formal = parameter_at(operator.outputs, position)
        for attribute in proto.attribute:
            for each in types_in(attribute):
                _set_type(each, value.old, new)
        if formal is None or formal.type_attribute is None:
            return
        name = formal.type_attribute
        stated = next((each for each in proto.attribute if each.name == name), None)
        is_stated = stated is not None
        if not (is_stated or has_declared_type(operator, node, formal)):
            return
        attribute = proto.attribute.add(name=name) if stated is None else stated
        if operator.attributes[name].type == "TENSOR":
            if not is_stated:
                attribute.type = TENSOR
                write_tensor(attribute.t, Tensor(value.old, (1,), (0,)))
            self._change_tensor(attribute.t, new, "")
        elif operator.attributes[name].type == "STRING":
            attribute.type, attribute.s = STRING, new.upper().encode()
        else:
            (element_type,) = element_names(new)
            attribute.type, attribute.i = INT, BY_NAME[element_type].number

    def _change_numbers(self, node: NodeProto, value: TypedValue, state: _Graph) -> None:
        """Round the FLOAT attributes that `kept_types.yaml` lists under `attributes` to the new type."""
        new = _stored_type(value)
        operator = state.types.scope.operator(node.op_type, node.domain)
        if operator is None or operator.domain != DEFAULT_DOMAIN or new not in LIMITS:
            return
        for attribute in node.attribute:
            definition = operator.attributes.get(attribute.name)
            is_number = f"{operator.name}.{attribute.name}" in kept_operators()["attributes"]
            # the defaults of Clip stay: the limits of float mean that there is no limit
            is_default = definition is not None and attribute.f == definition.default
            if is_number and attribute.HasField("f") and not is_default:
                try:
                    data = ElementChange("float", new, self.clamps).convert(struct.pack("<f", attribute.f))
                except CannotConvert:
                    label = f"attribute {attribute.name!r}"
                    raise out_of_range(attribute.f, value.old, new, label) from None
                (attribute.f,) = struct.unpack(f"<{BY_NAME[new].code}", data)

    def _change_constant(self, proto: NodeProto, node: Node, stored: str) -> None:
        for attribute in proto.attribute:
            if attribute.name == "value":
                self._change_tensor(attribute.t, stored, "")
                return
            if attribute.name == "sparse_value":
                self._change_tensor(attribute.sparse_tensor.values, stored, "")
                return
        constant = read_constant_node(node)
        if constant is not None:
            del proto.attribute[:]
            attribute = proto.attribute.add(name="value", type=TENSOR)
            write_tensor(attribute.t, constant)
            self._change_tensor(attribute.t, stored, "")

    def _change_tensor(self, tensor: TensorProto, stored: str, place: str) -> None:
        """Convert the elements of a tensor; add an error to `reasons`, or raise it if `place` is empty."""
        if tensor.data_type == BY_NAME[stored].number:
            return
        try:
            change_tensor(tensor, stored, clamps=self.clamps)
        except CannotConvert as error:
            if not place:
                raise
            self.reasons[place] = error


def _stored_type(value: TypedValue) -> str:
    assert value.stored is not None, "the types of all values are chosen"
    return value.stored


def _set_precision(node: NodeProto, original: GraphProto, changed: GraphProto) -> None:
    """Set the attribute `PRECISION` to the type of the subgraph's input if this type changed."""
    for old, new in zip(original.input[:1], changed.input[:1], strict=True):
        element_type = new.type.tensor_type.elem_type
        if element_type != old.type.tensor_type.elem_type:
            stated = next((each for each in node.attribute if each.name == PRECISION), None)
            attribute = node.attribute.add(name=PRECISION, type=INT) if stated is None else stated
            attribute.i = element_type


def _is_constant(name: str, scope: Scope) -> bool:
    """Return whether a node of `CONSTANT_OPERATORS` or a non-overridable initializer defines a value."""
    record = scope.producing_records.get(name)
    if record is not None:
        return record[2] in CONSTANT_OPERATORS and canonical_domain(record[1]) == DEFAULT_DOMAIN
    is_initializer = bool(scope.initializer(name) or scope.sparse_initializer(name))
    return is_initializer and not scope.is_overridable(name)


def _set_type(value_type: TypeProto, old: str, new: str) -> None:
    """Replace an element type in a TypeProto; `old` and `new` are type strings."""
    if old != new:
        widen_type(value_type, type_numbers(dict(zip(element_names(old), element_names(new), strict=True))))


def change_tensor(tensor: TensorProto, new: str, *, clamps: bool) -> None:
    """Convert the elements of a tensor to another type; see `TypeChange` for `clamps`.

    Raises:
        CannotConvert: an element is out of the range of the new type, the elements are in another file, or
            the elements or their type are invalid.
    """
    kind = BY_NUMBER.get(tensor.data_type)
    if kind is None:
        raise CannotConvert(f"tensor {tensor.name!r} has no valid element type", "tensor.unreadable")
    change = ElementChange(kind.name, new, clamps)
    store, count = store_of(tensor), element_count(tensor)
    size = None if count is None else byte_size(kind, count)
    placeholder = store.convert(tensor.raw_data, change, kind.field, size) if store else None
    if placeholder is None:
        placeholder = _converted_elements(with_payload(tensor), change, size)
    for name in DATA_FIELDS:
        tensor.ClearField(name)
    tensor.raw_data, tensor.data_type = placeholder, BY_NAME[change.new].number


def _converted_elements(tensor: TensorProto, change: ElementChange, size: int | None) -> bytes:
    data: bytes | tuple[bytes, ...] | None = tensor.raw_data
    if tensor.data_location == EXTERNAL:
        reason = f"tensor {tensor.name!r} has its elements in another file"
        raise CannotConvert(reason, "tensor.unreadable", remedy=EXTERNAL_REMEDY)
    if not tensor.HasField("raw_data"):
        values = read_tensor(tensor)
        data = None if values is None else pack_tensor(values)
    if not isinstance(data, bytes) or len(data) != size:
        raise CannotConvert(f"tensor {tensor.name!r} has invalid data", "tensor.unreadable")
    return change.convert(data)


@dataclass
class _Graph:
    """Graph whose nodes are being written.

    Attributes:
        types: the chosen types.
        parent: the enclosing graph.
        writer: writer of the nodes.
        names: names of values in the new graph, by original name and type.
    """

    types: GraphTypes
    parent: _Graph | None
    writer: NodeWriter
    names: dict[tuple[str, str], str] = field(default_factory=dict)

    def find(self, name: str, element_type: str) -> str | None:
        """Return the name of a value with a type; `None` if it does not exist yet."""
        found = self.names.get((name, element_type))
        if found is not None or self.parent is None or self.types.scope.is_local(name):
            return found
        return self.parent.find(name, element_type)

    def defining(self, name: str) -> _Graph:
        """Return the graph that defines a value: this one or an enclosing one."""
        if self.parent is None or self.types.scope.is_local(name):
            return self
        return self.parent.defining(name)


def out_of_range(value: float, old: str, new: str, label: str = "a constant") -> CannotConvert:
    """Return the error about a number out of the range of the new type; `label` says where the number is."""
    number, remedy = f"{value:.9g}", f"keep {old}, or allow clamp: the nearest number of {new} replaces it"
    if new not in LIMITS:  # `number` is an integer
        number, remedy = f"{value:,}", f"keep {old}, or replace the number in the model"
    reason = f"{label} has the value {number}, which {new} cannot represent"
    return CannotConvert(reason, "value.overflow", subject=new, remedy=remedy)


class ElementChange(FrozenRecord):
    """Conversion of `raw_data` to another element type, rounded half to even.

    Infinity and NaN stay. A nonzero number does not become zero, because it may be a divisor. A number out of
    the range of the new type becomes the nearest number if `clamps` is set and the type is in `LIMITS`, else
    it is an error.
    """

    old: str
    new: str
    clamps: bool = False

    @property
    def sizes(self) -> tuple[int, int]:
        """Bytes per element of the old and of the new type."""
        before, after = (element_bits(BY_NAME[each]) // 8 for each in (self.old, self.new))
        return before, after

    def new_size(self, size: int) -> int:
        """Return the number of bytes that `size` bytes have after the conversion."""
        before, after = self.sizes
        return size // before * after

    def convert(self, data: bytes) -> bytes:
        """Return the elements of `data` in the new type.

        Raises:
            CannotConvert: a number is out of the range of the new type.
        """
        if (self.old, self.new) == ("bfloat16", "float"):
            return widened_floats(data, len(data) // 2, "bfloat16", "float") or b""
        numbers = self._numbers(data)
        layout = f"<{len(numbers)}{BY_NAME[self.new].code}"
        try:
            converted = struct.pack(layout, *numbers)
        except (OverflowError, struct.error):
            converted = struct.pack(layout, *map(self._in_range, numbers))
        return self._without_new_zeros(numbers, converted) if self.new in SMALLEST else converted

    def require_range(self, data: bytes) -> None:
        """Raise CannotConvert if `convert` would raise it; most data are checked without a conversion."""
        if self.new not in LIMITS:
            if (self.old, self.new) not in EXACT_CHANGES:
                self.convert(data)
            return
        width = self.sizes[0]
        has_large_numbers = bool(data[width - 1 :: width].translate(None, SMALL_HEADS))
        if not self.clamps and (has_large_numbers or (self.old, self.new) == ("double", "float16")):
            self.convert(data)

    def _numbers(self, data: bytes) -> Sequence[float]:
        old = self.old
        if old == "bfloat16":
            data, old = widened_floats(data, len(data) // 2, "bfloat16", "float") or b"", "float"
        kind = BY_NAME[old]
        return struct.unpack(f"<{len(data) // (element_bits(kind) // 8)}{kind.code}", data)

    def _in_range(self, number: float) -> float:
        """Return a number; if it is out of range, clamp it, or raise CannotConvert unless `clamps` is set.

        Integers are not clamped.
        """
        try:
            struct.pack(f"<{BY_NAME[self.new].code}", number)
        # OverflowError: a float is too large; struct.error: an integer is too large
        except (OverflowError, struct.error):
            if not self.clamps or self.new not in LIMITS:
                raise out_of_range(number, self.old, self.new) from None
            return copysign(LIMITS[self.new], number)
        return number

    def _without_new_zeros(self, numbers: Sequence[float], converted: bytes) -> bytes:
        """Replace zeros that were nonzero numbers by the smallest nonzero magnitude with the same sign."""
        zero = bytes(self.sizes[1] - 1)
        # Most data contain no zero: skip the search.
        if zero + b"\0" not in converted and zero + b"\x80" not in converted:
            return converted
        code = BY_NAME[self.new].code
        found = struct.unpack(f"<{len(numbers)}{code}", converted)
        if found.count(0) == numbers.count(0):
            return converted
        smallest = SMALLEST[self.new]
        pairs = zip(numbers, found, strict=True)
        fixed = [copysign(smallest, old) if old and not new else new for old, new in pairs]
        return struct.pack(f"<{len(fixed)}{code}", *fixed)
