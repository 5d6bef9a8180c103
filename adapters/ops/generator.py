"""Bernoulli, Constant, ConstantOfShape and Range.

Bernoulli (introduced in opset 15) becomes a comparison with uniform random numbers. Versions of Constant
differ in element types, sparse values and number attributes. Range lists `start + i * delta` for every `i`
below `(limit - start) / delta`, rounded up.
"""

import math

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, adapter, expression
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.emit.expression import IEEE_FLOAT_TYPES, cast, cast_between
from opshift.adapters.emit.shapes import MAX_CONSTANT_ELEMENTS, index_range, reshape
from opshift.model.element_types import BY_NAME, BY_NUMBER
from opshift.model.tensors import read_sparse_tensor, require_tensor


@adapter("Bernoulli", 15, 14)
def replace_bernoulli_by_comparison(node: Node, out: Rewriter) -> None:
    """Replace Bernoulli by RandomUniformLike and Less: same distribution, different random values."""
    probability = node.inputs[0]
    number = BY_NAME[out.element_type(probability)].number
    seed = {name: value for name, value in node.attributes.items() if name == "seed"}
    uniform = out.emit("RandomUniformLike", [probability], dtype=number, low=0.0, high=1.0, **seed)
    is_one = out.emit("Less", [uniform, probability])
    out.emit("Cast", [is_one], node.outputs, to=node.attribute("dtype", number))


SCALAR_ATTRIBUTES = {"value_int": "int64", "value_float": "float", "value_string": "string"}
"""Scalar attributes to their element types; list attributes have the same names with an `s` appended."""


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
        raise CannotConvert(reason, "tensor.unreadable", remedy="make the value an initializer")
    out.replace(node, op_type="Identity", inputs=[out.tensor(known)], attributes={})


@expression("ConstantOfShape", 9)
def repeat_value_over_a_range(node: Node, out: Rewriter) -> None:
    """Rewrite as Gather over a Range if the result is 1-D, for runtimes that require a constant shape."""
    if out.known_dimension(node.inputs[0], 0) != 1:
        reason = "only lists are expressed without ConstantOfShape, and the rank of the result may not be 1"
        raise CannotConvert(reason, "operator.no-equivalent", remedy="give the node a constant shape")
    value = require_tensor(node.attribute("value", Tensor("float", (1,), (0.0,))))
    length = out.emit("Reshape", [node.inputs[0], out.int64([])])
    zero, element = out.int64(0), out.tensor(Tensor(value.element_type, (1,), value.values))
    numbers = out.emit("Range", [zero, length, out.int64(1)], opset=11)
    # all indices are 0; Where with two equal inputs would be simpler, but tract removes it
    indices = out.cast(out.emit("Less", [numbers, zero]), "int64")
    out.emit("Gather", [element, indices], node.outputs)


@adapter("ConstantOfShape", 9, 8)
def replace_constant_of_shape_by_expand(node: Node, out: Rewriter) -> None:
    """Replace ConstantOfShape by Expand of a single element, a scalar if the rank is unknown."""
    value = require_tensor(node.attribute("value", Tensor("float", (1,), (0.0,))))
    rank = out.require_rank(out.known_dimension(node.inputs[0], 0) or 0)
    single = out.tensor(Tensor(value.element_type, (1,) * rank, value.values[:1]))
    out.emit("Expand", [single, node.inputs[0]], node.outputs)


HALF_TYPES = ("float16", "bfloat16")

ALL_NUMERIC_TYPES_OPSET = 14
"""First opset in which Add, Sub and Mul support all numeric types."""


@adapter("Range", 27, 11)
def compute_in_stash_type(node: Node, out: Rewriter) -> None:
    """Compute float16 and bfloat16 in the type given by `stash_type`, and cast the result."""
    element_type = out.element_type(node.inputs[0])
    if element_type not in HALF_TYPES:
        out.replace(node, attributes={})
        return
    stash_type = BY_NUMBER[node.attribute("stash_type", 1)].name
    numbers = out.emit("Range", [cast(name, stash_type, out) for name in node.inputs])
    cast(numbers, element_type, out, node.outputs)


@adapter("Range", 11, 10)
def replace_range(node: Node, out: Rewriter) -> None:
    """Replace a small constant Range by a Constant, and any other by indices times `delta` plus `start`."""
    known = [out.constant_value(name) for name in node.inputs]
    numbers = _constant_range([each for each in known if each is not None])
    if numbers is not None:
        out.replace(node, op_type="Constant", inputs=[], attributes={"value": numbers})
        return
    start, limit, delta = node.inputs
    element_type = out.element_type(start)
    if "int" in element_type and [each and each.scalar for each in (known[0], known[2])] == [0, 1]:
        # The most frequent Range counts from 0 in steps of 1, and needs neither Mul nor Add.
        if out.is_nonnegative(limit):
            count = limit if element_type == "int64" else out.cast(limit, "int64")
        else:
            count = out.cast(out.emit("Relu", [out.cast(limit, "double")]), "int64")
        indices = index_range(reshape(count, (1,), out), out)
        if element_type == "int64":
            rename_output(indices, node, out)
        else:
            cast(indices, element_type, out, node.outputs)
        return
    positions = out.cast(index_range(_element_count(node, out), out), element_type)
    distances = out.emit("Mul", [positions, delta], opset=ALL_NUMERIC_TYPES_OPSET)
    out.emit("Add", [start, distances], node.outputs, opset=ALL_NUMERIC_TYPES_OPSET)


def _constant_range(inputs: list[Tensor]) -> Tensor | None:
    if len(inputs) < 3:
        return None
    start, limit, delta = (each.scalar for each in inputs)
    steps = (limit - start) / delta if delta else math.inf
    if not -math.inf < steps <= MAX_CONSTANT_ELEMENTS:
        return None
    count = max(math.ceil(steps), 0)
    return Tensor(inputs[0].element_type, (count,), tuple(start + index * delta for index in range(count)))


def _element_count(node: Node, out: Rewriter) -> str:
    """Emit the number of elements, an int64 tensor of shape (1,); a negative count becomes 0."""
    step = cast_between(node.inputs[2], out.element_type(node.inputs[2]), "double", out)
    steps = out.emit("Ceil", [out.emit("Div", [_distance(node, out), step])])
    return reshape(out.cast(out.emit("Relu", [steps]), "int64"), (1,), out)


def _distance(node: Node, out: Rewriter) -> str:
    """Emit `limit - start` as double, which does not overflow, and is exact for integers of up to 32 bits."""
    start, limit, _ = node.inputs
    element_type = out.element_type(start)
    if element_type != "int64":
        return _subtract_as_double(limit, start, element_type, out)
    # Double rounds numbers above 2**53, so subtract before the cast.
    exact = out.cast(out.emit("Sub", [limit, start]), "double")
    if not _may_overflow(start, limit, out):
        return exact
    rounded = _subtract_as_double(limit, start, element_type, out)
    is_near = out.emit("Less", [out.emit("Abs", [rounded]), out.constant(2.0**62, "double")])
    return out.emit("Where", [is_near, exact, rounded])


def _subtract_as_double(first: str, second: str, element_type: str, out: Rewriter) -> str:
    return out.emit("Sub", [cast_between(name, element_type, "double", out) for name in (first, second)])


def _may_overflow(start: str, limit: str, out: Rewriter) -> bool:
    """Return whether `limit - start` may exceed int64.

    The difference cannot overflow if `start` is 0, if `limit` is -1, or if neither input is negative.
    """
    first, last = (out.constant_value(name) for name in (start, limit))
    if (first and first.scalar == 0) or (last and last.scalar == -1):
        return False
    return not all(map(out.is_nonnegative, (start, limit)))
