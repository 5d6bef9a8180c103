"""Einsum.

Before opset 12, the operands are multiplied one by one, aligned by label, and summed over labels.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, UnknownShape, adapter
from opshift.adapters.emit.expression import ARITHMETIC_TYPES, FLOAT_TYPES, cast_between, cast_output, fold
from opshift.adapters.emit.shapes import (
    Dimension,
    computed_dimension,
    dimension,
    reshape,
    reshape_with_zeros,
    shape_tensor,
)
from opshift.registry.shapes.einsum import ELLIPSIS, parse_equation

HALF_PRECISION_COMPUTE_TYPES = dict.fromkeys(("float16", "bfloat16"), "float")
"""Half-precision types to the type in which Einsum computes."""

MAX_OPERANDS = 64
"""Maximum number of operands of Einsum: the time of the rewrite grows with the square of this number."""


class Term(NamedTuple):
    """An operand or product: value name, label of each dimension, and origin (input, axis) of each label.

    The origin has the same size as the dimension. It is `None` if either factor of a product may have size 1,
    so that only the product is known to have the broadcast size.
    """

    value: str
    labels: tuple[str, ...]
    origins: Mapping[str, tuple[str, int] | None]


@adapter("Einsum", 12, 11)
def expand_einsum(node: Node, out: Rewriter) -> None:
    """Multiply the operands one by one; sum over labels that neither later operands nor the result have."""
    if len(node.inputs) > MAX_OPERANDS:
        reason = f"the node has {len(node.inputs):,} operands, more than {MAX_OPERANDS}"
        raise CannotConvert(reason, "limit.exceeded", remedy="split the node into nodes with fewer operands")
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
    equation = parse_equation(node.attribute("equation").decode())
    if problem := equation.problem([out.known_rank(name) for name in node.inputs]):
        raise CannotConvert(problem, "node.invalid", remedy="correct the equation")
    terms = []
    for name, text in zip(node.inputs, equation.operands, strict=True):
        letters = len(text.replace(ELLIPSIS, ""))
        ellipsis_rank = out.rank(name) - letters if ELLIPSIS in text else 0
        labels = _parse_labels(text, ellipsis_rank)
        terms.append(Term(name, labels, {label: (name, axis) for axis, label in enumerate(labels)}))
    max_ellipsis_rank = max(sum(label.isdigit() for label in term.labels) for term in terms)
    return terms, _parse_labels(equation.result, max_ellipsis_rank)


def _parse_labels(text: str, ellipsis_rank: int) -> tuple[str, ...]:
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


def _size_of_label(term: Term, label: str, out: Rewriter) -> Dimension:
    origin = term.origins[label]
    if origin is not None:
        return dimension(*origin, out)
    return computed_dimension(term.value, term.labels.index(label), out)


def _sizes_of_labels(term: Term, labels: Sequence[str], out: Rewriter) -> list[Dimension]:
    return [_size_of_label(term, label, out) for label in labels]


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
    if is_float and groups[3] and all(_suits_matmul(first, second, label, needed, out) for label in shared):
        # MatMul broadcasts the labels in `groups[0]`, but not the labels that it sums over.
        expanded = _expand(first, second, groups[3], out), _expand(second, first, groups[3], out)
        return _matrix_product(*expanded, groups, out)
    labels = tuple(label for group in groups for label in group)
    value = out.emit("Mul", [unsqueeze_to_labels(term, labels, out) for term in (first, second)])
    return sum_out(Term(value, labels, merge_origins(first, second, out)), needed, out)


def sum_out(term: Term, needed: set[str], out: Rewriter) -> Term:
    """Sum over the dimensions whose labels are not in `needed`."""
    axes = [axis for axis, label in enumerate(term.labels) if label not in needed]
    if not axes:
        return term
    value = out.emit("ReduceSum", [term.value], axes=axes, keepdims=0)
    return term._replace(value=value, labels=tuple(label for label in term.labels if label in needed))


def _suits_matmul(first: Term, second: Term, label: str, needed: set[str], out: Rewriter) -> bool:
    """Return whether MatMul can multiply two operands that share a label, as far as sizes are known."""
    sizes = [known_size(term, label, out) for term in (first, second)]
    if 0 in sizes:
        # onnxruntime's MatMul neither sums over 0 elements nor broadcasts from size 1 to size 0.
        return label in needed and sizes[0] == sizes[1]
    return label in needed or None in sizes or sizes[0] == sizes[1]


def _may_broadcast(term: Term, other: Term, label: str, out: Rewriter) -> bool:
    """Return whether the dimension with a label may have size 1 in `term` and another size in `other`."""
    if known_size(term, label, out) not in (None, 1) or known_size(other, label, out) == 1:
        return False
    origins = [each.origins[label] or ("", 0) for each in (term, other)]
    shapes = out.comparable_shapes([name for name, _ in origins])
    axes = [axis for _, axis in origins]
    sizes = [shape[axis] if shape else None for shape, axis in zip(shapes, axes, strict=True)]
    return sizes[0] is None or sizes[0] != sizes[1]


def _expand(term: Term, other: Term, labels: Sequence[str], out: Rewriter) -> Term:
    """Expand the dimensions with `labels` that may have size 1 in `term` and another size in `other`."""
    expanded = [label for label in labels if _may_broadcast(term, other, label, out)]
    if not expanded:
        return term
    sizes = [_size_of_label(other, label, out) if label in expanded else 1 for label in term.labels]
    value = out.emit("Expand", [term.value, shape_tensor(sizes, out)])
    origins = {label: _common_origin(term, other, label, out) for label in expanded}
    return term._replace(value=value, origins={**term.origins, **origins})


def _matrix_product(
    first_term: Term, second_term: Term, groups: tuple[tuple[str, ...], ...], out: Rewriter
) -> Term:
    """Multiply by MatMul; `groups` are batch, left, right and shared labels, and shared ones are summed."""
    batch, left, right, shared = groups
    first_term = transpose_to_labels(first_term, (*batch, *left, *shared), out)
    second_term = transpose_to_labels(second_term, (*batch, *shared, *right), out)
    # MatMul itself handles single dimensions and leading batch dimensions, so no Reshape is needed.
    if len(shared) == len(right) == 1 and (len(left) == 1 or (left and not batch)):
        value = out.emit("MatMul", [first_term.value, second_term.value])
        return Term(value, (*batch, *left, *right), merge_origins(first_term, second_term, out))
    # With one summed dimension and no batch, MatMul multiplies a stack of matrices by one matrix.
    is_stack = len(shared) == 1 and not batch and bool(left)
    first = first_term.value if is_stack else _merge_to_matrix(first_term, batch, left, shared, out)
    second = _merge_to_matrix(second_term, batch, shared, right, out)
    value = out.emit("MatMul", [first, second])
    merged_left = () if is_stack or len(left) == 1 else left
    if len(left) != 1 or len(right) != 1:
        kept = len(batch) + len(left) - len(merged_left)
        sizes = [*_sizes_of_labels(first_term, merged_left, out), *_sizes_of_labels(second_term, right, out)]
        value = _reshape_trailing(value, kept, sizes, out)
    return Term(value, (*batch, *left, *right), merge_origins(first_term, second_term, out))


def _merge_to_matrix(
    term: Term, batch: tuple[str, ...], rows: tuple[str, ...], columns: tuple[str, ...], out: Rewriter
) -> str:
    """Merge all row dimensions into one, and all column dimensions into one; keep the batch dimensions."""
    if len(rows) == len(columns) == 1:
        return term.value
    groups = [columns] if len(rows) == 1 else [rows, columns]
    sizes = [_product(_sizes_of_labels(term, labels, out), out) for labels in groups]
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


def merge_origins(first: Term, second: Term, out: Rewriter) -> Mapping[str, tuple[str, int] | None]:
    """Return the origins of the product of two terms."""
    shared = [label for label in first.labels if label in second.labels]
    common = {label: _common_origin(first, second, label, out) for label in shared}
    return {**first.origins, **second.origins, **common}


def _common_origin(first: Term, second: Term, label: str, out: Rewriter) -> tuple[str, int] | None:
    """Return the origin of a label in the term with the broadcast size; `None` if it may be either term."""
    for term, other in ((second, first), (first, second)):
        if not _may_broadcast(term, other, label, out):
            return term.origins[label]
    return None


def unsqueeze_to_labels(term: Term, labels: Sequence[str], out: Rewriter) -> str:
    """Return the value in the order of `labels`, with a dimension of 1 for each label that `term` lacks."""
    arranged_term = transpose_to_labels(term, [label for label in labels if label in term.labels], out)
    axes = [axis for axis, label in enumerate(labels) if label not in term.labels]
    return out.emit("Unsqueeze", [arranged_term.value], axes=axes) if axes else arranged_term.value
