"""Linear algebra: Gemm, Det, MatMulInteger, ConvInteger, QLinearMatMul and QLinearConv.

In Gemm, `C` is optional since version 11, and broadcasts without an attribute since version 7. Before opset
10, integer products such as MatMulInteger are computed exactly in float. Before opset 11, Det of small
matrices is expanded by the Leibniz formula.
"""

from collections.abc import Sequence
from itertools import permutations
from math import prod

from opshift.adapters import CannotConvert, Node, Rewriter, UnknownShape, adapter, require_supported_types
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.emit.expression import cast, cast_between, fold
from opshift.adapters.emit.quantization import (
    ARITHMETIC_OPSET,
    CLIP_OPSET,
    INTEGER_RANGES,
    ROUND_OPSET,
    as_scalar,
)
from opshift.adapters.emit.shapes import reshape

MAX_MATRIX_SIZE = 4
"""Largest size of a matrix whose Det is expanded: the number of products is the factorial of the size."""

ERROR = "at most 2^-46 of the sum of the magnitudes of all products, and 1 unit in the last place"


@adapter("Det", 11, 10, error=ERROR)
def expand_det(node: Node, out: Rewriter) -> None:
    """Expand by the Leibniz formula: add the products of even permutations, subtract those of odd ones.

    The sum is computed in double.
    """
    data = node.inputs[0]
    size = out.known_dimension(data, -1)
    remedy = "compute the determinant outside the model, or convert to opset 11 or later"
    if size is None:
        raise UnknownShape(f"the size of the matrices in {data!r} is unknown", data, otherwise=remedy)
    if not 0 < size <= MAX_MATRIX_SIZE:
        reason = f"the size of the matrices in {data!r} is {size:,}, not between 1 and {MAX_MATRIX_SIZE}"
        raise CannotConvert(reason, "limit.exceeded", remedy=remedy)
    out.allow("approximate", "the determinant is the sum of the products of all permutations")
    element_type = out.element_type(data)
    value = data if element_type == "double" else cast(data, "double", out)
    rank = out.rank(data)
    indices = [out.int64(index) for index in range(size)]
    rows = [out.emit("Gather", [value, index], axis=rank - 2) for index in indices]
    elements = [[out.emit("Gather", [row, index], axis=rank - 2) for index in indices] for row in rows]
    total = ""
    for permutation in permutations(range(size)):
        product = fold("Mul", (elements[row][column] for row, column in enumerate(permutation)), out)
        total = out.emit("Sub" if _is_odd(permutation) else "Add", [total, product]) if total else product
    cast(total, element_type, out, node.outputs)


def _is_odd(permutation: tuple[int, ...]) -> bool:
    inversions = sum(
        first > second for position, first in enumerate(permutation) for second in permutation[position + 1 :]
    )
    return inversions % 2 == 1


@adapter("Gemm", 11, 9)
def add_zero_addend(node: Node, out: Rewriter) -> None:
    """Add a `C` of 0 if `C` is absent."""
    if node.input(2):
        out.replace(node)
        return
    zero = out.constant([0], out.element_type(node.inputs[0]))
    out.replace(node, inputs=(*node.inputs[:2], zero))


@adapter("Gemm", 7, 6)
def add_broadcast_attribute(node: Node, out: Rewriter) -> None:
    """Set `broadcast` for a scalar or row `C`; add a column `C` by separate nodes.

    In version 6, `broadcast` expands scalars and rows only.
    """
    require_supported_types(node, out)
    *factors, addend = node.inputs
    shape = out.shape(addend)
    if shape is None or (len(shape) > 1 and None in shape and 1 not in shape):
        reason = f"the shape of {addend!r} is unknown, and the attribute `broadcast` depends on it"
        raise UnknownShape(reason, addend)
    if len(shape) < 2:
        out.replace(node, attributes={**node.attributes, "broadcast": 1})
    elif shape[0] == 1:
        row = reshape(addend, (-1,), out)
        out.replace(node, inputs=[*factors, row], attributes={**node.attributes, "broadcast": 1})
    elif shape[1] == 1:
        _add_column(node, out)
    else:
        out.replace(node)


def _add_column(node: Node, out: Rewriter) -> None:
    """Emit a Gemm with a `C` of 0, and add the scaled column to its result."""
    element_type = out.element_type(node.inputs[0])
    product = out.fresh("gemm")
    inputs = [*node.inputs[:2], out.constant([0], element_type)]
    out.replace(node, inputs=inputs, outputs=[product], attributes={**node.attributes, "broadcast": 1})
    scale = out.constant(node.attribute("beta", 1.0), element_type)
    column = out.emit("Mul", [node.inputs[2], scale], opset=7)
    out.emit("Add", [product, column], node.outputs, opset=7)


MAX_EXACT_INTEGER = 2**24
"""Float represents every integer up to this limit exactly."""

MAX_DIFFERENCE = 255
"""Largest difference between an 8-bit integer and its zero point."""

DIGIT_BASE = 16
"""If a sum could exceed `MAX_EXACT_INTEGER`, the second factor is split into two digits of this base."""


@adapter("MatMulInteger", 10, 9)
def expand_matmul_integer(node: Node, out: Rewriter) -> None:
    """Subtract the zero points, and multiply the differences by MatMul."""
    first, second = node.inputs[:2]
    rename_output(_multiply_matrices(node, first, node.input(2), second, node.input(3), out), node, out)


def _multiply_matrices(
    node: Node, first: str, first_zero: str, second: str, second_zero: str, out: Rewriter
) -> str:
    left = _subtract_zero_point(first, _per_row(first_zero, [first], out), out)
    right = _subtract_zero_point(second, second_zero, out)
    terms = out.known_dimension(first, -1)
    if terms is None:
        terms = out.known_dimension(second, 0 if out.known_rank(second) == 1 else -2)
    if terms is None:
        raise _unknown_terms(first, second)
    return _exact_product("MatMul", node, left, right, terms, out)


def _unknown_terms(*names: str) -> UnknownShape:
    reason = "the number of summed products is unknown, so their sum in float may be inexact"
    return UnknownShape(reason, *names)


def _subtract_zero_point(name: str, zero_point: str, out: Rewriter) -> str:
    value = cast(name, "float", out)
    if not zero_point:
        return value
    return out.emit("Sub", [value, cast(zero_point, "float", out)], opset=ARITHMETIC_OPSET)


def _per_row(name: str, matrices: Sequence[str], out: Rewriter) -> str:
    """Unsqueeze a scale or zero point with one value per row to a column, unless a matrix is a vector."""
    if not name or out.shape(name) in ((), (1,)) or 1 in map(out.known_rank, matrices):
        return name
    # A scale or zero point of rank 2 is already a column.
    return out.emit("Unsqueeze", [name], opset=CLIP_OPSET, axes=[1]) if out.rank(name) == 1 else name


def _exact_product(op_type: str, node: Node, first: str, second: str, terms: int, out: Rewriter) -> str:
    """Return sums of `terms` products as int32, exact in float; split `second` into digits if necessary."""
    out = out.for_opset(ARITHMETIC_OPSET)

    def product(factor: str) -> str:
        floats = out.emit(op_type, [first, factor], opset=1, **node.attributes)
        return out.cast(floats, "int32", opset=CLIP_OPSET)

    if terms * MAX_DIFFERENCE * MAX_DIFFERENCE <= MAX_EXACT_INTEGER:
        return product(second)
    if terms * MAX_DIFFERENCE * DIGIT_BASE > MAX_EXACT_INTEGER:
        reason = f"each element is a sum of {terms} products, which float may not represent exactly"
        raise CannotConvert(reason, "value.inexact")
    base = out.constant(float(DIGIT_BASE), "float")
    # `second` is `high * base + low`; float represents the sums of products with `high` and `low` exactly.
    high = out.emit("Floor", [out.emit("Div", [second, base])], opset=CLIP_OPSET)
    low = out.emit("Sub", [second, out.emit("Mul", [high, base])])
    upper, lower = product(high), product(low)
    raised = out.emit("Mul", [upper, out.constant(DIGIT_BASE, "int32")])
    return out.emit("Add", [raised, lower])


@adapter("ConvInteger", 10, 9)
def expand_conv_integer(node: Node, out: Rewriter) -> None:
    """Subtract the zero points, and convolve the differences by Conv."""
    data, weight = node.inputs[:2]
    rename_output(_convolve_differences(node, data, node.input(2), weight, node.input(3), out), node, out)


def _convolve_differences(
    node: Node, data: str, data_zero: str, weight: str, weight_zero: str, out: Rewriter
) -> str:
    first = _subtract_zero_point(data, data_zero, out)
    if weight_zero and out.shape(weight_zero) not in ((), (1,)):
        # Reshape the zero points per output channel so that they broadcast with the weights.
        weight_zero = reshape(weight_zero, (-1, *[1] * (out.rank(weight) - 1)), out, opset=ARITHMETIC_OPSET)
    second = _subtract_zero_point(weight, weight_zero, out)
    sizes = [out.known_dimension(weight, axis) for axis in range(1, out.known_rank(weight) or 2)]
    if None in sizes:
        raise _unknown_terms(weight)
    return _exact_product("Conv", node, first, second, prod(size or 0 for size in sizes), out)


@adapter("QLinearMatMul", 21, 10)
def cast_scales_to_float(node: Node, out: Rewriter) -> None:
    """Cast scales to float; refuse 8-bit floats, which version 10 does not support."""
    for name in (node.inputs[0], node.inputs[3]):
        element_type = out.element_type(name)
        if element_type not in INTEGER_RANGES:
            reason = f"{name!r} is tensor({element_type}), unsupported by QLinearMatMul-10"
            raise CannotConvert(reason, "type.unsupported", subject=element_type)
    inputs = list(node.inputs)
    for position in (1, 4, 6):
        inputs[position] = cast_between(inputs[position], out.element_type(inputs[position]), "float", out)
    out.replace(node, inputs=inputs)


@adapter("QLinearMatMul", 10, 9)
def expand_qlinear_matmul(node: Node, out: Rewriter) -> None:
    """Multiply as integers, then scale, round and add the zero point."""
    out = out.for_opset(ARITHMETIC_OPSET)
    first, first_scale, first_zero, second, second_scale, second_zero, scale, zero = node.inputs
    total = _multiply_matrices(node, first, first_zero, second, second_zero, out)
    if out.known_rank(first) == out.known_rank(second) == 1:
        # The product is a scalar, which the shape (1,) would broadcast to rank 1.
        first_scale, second_scale, scale, zero = (
            as_scalar(name, out) for name in (first_scale, second_scale, scale, zero)
        )
    else:
        first_scale = _per_row(first_scale, [first, second], out)
    factor = out.emit("Mul", [first_scale, second_scale])
    _requantize(total, out.emit("Div", [factor, scale]), zero, node, out)


def _requantize(total: str, factor: str, zero: str, node: Node, out: Rewriter) -> None:
    """Scale, round half to even, add the zero point and saturate."""
    result_type = out.element_type(node.inputs[7])
    low, high = INTEGER_RANGES[result_type]
    scaled = out.emit("Mul", [cast(total, "float", out), factor])
    rounded = out.emit("Round", [scaled], opset=ROUND_OPSET)
    shifted = out.emit("Add", [rounded, cast(zero, "float", out)])
    bounded = out.emit("Clip", [shifted], opset=CLIP_OPSET, min=float(low), max=float(high))
    out.cast(bounded, result_type, node.outputs, opset=CLIP_OPSET)


@adapter("QLinearConv", 10, 9)
def expand_qlinear_conv(node: Node, out: Rewriter) -> None:
    """Convolve as integers, then scale, round and add the zero point."""
    out = out.for_opset(ARITHMETIC_OPSET)
    data, data_scale, data_zero, weight, weight_scale, weight_zero, scale, zero = node.inputs[:8]
    total = _convolve_differences(node, data, data_zero, weight, weight_zero, out)
    shape = out.int64([-1, *[1] * (out.rank(weight) - 2)])
    if node.input(8):
        total = out.emit("Add", [total, out.emit("Reshape", [node.inputs[8], shape])])
    factor = out.emit("Div", [out.emit("Mul", [data_scale, weight_scale]), scale])
    if out.shape(weight_scale) not in ((), (1,)):
        factor = out.emit("Reshape", [factor, shape])
    _requantize(total, factor, zero, node, out)
