"""Downgrade Constant: all element types since opset 9, `sparse_value` since 11, `value_int` etc. since 12."""

from __future__ import annotations

from opshift.adapters.core.adapter_table import adapter
from opshift.adapters.core.rewriter import Rewriter
from opshift.model.errors import CannotConvert
from opshift.model.node import Node, Tensor
from opshift.model.tensors import tensor_of

BARE = {"value_int": "int64", "value_float": "float", "value_string": "string"}
"""Scalar attributes to their element types; the names of the list attributes end in `s`."""

FLOATS = ("float16", "float", "double")


@adapter("Constant", 12, 11)
def bare_values_become_a_tensor(node: Node, out: Rewriter) -> None:
    """Turn a number or string attribute into a scalar tensor, and a list attribute into a 1-D tensor."""
    for name, element_type in BARE.items():
        if name in node.attributes:
            value = Tensor(element_type, (), (node.attribute(name),))
            out.become(node, attributes={"value": value})
            return
        if f"{name}s" in node.attributes:
            values = tuple(node.attribute(f"{name}s"))
            out.become(node, attributes={"value": Tensor(element_type, (len(values),), values)})
            return
    out.become(node)


@adapter("Constant", 11, 9)
def value_is_dense(node: Node, out: Rewriter) -> None:
    """Refuse `sparse_value`, which does not exist below version 11."""
    if "sparse_value" in node.attributes:
        raise CannotConvert("the constant is sparse", remedy="store the value as a dense tensor")
    out.become(node)


@adapter("Constant", 9, 1)
def other_types_are_initializers(node: Node, out: Rewriter) -> None:
    """Move a value that is not float16, float or double into an initializer, which supports every type."""
    value = node.attribute("value")
    known = value if isinstance(value, Tensor) else out.constant_value(node.outputs[0])
    if out.element_type(node.outputs[0]) in FLOATS:
        out.become(node)
        return
    if known is None:
        raise CannotConvert("the value of the constant cannot be read", remedy="make it an initializer")
    out.become(node, op_type="Identity", inputs=[out.tensor(known)], attributes={})


@adapter("ConstantOfShape", 9, 8)
def one_value_is_expanded(node: Node, out: Rewriter) -> None:
    """Replace ConstantOfShape by Expand of a scalar; a tensor of shape (1,) could not expand to rank 0."""
    value = tensor_of(node.attribute("value", Tensor("float", (1,), (0.0,))))
    out.emit("Expand", [out.constant(value.values[0], value.element_type), node.inputs[0]], node.outputs)
