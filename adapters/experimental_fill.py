"""ConstantFill and GivenTensorFill: tensors of numbers that the node lists; gone at 9 and at 10.

The shape comes from one of three places: the attribute `shape`, the shape of the input, or the values
of the input. What else a node may combine was never given a meaning.
"""

from __future__ import annotations

import math

from opshift.adapters.node import Node, Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME

WHOLE = {6: ("int32", -(2**31), 2**31 - 1), 7: ("int64", -(2**63), 2**63 - 1), 9: ("bool", 0, 1)}
"""What `dtype` may name besides float: the element type, and the least and the greatest number it holds."""
FLOATS = ("float16", "float", "double")


@adapter("ConstantFill", 1, 9)
def fill_is_constant_of_shape(node: Node, out: Rewriter) -> None:
    """ConstantOfShape takes its shape as an input, and a tensor of one element to fill it with."""
    _require_one_shape(node)
    value = _filling(node)
    stated = node.attribute("shape")
    shape = _shape_from_input(node, out) if node.input(0) else out.constant(stated, "int64")
    out.become(node, op_type="ConstantOfShape", inputs=[shape], attributes={"value": value})


@adapter("GivenTensorFill", 1, 10)
def fill_is_constant(node: Node, out: Rewriter) -> None:
    """Constant holds the numbers in a stated shape; for one from an input, Reshape brings them to it."""
    _require_one_shape(node)
    values = tuple(node.attribute("values", ()))
    element_type = _element_type(node, out)
    if not node.input(0):
        dims = tuple(node.attribute("shape"))
        if math.prod(dims) != len(values):
            raise CannotConvert(f"values has {len(values)} numbers, and shape {list(dims)} another count")
        value = Tensor(element_type, dims, values)
        out.become(node, op_type="Constant", inputs=[], attributes={"value": value})
        return
    if not values:
        raise CannotConvert(
            "values is left out, and Reshape reads a dimension of 0 differently",
            remedy="state the empty shape as the attribute shape, and take the input off",
        )
    listed = out.constant(values, element_type)
    out.become(node, op_type="Reshape", inputs=[listed, _shape_from_input(node, out)], attributes={})


def _require_one_shape(node: Node) -> None:
    """Refuse a shape from two places, from none, or with settings that belong to another."""
    shape, extra = node.attribute("shape"), node.attribute("extra_shape", ())
    if node.input(0) and shape:
        raise CannotConvert("both the input and the attribute shape give the shape", remedy="take one off")
    if not node.input(0) and shape is None:
        raise CannotConvert("neither an input nor the attribute shape gives the shape", remedy="state shape")
    if not node.input(0) and (extra or node.attribute("input_as_shape", 0)):
        raise CannotConvert(
            "extra_shape and input_as_shape belong to an input, which the node does not have",
            remedy="write the whole shape to the attribute shape, and take them off",
        )
    if any(extent < 0 for extent in (*(shape or ()), *extra)):
        raise CannotConvert("shape or extra_shape holds a number below 0, which is no size")


def _shape_from_input(node: Node, out: Rewriter) -> str:
    """The input's shape, or what it lists, followed by `extra_shape`."""
    if node.attribute("input_as_shape", 0):
        shape = out.emit("Cast", node.inputs[:1], to=BY_NAME["int64"].number)
    else:
        shape = out.emit("Shape", node.inputs[:1])
    extra = tuple(node.attribute("extra_shape", ()))
    return out.emit("Concat", [shape, out.constant(extra, "int64")], axis=0) if extra else shape


def _filling(node: Node) -> Tensor:
    """`value` in the type that `dtype` names, as long as it is the same number there."""
    value, number = node.attribute("value", 0.0), node.attribute("dtype", 1)
    if number == 1:
        return Tensor("float", (1,), (value,))
    if number not in WHOLE:
        raise CannotConvert(
            f"dtype is {number}, which ConstantFill does not make",
            remedy="state 1 (float), 6 (int32), 7 (int64) or 9 (bool)",
        )
    element_type, least, greatest = WHOLE[number]
    if not (float(value).is_integer() and least <= value <= greatest):
        raise CannotConvert(
            f"value is {value}, and how that becomes {element_type} was never laid down",
            remedy=f"state the number that is meant, one that {element_type} holds",
        )
    return Tensor(element_type, (1,), (int(value),))


def _element_type(node: Node, out: Rewriter) -> str:
    """The type of the output, which is that of a floating-point input; else float, as in Caffe2."""
    output = node.outputs[0]
    known = out.element_type(output) if node.input(0) else out.known_element_type(output)
    return known if known in FLOATS else "float"
