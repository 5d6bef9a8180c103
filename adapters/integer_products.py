"""Products of 8-bit integers came with 10; before, float holds them where every sum is small enough."""

from __future__ import annotations

from collections.abc import Callable

from opshift.adapters.casts import cast
from opshift.adapters.finishing import finish
from opshift.adapters.node import Node
from opshift.adapters.quantized import CLIP, PLAIN, RANGES, ROUND
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME

EXACT = 2**24
"""Up to here float holds every whole number."""
MOST = 255
"""The greatest difference of an 8-bit integer and its zero point."""
DIGIT = 16
"""Where sums grow longer, the second factor is taken apart into digits to this base."""
Product = Callable[[str, str], str]


@adapter("MatMulInteger", 10, 9)
def whole_numbers_are_multiplied_in_float(node: Node, out: Rewriter) -> None:
    """MatMul of the differences from the zero points."""
    first = _difference(node.inputs[0], _row(node.input(2), out), out)
    second = _difference(node.inputs[1], node.input(3), out)
    total = _exact(first, second, _terms_of_matrix(node.inputs[0], node.inputs[1], out), _matmul(out), out)
    finish(total, node, out)


@adapter("ConvInteger", 10, 9)
def whole_numbers_are_convolved_in_float(node: Node, out: Rewriter) -> None:
    """Conv of the differences from the zero points."""
    data, weight = node.inputs[:2]
    first = _difference(data, node.input(2), out)
    second = _difference(weight, _channels(node.input(3), weight, out), out)
    finish(_exact(first, second, _terms_of_kernel(weight, out), _conv(node, out), out), node, out)


@adapter("QLinearMatMul", 10, 9)
def matrices_are_requantized(node: Node, out: Rewriter) -> None:
    """The product in whole numbers, scaled and rounded."""
    first, first_scale, first_zero, second, second_scale, second_zero, scale, zero = node.inputs
    one = _difference(first, _row(first_zero, out), out)
    other = _difference(second, second_zero, out)
    total = _exact(one, other, _terms_of_matrix(first, second, out), _matmul(out), out)
    factor = out.emit("Mul", [_row(first_scale, out), second_scale], opset=PLAIN)
    _requantize(total, out.emit("Div", [factor, scale], opset=PLAIN), zero, node, out)


@adapter("QLinearConv", 10, 9)
def convolution_is_requantized(node: Node, out: Rewriter) -> None:
    """The convolution in whole numbers, scaled and rounded."""
    data, data_scale, data_zero, weight, weight_scale, weight_zero, scale, zero = node.inputs[:8]
    first = _difference(data, data_zero, out)
    second = _difference(weight, _channels(weight_zero, weight, out), out)
    total = _exact(first, second, _terms_of_kernel(weight, out), _conv(node, out), out)
    trailing = [1] * (out.rank(weight) - 2)
    shape = out.constant([-1, *trailing], "int64")
    if node.input(8):
        bias = out.emit("Reshape", [node.inputs[8], shape], opset=PLAIN)
        total = out.emit("Add", [total, bias], opset=PLAIN)
    factor = out.emit("Mul", [data_scale, weight_scale], opset=PLAIN)
    factor = out.emit("Div", [factor, scale], opset=PLAIN)
    if out.shape(weight_scale) not in ((), (1,)):
        factor = out.emit("Reshape", [factor, shape], opset=PLAIN)
    _requantize(total, factor, zero, node, out)


@adapter("QLinearMatMul", 21, 10)
def scales_are_float(node: Node, out: Rewriter) -> None:
    """Scales of other types are cast; 8-bit floats have no older form."""
    for place in (0, 3):
        element_type = out.element_type(node.inputs[place])
        if element_type not in RANGES:
            raise CannotConvert(
                f"{node.inputs[place]!r} is tensor({element_type}), which QLinearMatMul-10 does not take"
            )
    inputs = list(node.inputs)
    for place in (1, 4, 6):
        if out.element_type(inputs[place]) != "float":
            inputs[place] = _float(inputs[place], out)
    out.become(node, inputs=inputs)


def _requantize(total: str, factor: str, zero: str, node: Node, out: Rewriter) -> None:
    """Scale, round half to even, add the zero point, saturate."""
    result = out.element_type(zero)
    scaled = out.emit("Mul", [_float(total, out), factor], opset=PLAIN)
    rounded = out.emit("Round", [scaled], opset=ROUND)
    moved = out.emit("Add", [rounded, _float(zero, out)], opset=PLAIN)
    low, high = RANGES[result]
    bounded = out.emit("Clip", [moved], opset=CLIP, min=float(low), max=float(high))
    out.emit("Cast", [bounded], node.outputs, opset=CLIP, to=BY_NAME[result].number)


def _exact(first: str, second: str, terms: int, product: Product, out: Rewriter) -> str:
    """The product of two values in float as int32, in so many parts that no sum is rounded."""
    whole = BY_NAME["int32"].number
    if terms * MOST * MOST <= EXACT:
        return out.emit("Cast", [product(first, second)], opset=CLIP, to=whole)
    if terms * MOST * DIGIT > EXACT:
        raise CannotConvert(f"it adds {terms} products, whose sum float may not hold exactly")
    base = out.constant(float(DIGIT), "float")
    high = out.emit("Floor", [out.emit("Div", [second, base], opset=PLAIN)], opset=CLIP)
    low = out.emit("Sub", [second, out.emit("Mul", [high, base], opset=PLAIN)], opset=PLAIN)
    upper, lower = (out.emit("Cast", [product(first, part)], opset=CLIP, to=whole) for part in (high, low))
    raised = out.emit("Mul", [upper, out.constant(DIGIT, "int32")], opset=PLAIN)
    return out.emit("Add", [raised, lower], opset=PLAIN)


def _matmul(out: Rewriter) -> Product:
    return lambda first, second: out.emit("MatMul", [first, second], opset=1)


def _conv(node: Node, out: Rewriter) -> Product:
    return lambda first, second: out.emit("Conv", [first, second], opset=1, **node.attributes)


def _difference(name: str, zero: str, out: Rewriter) -> str:
    found = _float(name, out)
    return out.emit("Sub", [found, _float(zero, out)], opset=PLAIN) if zero else found


def _float(name: str, out: Rewriter) -> str:
    return cast(name, "float", out)


def _row(name: str, out: Rewriter) -> str:
    """Values of the first factor's rows as a column."""
    if not name or out.shape(name) in ((), (1,)):
        return name
    out.rank(name)
    return out.emit("Unsqueeze", [name], opset=CLIP, axes=[out.rank(name)]) if out.rank(name) == 1 else name


def _channels(name: str, weight: str, out: Rewriter) -> str:
    """Values of a kernel's output channels as they broadcast with it."""
    if not name or out.shape(name) in ((), (1,)):
        return name
    shape = out.constant([-1, *[1] * (out.rank(weight) - 1)], "int64")
    return out.emit("Reshape", [name, shape], opset=PLAIN)


def _terms_of_matrix(first: str, second: str, out: Rewriter) -> int:
    """How many products are added for each element."""
    one, other = out.shape(first), out.shape(second)
    found = one[-1] if one else None
    if found is None and other:
        found = other[-2] if len(other) > 1 else other[0]
    return _known(found, first)


def _terms_of_kernel(weight: str, out: Rewriter) -> int:
    shape = out.shape(weight)
    count = 1
    for dim in shape[1:] if shape else (None,):
        count *= _known(dim, weight)
    return count


def _known(dim: int | None, name: str) -> int:
    if dim is None:
        raise CannotConvert(
            "how many products it adds is not known, and so not whether float holds their sum",
            remedy=f"state the shape: add a value_info for {name!r}",
        )
    return dim
