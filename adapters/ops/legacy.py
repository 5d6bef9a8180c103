"""Experimental operators that opsets 9 and 10 removed, rewritten with the remaining operators.

ConstantFill and GivenTensorFill take their shape from an attribute, the shape of the input, or the values of
the input. Nodes with an attribute and an input as sources, or with no source, are refused as undefined.
"""

from typing import Any

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, adapter
from opshift.adapters.emit.expression import IEEE_FLOAT_TYPES
from opshift.adapters.emit.shapes import INT64_MAX
from opshift.model.tensors import count_elements

INTEGER_TYPES = {6: ("int32", -(2**31), 2**31 - 1), 7: ("int64", -(2**63), 2**63 - 1), 9: ("bool", 0, 1)}
"""Values of `dtype` other than float: the element type, its smallest and its largest number."""


@adapter("Affine", 1, 10)
def expand_affine(node: Node, out: Rewriter) -> None:
    """Rewrite as `alpha * X + beta`."""
    element_type = out.element_type(node.inputs[0])
    product = out.emit("Mul", [node.inputs[0], out.constant(node.attribute("alpha", 1.0), element_type)])
    out.emit("Add", [product, out.constant(node.attribute("beta", 0.0), element_type)], node.outputs)


@adapter("Scale", 1, 10)
def expand_scale(node: Node, out: Rewriter) -> None:
    """Rewrite as `scale * input`."""
    factor = out.constant(node.attribute("scale", 1.0), out.element_type(node.inputs[0]))
    out.emit("Mul", [node.inputs[0], factor], node.outputs)


@adapter("ImageScaler", 1, 10)
def expand_image_scaler(node: Node, out: Rewriter) -> None:
    """Rewrite as `scale * input + bias`, with an element of `bias` for each channel."""
    image = node.inputs[0]
    bias = _require_attribute(node, "bias")
    shape = out.shape(image)
    require_four_dimensions(image, out)
    if shape and shape[1] not in (None, len(bias)):
        raise CannotConvert(f"bias has {len(bias)} elements for {shape[1]} channels", "node.invalid")
    element_type = out.element_type(image)
    product = out.emit("Mul", [image, out.constant(node.attribute("scale", 1.0), element_type)])
    offset = out.tensor(Tensor(element_type, (1, len(bias), 1, 1), tuple(bias)))
    out.emit("Add", [product, offset], node.outputs)


def _require_attribute(node: Node, name: str) -> Any:
    """Return the value of an attribute that has no default; refuse a node without the attribute."""
    found = node.attribute(name)
    if found is None:
        reason = f"{name} is missing, and its definition has no default"
        raise CannotConvert(reason, "node.invalid", remedy=f"set {name}")
    return found


def require_four_dimensions(image: str, out: Rewriter) -> None:
    """Refuse a value with a known rank other than 4 (N x C x H x W)."""
    rank = out.known_rank(image)
    if rank not in (None, 4):
        reason = f"{image!r} has {rank} dimensions; the operator requires N x C x H x W"
        raise CannotConvert(reason, "node.invalid")


@adapter(("ParametricSoftplus", "ScaledTanh"), 1, 10)
def expand_scaled_activation(node: Node, out: Rewriter) -> None:
    """Rewrite as `alpha * f(beta * x)`, where `f` is Softplus or Tanh."""
    alpha, beta = _require_attribute(node, "alpha"), _require_attribute(node, "beta")
    element_type = out.element_type(node.inputs[0])
    inner = out.emit("Mul", [node.inputs[0], out.constant(beta, element_type)])
    curve = out.emit("Softplus" if node.op_type == "ParametricSoftplus" else "Tanh", [inner])
    out.emit("Mul", [curve, out.constant(alpha, element_type)], node.outputs)


@adapter("Crop", 1, 10)
def convert_crop_to_slice(node: Node, out: Rewriter) -> None:
    """Rewrite as Slice of height and width.

    `border` is left, top, right, bottom; `scale` is height, width.
    """
    size = _read_sizes(node, "scale", 2)
    border = _read_sizes(node, "border", 4) or (size and (0, 0, 0, 0))
    if not border:
        reason = "border and scale are both missing"
        raise CannotConvert(reason, "node.invalid", remedy="set border to left, top, right, bottom")
    require_four_dimensions(node.inputs[0], out)
    left, top, right, bottom = border
    ends = (top + size[0], left + size[1]) if size else (-bottom or INT64_MAX, -right or INT64_MAX)
    bounds = [out.int64(each) for each in ((top, left), ends, (2, 3))]
    out.replace(node, op_type="Slice", inputs=[node.inputs[0], *bounds], attributes={})


def _read_sizes(node: Node, name: str, count: int) -> tuple[int, ...]:
    """Return an attribute of `count` sizes of at least 0, or an empty tuple if absent; refuse others."""
    found = tuple(node.attribute(name, ()))
    if found and (len(found) != count or min(found) < 0):
        reason = f"{name} is {list(found)}, expected {count} numbers of at least 0"
        raise CannotConvert(reason, "node.invalid")
    return found


@adapter("ConstantFill", 1, 9)
def convert_constant_fill(node: Node, out: Rewriter) -> None:
    """Rewrite as ConstantOfShape, with the shape as an input."""
    _require_one_shape(node)
    value = _fill_value(node)
    attribute = node.attribute("shape")
    shape = _shape_from_input(node, out) if node.input(0) else out.int64(attribute)
    out.replace(node, op_type="ConstantOfShape", inputs=[shape], attributes={"value": value})


def _require_one_shape(node: Node) -> None:
    """Refuse a shape from two sources or from none, input options without an input, and negative sizes."""
    shape, extra = node.attribute("shape"), node.attribute("extra_shape", ())
    if node.input(0) and shape:
        reason = "both the input and the attribute shape define the shape"
        raise CannotConvert(reason, "node.invalid", remedy="remove one")
    if not node.input(0) and shape is None:
        reason = "neither an input nor the attribute shape defines the shape"
        raise CannotConvert(reason, "node.invalid", remedy="set shape")
    if not node.input(0) and (extra or node.attribute("input_as_shape", 0)):
        reason = "extra_shape and input_as_shape require an input, but the node has none"
        remedy = "set the attribute shape to the whole shape, and remove them"
        raise CannotConvert(reason, "node.invalid", remedy=remedy)
    if any(size < 0 for size in (*(shape or ()), *extra)):
        raise CannotConvert("shape or extra_shape has a negative size", "node.invalid")


def _fill_value(node: Node) -> Tensor:
    """Return `value` as a tensor of the type `dtype`; refuse a value that the type does not represent."""
    value, dtype = node.attribute("value", 0.0), node.attribute("dtype", 1)
    if dtype == 1:
        return Tensor("float", (1,), (value,))
    element_type, smallest, largest = INTEGER_TYPES[dtype]
    if not (float(value).is_integer() and smallest <= value <= largest):
        reason = f"value is {value}, and its conversion to {element_type} is not defined"
        remedy = f"set value to a number that {element_type} represents"
        raise CannotConvert(reason, "result.undefined", remedy=remedy)
    return Tensor(element_type, (1,), (int(value),))


def _shape_from_input(node: Node, out: Rewriter) -> str:
    """Return the shape of the input, or with `input_as_shape` the values, followed by `extra_shape`."""
    if node.attribute("input_as_shape", 0):
        shape = out.cast(node.inputs[0], "int64")
    else:
        shape = out.emit("Shape", node.inputs[:1])
    extra = tuple(node.attribute("extra_shape", ()))
    return out.emit("Concat", [shape, out.int64(extra)], axis=0) if extra else shape


@adapter("GivenTensorFill", 1, 10)
def convert_given_tensor_fill(node: Node, out: Rewriter) -> None:
    """Rewrite as Constant if the shape is an attribute, otherwise as Reshape of the numbers."""
    _require_one_shape(node)
    values = tuple(node.attribute("values", ()))
    element_type = _element_type(node, out)
    if not node.input(0):
        dims = tuple(node.attribute("shape"))
        count = count_elements(dims)
        if count != len(values):
            reason = f"values has {len(values)} numbers, shape {list(dims)} requires {count}"
            raise CannotConvert(reason, "node.invalid")
        value = Tensor(element_type, dims, values)
        out.replace(node, op_type="Constant", inputs=[], attributes={"value": value})
        return
    if not values:
        reason = "values is missing, and Reshape would copy a dimension of size 0"
        remedy = "set the attribute shape to the empty shape, and remove the input"
        raise CannotConvert(reason, "node.invalid", remedy=remedy)
    flat = out.constant(values, element_type)
    out.replace(node, op_type="Reshape", inputs=[flat, _shape_from_input(node, out)], attributes={})


def _element_type(node: Node, out: Rewriter) -> str:
    """Return the inferred output type if it is float16, float or double, else float, as in Caffe2."""
    output = node.outputs[0]
    known = out.element_type(output) if node.input(0) else out.known_element_type(output)
    return known if known in IEEE_FLOAT_TYPES else "float"
