"""Linear algebra: Gemm, Det, Einsum, MatMulInteger, ConvInteger, QLinearMatMul and QLinearConv.

In Gemm, `C` is optional since version 11, and broadcasts without an attribute since version 7. Before opset
10, integer products such as MatMulInteger are computed exactly in float. Before opset 11, Det of small
matrices is expanded by the Leibniz formula. Before opset 12, the operands of Einsum are multiplied one by
one, aligned by label, and summed over labels.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import permutations
from math import prod
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, UnknownShape, adapter, require_supported_types
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.emit.expression import (
    ARITHMETIC_TYPES,
    FLOAT_TYPES,
    cast,
    cast_between,
    cast_output,
    fold,
)
from opshift.adapters.emit.quantization import (
    ARITHMETIC_OPSET,
    CLIP_OPSET,
    INTEGER_RANGES,
    ROUND_OPSET,
    as_scalar,
)
from opshift.adapters.emit.shapes import (
    Dimension,
    computed_dimension,
    dimension,
    reshape,
    reshape_with_zeros,
)

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
    # A scale or zero point of rank 2 is a column already.
    return out.emit("Unsqueeze", [name], opset=CLIP_OPSET, axes=[1]) if out.rank(name) == 1 else name


def _exact_product(op_type: str, node: Node, first: str, second: str, terms: int, out: Rewriter) -> str:
    """Return the product as int32, computed exactly in float; split `second` into digits if necessary."""
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
    # `second` is `high * base + low`: float represents the sums of products with `high` and `low` exactly.
    high = out.emit("Floor", [out.emit("Div", [second, base])], opset=CLIP_OPSET)
    low = out.emit("Sub", [second, out.emit("Mul", [high, base])])
    upper, lower = product(high), product(low)
    raised = out.emit("Mul", [upper, out.constant(DIGIT_BASE, "int32")])
    return out.emit("Add", [raised, lower])


@adapter("ConvInteger", 10, 9)
def expand_conv_integer(node: Node, out: Rewriter) -> None:
    """Subtract the zero points, and convolve the differences by Conv."""
    data, weight = node.inputs[:2]
    rename_output(_convolve(node, data, node.input(2), weight, node.input(3), out), node, out)


def _convolve(node: Node, data: str, data_zero: str, weight: str, weight_zero: str, out: Rewriter) -> str:
    first = _subtract_zero_point(data, data_zero, out)
    if weight_zero and out.shape(weight_zero) not in ((), (1,)):
        # Reshape the zero points per output channel so that they broadcast with the weight.
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
    """Multiply as integers, then scale and round."""
    out = out.for_opset(ARITHMETIC_OPSET)
    first, first_scale, first_zero, second, second_scale, second_zero, scale, zero = node.inputs
    total = _multiply_matrices(node, first, first_zero, second, second_zero, out)
    if out.known_rank(first) == out.known_rank(second) == 1:
        # The product is a scalar, so the shape (1,) would broadcast it.
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
    """Convolve as integers, then scale and round."""
    out = out.for_opset(ARITHMETIC_OPSET)
    data, data_scale, data_zero, weight, weight_scale, weight_zero, scale, zero = node.inputs[:8]
    total = _convolve(node, data, data_zero, weight, weight_zero, out)
    shape = out.int64([-1, *[1] * (out.rank(weight) - 2)])
    if node.input(8):
        total = out.emit("Add", [total, out.emit("Reshape", [node.inputs[8], shape])])
    factor = out.emit("Div", [out.emit("Mul", [data_scale, weight_scale]), scale])
    if out.shape(weight_scale) not in ((), (1,)):
        factor = out.emit("Reshape", [factor, shape])
    _requantize(total, factor, zero, node, out)


HALF_PRECISION_COMPUTE_TYPES = dict.fromkeys(("float16", "bfloat16"), "float")
"""Half-precision types to the type in which Einsum computes."""

MAX_OPERANDS = 64
"""Maximum number of operands of Einsum, because the time to expand it grows with the square of the number."""

ELLIPSIS = "..."
"""Ellipsis in an Einsum equation, which stands for any number of dimensions without letters."""


class Term(NamedTuple):
    """An operand or product: value name, label of each dimension, and origin (input, axis) of each label.

    The origin has the same size as the dimension. It is `None` for an ellipsis label that both factors of a
    product have: each factor may have size 1, so only the product has the broadcast size.
    """

    value: str
    labels: tuple[str, ...]
    origins: Mapping[str, tuple[str, int] | None]


@adapter("Einsum", 12, 11)
def expand_einsum(node: Node, out: Rewriter) -> None:
    """Multiply the operands one by one; sum over labels that neither later operands nor the result have."""
    if len(node.inputs) > MAX_OPERANDS:
        reason = f"the node has {len(node.inputs):,} operands, more than {MAX_OPERANDS}"
        raise CannotConvert(reason, "limit.exceeded", remedy="split it into nodes with fewer operands")
    element_type = out.element_type(node.inputs[0])
    compute_type = {**ARITHMETIC_TYPES, **HALF_PRECISION_COMPUTE_TYPES}.get(element_type, element_type)
    terms, result = _parse_equation(node, out)
    values = [cast_between(term.value, element_type, compute_type, out) for term in terms]
    pairs = zip(terms, values, strict=True)
    terms = [_take_diagonals(term._replace(value=value), out) for term, value in pairs]
    product = terms[0]
    for next_index, term in enumerate(terms[1:], start=2):
        needed = {*result, *(label for later in terms[next_index:] for label in later.labels)}
        product = _multiply(product, term, needed, compute_type in FLOAT_TYPES, out)
    product = transpose_to_labels(sum_out(product, set(result), out), result, out)
    cast_output(product.value, compute_type, element_type, node, out)


def _parse_equation(node: Node, out: Rewriter) -> tuple[list[Term], tuple[str, ...]]:
    """Return the operands and the labels of the result.

    Dimensions of an ellipsis are labelled by numbers, counted from the last dimension, because ellipses of
    different ranks align at their last dimensions.
    """
    left, arrow, right = node.attribute("equation").decode().replace(" ", "").partition("->")
    terms = []
    for name, text in zip(node.inputs, left.split(","), strict=True):
        letters = len(text.replace(ELLIPSIS, ""))
        ellipsis_rank = out.rank(name) - letters if ELLIPSIS in text else 0
        labels = _labels(text, ellipsis_rank)
        terms.append(Term(name, labels, {label: (name, axis) for axis, label in enumerate(labels)}))
    max_ellipsis_rank = max(sum(label.isdigit() for label in term.labels) for term in terms)
    if arrow:
        return terms, _labels(right, max_ellipsis_rank)
    # Without an arrow, the result has the ellipsis and the letters that occur once, in alphabetical order.
    letters_only = re.sub("[^A-Za-z]", "", left)
    unique = sorted(label for label in set(letters_only) if letters_only.count(label) == 1)
    return terms, _labels(ELLIPSIS + "".join(unique), max_ellipsis_rank)


def _labels(text: str, ellipsis_rank: int) -> tuple[str, ...]:
    before, dots, after = text.partition(ELLIPSIS)
    middle = [str(digit) for digit in reversed(range(ellipsis_rank))] if dots else []
    return (*before, *middle, *after)


def _take_diagonals(term: Term, out: Rewriter) -> Term:
    """Replace two dimensions with the same label by their diagonal, until no label is repeated."""
    repeated = next((label for label in term.labels if term.labels.count(label) > 1), None)
    if repeated is None:
        return term
    first = term.labels.index(repeated)
    second = term.labels.index(repeated, first + 1)
    other_axes = [axis for axis in range(len(term.labels)) if axis not in (first, second)]
    size = known_size(term, repeated, out)
    if size is None:
        reason = f"label {repeated!r} is repeated, and the size of its dimensions is unknown"
        raise UnknownShape(reason, (term.origins[repeated] or (term.value,))[0])
    labels = tuple(term.labels[axis] for axis in other_axes)
    moved = out.emit("Transpose", [term.value], perm=[*other_axes, first, second])
    flattened = reshape(moved, [*[0] * len(labels), size * size], out)
    # Diagonal elements are `size + 1` apart in the flattened dimensions.
    positions = out.int64(range(0, size * size, size + 1))
    value = out.emit("Gather", [flattened, positions], axis=len(labels))
    return _take_diagonals(term._replace(value=value, labels=(*labels, repeated)), out)


def known_size(term: Term, label: str, out: Rewriter) -> int | None:
    """Return the size of the dimension with a label, or `None` if it is unknown."""
    origin = term.origins[label]
    return out.known_dimension(*origin) if origin is not None else None


def _size(term: Term, label: str, out: Rewriter) -> Dimension:
    origin = term.origins[label]
    if origin is not None:
        return dimension(*origin, out)
    return computed_dimension(term.value, term.labels.index(label), out)


def _sizes(term: Term, labels: Sequence[str], out: Rewriter) -> list[Dimension]:
    return [_size(term, label, out) for label in labels]


def _product(sizes: list[Dimension], out: Rewriter) -> Dimension:
    """Return the product of sizes: a number if all are known, else the name of a computed value."""
    factor = prod(size for size in sizes if isinstance(size, int))
    computed = [size for size in sizes if isinstance(size, str)]
    return fold("Mul", [out.int64([factor]), *computed], out) if computed else factor


def _multiply(first: Term, second: Term, needed: set[str], is_float: bool, out: Rewriter) -> Term:
    """Return the product of two operands, summed over the labels that are not in `needed`."""
    first = sum_out(first, needed | set(second.labels), out)
    second = sum_out(second, needed | set(first.labels), out)
    shared = [label for label in first.labels if label in second.labels]
    groups = (
        tuple(label for label in shared if label in needed),
        tuple(label for label in first.labels if label not in shared),
        tuple(label for label in second.labels if label not in shared),
        tuple(label for label in shared if label not in needed),
    )
    if is_float and groups[3] and all(sizes_agree(first, second, label, out) for label in groups[3]):
        return _matrix_product(first, second, groups, out)
    labels = tuple(label for group in groups for label in group)
    value = out.emit("Mul", [unsqueeze_to_labels(term, labels, out) for term in (first, second)])
    return sum_out(Term(value, labels, merge_origins(first, second)), needed, out)


def sum_out(term: Term, needed: set[str], out: Rewriter) -> Term:
    """Sum over the dimensions whose labels are not in `needed`."""
    axes = [axis for axis, label in enumerate(term.labels) if label not in needed]
    if not axes:
        return term
    value = out.emit("ReduceSum", [term.value], axes=axes, keepdims=0)
    return term._replace(value=value, labels=tuple(label for label in term.labels if label in needed))


def sizes_agree(first: Term, second: Term, label: str, out: Rewriter) -> bool:
    """Return whether the dimensions with a label have the same nonzero size in both operands.

    The answer is False for ellipsis labels, which may be broadcast. For letters, an unknown size is assumed
    to equal the other size.
    """
    if label.isdigit():
        return False
    known = [known_size(term, label, out) for term in (first, second)]
    return 0 not in known and (None in known or known[0] == known[1])


def _matrix_product(
    first_term: Term, second_term: Term, groups: tuple[tuple[str, ...], ...], out: Rewriter
) -> Term:
    """Multiply by MatMul; `groups` are batch, left, right and shared labels, and shared ones are summed."""
    batch, left, right, shared = groups
    first_term = transpose_to_labels(first_term, (*batch, *left, *shared), out)
    second_term = transpose_to_labels(second_term, (*batch, *shared, *right), out)
    # No Reshape is needed: MatMul handles single dimensions and leading batch dimensions itself.
    if len(shared) == len(right) == 1 and (len(left) == 1 or (left and not batch)):
        value = out.emit("MatMul", [first_term.value, second_term.value])
        return Term(value, (*batch, *left, *right), merge_origins(first_term, second_term))
    # MatMul keeps the rows of a stack of matrices apart if it sums over one dimension.
    is_stack = len(shared) == 1 and not batch and bool(left)
    first = first_term.value if is_stack else _merge_to_matrix(first_term, batch, left, shared, out)
    second = _merge_to_matrix(second_term, batch, shared, right, out)
    value = out.emit("MatMul", [first, second])
    merged_left = () if is_stack or len(left) == 1 else left
    if len(left) != 1 or len(right) != 1:
        kept = len(batch) + len(left) - len(merged_left)
        sizes = [*_sizes(first_term, merged_left, out), *_sizes(second_term, right, out)]
        value = _reshape_trailing(value, kept, sizes, out)
    return Term(value, (*batch, *left, *right), merge_origins(first_term, second_term))


def _merge_to_matrix(
    term: Term, batch: tuple[str, ...], rows: tuple[str, ...], columns: tuple[str, ...], out: Rewriter
) -> str:
    """Merge the dimensions of the rows into one, and those of the columns; keep the batch dimensions."""
    if len(rows) == len(columns) == 1:
        return term.value
    groups = [columns] if len(rows) == 1 else [rows, columns]
    sizes = [_product(_sizes(term, labels, out), out) for labels in groups]
    return _reshape_trailing(term.value, len(batch) + (len(rows) == 1), sizes, out)


def _reshape_trailing(value: str, kept: int, sizes: Sequence[Dimension], out: Rewriter) -> str:
    """Reshape all dimensions after the first `kept` ones to `sizes`, which may be 0."""
    if all(isinstance(size, int) and size for size in sizes):
        return reshape(value, [*[0] * kept, *sizes], out)
    leading = [computed_dimension(value, axis, out) for axis in range(kept)]
    return reshape_with_zeros(value, [*leading, *sizes], out)


def transpose_to_labels(term: Term, labels: Sequence[str], out: Rewriter) -> Term:
    """Transpose the dimensions to the order of `labels`."""
    if term.labels == tuple(labels):
        return term
    order = [term.labels.index(label) for label in labels]
    return term._replace(value=out.emit("Transpose", [term.value], perm=order), labels=tuple(labels))


def merge_origins(first: Term, second: Term) -> Mapping[str, tuple[str, int] | None]:
    """Return the origins of the product of two terms: `None` for ellipsis labels that both terms have."""
    shared_digits = {label for label in first.labels if label.isdigit() and label in second.labels}
    return {**first.origins, **second.origins, **dict.fromkeys(shared_digits)}


def unsqueeze_to_labels(term: Term, labels: Sequence[str], out: Rewriter) -> str:
    """Return the value in the order of `labels`, with a dimension of size 1 for every label it lacks."""
    arranged_term = transpose_to_labels(term, [label for label in labels if label in term.labels], out)
    axes = [axis for axis, label in enumerate(labels) if label not in term.labels]
    return out.emit("Unsqueeze", [arranged_term.value], axes=axes) if axes else arranged_term.value
