"""Constant and ConstantOfShape: element types, sparse values and numbers in attributes."""

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, adapter, expression
from opshift.adapters.emit.cast import IEEE_FLOAT_TYPES
from opshift.adapters.emit.shapes import MAX_CONSTANT_ELEMENTS
from opshift.model.tensors import read_sparse_tensor, require_tensor

SCALAR_ATTRIBUTES = {"value_int": "int64", "value_float": "float", "value_string": "string"}
"""Scalar attributes to their element types; the names of the list attributes end in `s`."""


@adapter("Constant", 12, 11)
def move_scalar_to_tensor(node: Node, out: Rewriter) -> None:
    """Turn a number or string attribute into a scalar tensor, and a list attribute into a 1-D tensor."""
    for name, element_type in SCALAR_ATTRIBUTES.items():
        scalar, values = node.attribute(name), node.attribute(f"{name}s")
        if scalar is not None:
            out.replace(node, attributes={"value": Tensor(element_type, (), (scalar,))})
            return
        if values is not None:
            out.replace(node, attributes={"value": Tensor(element_type, (len(values),), tuple(values))})
            return
    out.replace(node)


@adapter("Constant", 11, 9)
def densify_sparse_value(node: Node, out: Rewriter) -> None:
    """Replace a sparse value by a dense one."""
    sparse = node.attribute("sparse_value")
    if sparse is None:
        out.replace(node)
        return
    dense = read_sparse_tensor(sparse, MAX_CONSTANT_ELEMENTS)
    if dense is None:
        reason = f"the sparse value is invalid, external, or has more than {MAX_CONSTANT_ELEMENTS} elements"
        raise CannotConvert(reason, "tensor.unreadable", remedy="store the value as a dense tensor")
    out.replace(node, attributes={"value": dense})


@adapter("Constant", 9, 1)
def move_value_to_initializer(node: Node, out: Rewriter) -> None:
    """Move a value that is not float16, float or double into an initializer, which supports every type."""
    if out.element_type(node.outputs[0]) in IEEE_FLOAT_TYPES:
        out.replace(node)
        return
    value = node.attribute("value")
    known = value if isinstance(value, Tensor) else out.constant_value(node.outputs[0])
    if known is None:
        reason = "the value of the constant cannot be read"
        raise CannotConvert(reason, "tensor.unreadable", remedy="make it an initializer")
    out.replace(node, op_type="Identity", inputs=[out.tensor(known)], attributes={})


@expression("ConstantOfShape", 9)
def select_value_in_a_range(node: Node, out: Rewriter) -> None:
    """Emit a list of a computed length as a Where over a Range, for runtimes that need a constant shape."""
    if out.known_dimension(node.inputs[0], 0) != 1:
        reason = "only lists are expressed without ConstantOfShape, and the rank of the result may not be 1"
        raise CannotConvert(reason, "operator.no-equivalent", remedy="give the node a constant shape")
    value = require_tensor(node.attribute("value", Tensor("float", (1,), (0.0,))))
    length = out.emit("Reshape", [node.inputs[0], out.int64([])])
    zero, element = out.int64(0), out.tensor(Tensor(value.element_type, (), value.values))
    numbers = out.emit("Range", [zero, length, out.int64(1)], opset=11)
    out.emit("Where", [out.emit("Less", [numbers, zero]), element, element], node.outputs)


@adapter("ConstantOfShape", 9, 8)
def replace_constant_of_shape_by_expand(node: Node, out: Rewriter) -> None:
    """Replace ConstantOfShape by Expand of a single element, a scalar if the rank is unknown."""
    value = require_tensor(node.attribute("value", Tensor("float", (1,), (0.0,))))
    rank = out.require_rank(out.known_dimension(node.inputs[0], 0) or 0)
    single = out.tensor(Tensor(value.element_type, (1,) * rank, value.values[:1]))
    out.emit("Expand", [single, node.inputs[0]], node.outputs)
