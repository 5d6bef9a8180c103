"""Pass over a model that replaces narrow element types by wider ones with the same values."""

from collections.abc import Mapping
from copy import deepcopy
from math import prod

from opshift.converter.internal_types.float_formats import (
    FORMATS,
    all_numbers,
    type_numbers,
    widen_tensor,
    widen_type,
)
from opshift.converter.internal_types.narrow_results import (
    CASTS,
    COMPUTING_BRIDGES,
    Widening,
    emit_low_bits,
    emit_rounded,
)
from opshift.converter.internal_types.node_writer import NodeWriter
from opshift.inference.function_scope import CallScope
from opshift.inference.model_element_types import ElementTypes
from opshift.inference.root_scopes import root_scopes
from opshift.inference.scope import Scope
from opshift.model.attributes import graphs_in, tensors_in, types_in
from opshift.model.element_types import BY_NAME, BY_NUMBER, ELEMENT_BITS, NAME_BY_NUMBER, integer_range
from opshift.model.errors import UNKNOWN_SHAPE, CannotConvert, UnknownElementType
from opshift.model.graphs import (
    ContainerProto,
    is_graph,
    nested_containers,
    nested_nodes,
    node_place,
    root_graphs,
)
from opshift.model.messages import AttributeProto, ModelProto, NodeProto, TensorProto
from opshift.model.node import Node
from opshift.model.offloaded_tensors import EXTERNAL
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.tensors import PACKED_BITS
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry
from opshift.rewriting.validation import validate_node
from opshift.rewriting.workspace import FreshNames

MAX_INDICES = 1 << 20
"""Maximum size of a dimension that is quantized in blocks: a constant has one index per element."""


def types_in_model(model: ModelProto, registry: Registry) -> ElementTypes:
    """Return the element types that values of a model can have."""
    containers: list[ContainerProto] = [*root_graphs(model), *model.functions]
    operators = {(node.domain, node.op_type) for node in nested_nodes(*containers)}
    roots = [scope for scope, _, _ in root_scopes(model, model, registry)]
    graphs = ((root, each) for root in roots for each in nested_containers([root.container]))
    return ElementTypes([*roots, *(root.child(each) for root, each in graphs if is_graph(each))], operators)


def widen_types(
    model: ModelProto, registry: Registry, widening: Widening
) -> tuple[ModelProto | None, dict[str, CannotConvert]]:
    """Return a copy of a model without narrow types, or `None` and the reasons against it, by place."""
    names, copy, reasons = FreshNames(), deepcopy(model), dict[str, CannotConvert]()
    names.avoid(*root_graphs(model), *model.functions)
    for scope, container, path in root_scopes(model, copy, registry):
        _WideningPass(scope, container, path, names, reasons, widening).run()
    return None if reasons else copy, reasons


class _WideningPass:
    """Pass over the copy of a graph or function; `scope` belongs to the original."""

    def __init__(
        self,
        scope: CallScope,
        container: ContainerProto,
        path: str,
        names: FreshNames,
        reasons: dict[str, CannotConvert],
        widening: Widening,
    ) -> None:
        self._scope = scope
        self._container = container
        self._path = path
        self._reasons = reasons
        self._widening = widening
        self._numbers = type_numbers(widening.wider)
        self._writer = NodeWriter(type(container)(), names)

    def run(self) -> None:
        """Rewrite the graph or function and its subgraphs; add errors to the given `reasons`."""
        container = self._container
        values = [*getattr(container, "value_info", ())]
        if is_graph(container):
            values += [*container.input, *container.output]
            inputs = {each.name for each in container.input}
            for tensor in container.initializer:
                is_external = tensor.data_location == EXTERNAL and prod(tensor.dims) > 0
                if is_external and tensor.data_type in self._numbers and tensor.name not in inputs:
                    emit_unpacked(tensor, self._widening.wider, self._writer)
                self._widen_or_raise(tensor, self._path)
            for sparse in container.sparse_initializer:
                self._widen_or_raise(sparse.values, self._path)
        for value in values:
            widen_type(value.type, self._numbers)
        for proto, copy in zip(self._scope.container.node, container.node, strict=True):
            try:
                self._rewrite_node(proto, copy)
            except CannotConvert as error:
                self._reasons[node_place(self._path, proto)] = error
        del container.node[:]
        container.node.extend(self._writer.result.node)

    def _rewrite_node(self, proto: NodeProto, copy: NodeProto) -> None:
        operator = self._scope.operator(proto.op_type, proto.domain)
        types = [self._scope.element_type(name) for name in (*proto.input, *proto.output) if name]
        narrow = next((each for each in types if each in self._widening.wider), None)
        if narrow and self._scope.functions.find(proto) is None:
            self._widening.require_known_use(Node.from_proto(proto), operator, narrow)
        named = {output.type_attribute for output in operator.outputs} if operator else set()
        for attribute, new in zip(proto.attribute, copy.attribute, strict=True):
            self._widen_attribute(attribute, new, proto)
            if attribute.name in named and attribute.ref_attr_name:
                reason = f"the type {attribute.name!r} depends on the calls of the function"
                raise CannotConvert(reason, "function.reference", remedy="inline the function")
            if attribute.name in named and new.i in self._numbers:
                new.i = self._numbers[new.i]
        if operator is None or operator.domain != DEFAULT_DOMAIN:
            self._writer.result.node.append(copy)
        else:
            self._emit_restricted(Node.from_proto(proto), copy, operator)

    def _emit_restricted(self, node: Node, copy: NodeProto, operator: OperatorVersion) -> None:
        """Add the copy of a node, and nodes that restrict its results to the values of narrow types."""
        if needs_arithmetic(node, self._scope, self._widening):
            validate_node(node, operator)
            emit_quantization(node, self._scope, self._widening, self._writer)
            return
        self._writer.result.node.append(copy)
        copy = self._writer.result.node[-1]
        if node.op_type in (*CASTS, "QuantizeLinear"):
            validate_node(node, operator)
            result = self._result_type(node.output(0))
            if result not in self._widening.wider:
                return
            if node.op_type == "QuantizeLinear":
                self._widening.restrict_quantized(copy, result, self._writer)
            else:
                source = self._scope.element_type(node.inputs[0]) or "unknown"
                self._widening.restrict_cast(copy, source, result, self._writer)
        elif operator.bridge in COMPUTING_BRIDGES and self._widening.has_floats:
            for position, name in enumerate(node.outputs):
                result = self._result_type(name)
                if result in self._widening.wider:
                    self._widening.round_output(copy, position, result, self._writer)

    def _result_type(self, name: str) -> str:
        result = self._scope.element_type(name) if name else "none"
        if result is None:
            raise UnknownElementType(name)
        return result

    def _widen_attribute(self, attribute: AttributeProto, copy: AttributeProto, owner: NodeProto) -> None:
        for value_type in types_in(copy):
            widen_type(value_type, self._numbers)
        for tensor in tensors_in(copy):
            self._widen_or_raise(tensor, node_place(self._path, owner))
        for old, new in zip(graphs_in(attribute), graphs_in(copy), strict=True):
            scope = self._scope.child(old)
            scope.owner = owner
            path = f"{self._path} / {owner.name or owner.op_type}.{attribute.name}"
            _WideningPass(scope, new, path, self._writer.names, self._reasons, self._widening).run()

    def _widen_or_raise(self, tensor: TensorProto, place: str) -> None:
        if not widen_tensor(tensor, self._numbers):
            reason = f"tensor {tensor.name!r} has external or invalid data"
            remedy = "load the external data into the model, or correct the tensor"
            self._reasons[place] = CannotConvert(reason, "tensor.unreadable", remedy=remedy)


def emit_unpacked(tensor: TensorProto, wider: Mapping[str, str], writer: NodeWriter) -> None:
    """Change an external tensor to unsigned integers, and add nodes that decode its elements."""
    element_type, dims, name = BY_NUMBER[tensor.data_type].name, tuple(tensor.dims), tensor.name
    tensor.name = writer.names.fresh(f"{name}_packed")
    bits, wide = ELEMENT_BITS[element_type], wider[element_type]
    tensor.data_type = BY_NAME["uint16" if bits > 8 else "uint8"].number
    codes = writer.emit("Cast", [tensor.name], to=BY_NAME["int32"].number)
    if bits < 8:
        tensor.dims[:] = [-(-prod(dims) * bits // 8)]
        integers = element_type if element_type in PACKED_BITS else f"uint{bits}"
        codes = _emit_unpacked_integers(codes, integers, dims, writer)
    if element_type in PACKED_BITS:
        writer.emit("Cast", [codes], name, to=BY_NAME[wide].number)
    else:
        numbers = all_numbers(element_type)
        writer.emit("Gather", [writer.shared_constant(wide, numbers), codes], name)


def _emit_unpacked_integers(packed: str, element_type: str, dims: tuple[int, ...], writer: NodeWriter) -> str:
    """Emit nodes that unpack narrow integers from bytes in an int32 tensor."""
    column = writer.emit("Reshape", [packed, writer.constant("int64", (2,), -1, 1)])
    divisors = [1 << shift for shift in range(0, 8, PACKED_BITS[element_type])]
    rows = writer.emit("Div", [column, writer.constant("int32", (len(divisors),), *divisors)])
    flat = writer.emit("Reshape", [rows, writer.constant("int64", (1,), -1)])
    bounds = [writer.constant("int64", (1,), each) for each in (0, prod(dims))]
    integers = emit_low_bits(writer.emit("Slice", [flat, *bounds]), element_type, writer)
    return writer.emit("Reshape", [integers, writer.constant("int64", (len(dims),), *dims)])


def needs_arithmetic(node: Node, scope: Scope, widening: Widening) -> bool:
    """Return whether arithmetic replaces a node: no QuantizeLinear or DequantizeLinear has its new types.

    Narrow floats become float or float16, and narrow integers may become int32. The attribute `precision` may
    name a type that is replaced.
    """
    if node.op_type not in ("QuantizeLinear", "DequantizeLinear"):
        return False
    wider, names = widening.wider, (node.inputs[0], *node.outputs)
    if node.op_type == "QuantizeLinear":
        precision = _precision(node)
        if precision in FORMATS and precision in wider:
            return True
        names = node.outputs
    types = [each for name in names if (each := scope.element_type(name)) and each in wider]
    return any(each in FORMATS or wider[each] == "int32" for each in types)


def _precision(node: Node) -> str:
    """Return the type in which QuantizeLinear divides; float if the node names none."""
    return NAME_BY_NUMBER.get(node.attribute("precision", 0), "float")


def emit_quantization(node: Node, scope: Scope, widening: Widening, writer: NodeWriter) -> None:
    """Emit the arithmetic of QuantizeLinear or DequantizeLinear; scales and zero points are broadcast."""
    operands = [_to_float(each, writer) for each in node.inputs[:2]]
    if node.op_type == "QuantizeLinear":
        types = [scope.element_type(each) for each in node.inputs[:2]]
        operands = [
            _rounded(operand, element_type, _precision(node), widening, writer)
            for operand, element_type in zip(operands, types, strict=True)
        ]
    value, scale = operands[0], _broadcast_to_data(node, operands[1], scope, writer)
    zero = ""
    if node.input(2):
        zero = _broadcast_to_data(node, _to_float(node.inputs[2], writer), scope, writer)
    output = node.outputs[0]
    result = scope.element_type(output) or "float"
    bounds = integer_range(result)
    if node.op_type == "QuantizeLinear":
        value = writer.emit("Div", [value, scale])
        value = _rounded(value, None, _precision(node), widening, writer)
        value = writer.emit("Round", [value]) if bounds else value
        value = writer.emit("Add", [value, zero]) if zero else value
    else:
        value = writer.emit("Sub", [value, zero]) if zero else value
        value = writer.emit("Mul", [value, scale])
    if bounds:
        limits = [writer.constant("float", (), each) for each in (bounds[0], bounds[-1])]
        value = writer.emit("Clip", [value, *limits])
    if result in widening.wider and result in FORMATS:
        saturates = bool(node.attribute("saturate", 1)) and node.op_type == "QuantizeLinear"
        emit_rounded(value, result, widening.wider[result], output, writer, saturates=saturates)
    else:
        writer.emit("Cast", [value], output, to=BY_NAME[widening.wider.get(result, result)].number)


def _rounded(
    value: str, element_type: str | None, precision: str, widening: Widening, writer: NodeWriter
) -> str:
    """Return a float value rounded to `precision`, unless it was converted from this type."""
    if precision not in ("float16", "bfloat16") or element_type == precision:
        return value
    if precision in widening.wider:
        output = writer.names.fresh(value)
        emit_rounded(value, precision, "float", output, writer, saturates=False)
        return output
    return _to_float(writer.emit("Cast", [value], to=BY_NAME[precision].number), writer)


def _to_float(name: str, writer: NodeWriter) -> str:
    return writer.emit("Cast", [name], to=BY_NAME["float"].number)


def _broadcast_to_data(node: Node, value: str, scope: Scope, writer: NodeWriter) -> str:
    """Return scales or zero points in a shape that broadcasts with the data."""
    data = node.inputs[0]
    rank, own_rank = scope.rank(data), scope.rank(node.inputs[1])
    if own_rank == 0:
        return value
    if rank is None or own_rank is None:
        reason = f"the rank of {data!r} or {node.inputs[1]!r} is unknown"
        raise CannotConvert(reason, UNKNOWN_SHAPE, remedy="declare their shapes")
    axis, block_size = node.attribute("axis", 1) % (rank or 1), node.attribute("block_size", 0)
    if not block_size:
        dims = (-1, *[1] * (rank - 1 - axis)) if rank else ()
        return writer.emit("Reshape", [value, writer.constant("int64", (len(dims),), *dims)])
    shape = scope.shape(data)
    size = shape[axis] if shape else None
    if size is None:
        reason = f"dimension {axis} of {data!r} is unknown"
        raise CannotConvert(reason, UNKNOWN_SHAPE, remedy=f"declare the shape of {data!r}")
    if size > MAX_INDICES:
        reason = f"dimension {axis} of {data!r} is {size:,}, more than {MAX_INDICES:,}"
        raise CannotConvert(reason, "limit.exceeded")
    indices = writer.constant("int64", (size,), *(each // block_size for each in range(size)))
    return writer.emit("Gather", [value, indices], axis=axis)
