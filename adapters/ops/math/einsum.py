"""Einsum before opset 12: operands are multiplied pairwise, aligned by label, and summed over labels."""

import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, UnknownShape, adapter
from opshift.adapters.emit.expression import ARITHMETIC_TYPES, FLOAT_TYPES, cast_between, cast_output, fold
from opshift.adapters.emit.shapes import Dimension, computed_dimension, dimension, reshape

HALF_PRECISION_COMPUTE_TYPES = dict.fromkeys(("float16", "bfloat16"), "float")
"""Half-precision types, and the type that they are computed in."""

MAX_OPERANDS = 64
"""Maximum number of operands: each product considers the labels of all later ones."""

ELLIPSIS = "..."
"""Ellipsis of an equation: any number of unnamed dimensions."""


class Term(NamedTuple):
    """A value, a label for each of its dimensions, and an input dimension of the same size for each label.

    The origin of an ellipsis label is `None` if both factors of a product have it: either may have size 1
    there, so only the product itself has its size.
    """

    value: str
    labels: tuple[str, ...]
    origins: Mapping[str, tuple[str, int] | None]


@adapter("Einsum", 12, 11)
def expand_einsum(node: Node, out: Rewriter) -> None:
    """Multiply the operands one by one; sum over a label once no later operand and not the result has it."""
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

    Dimensions of an ellipsis are labelled by digits, counted from the last one, because ellipses of different
    ranks align there.
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
    # Without an arrow the result has the labels that occur once, in alphabetical order.
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
    moved = out.emit("Transpose", [term.value], perm=[first, second, *other_axes])
    flattened = reshape(moved, [size * size, *_sizes(term, labels, out)], out)
    # Diagonal elements are `size + 1` apart in the flattened dimensions.
    positions = out.int64(range(0, size * size, size + 1))
    value = out.emit("Gather", [flattened, positions], axis=0)
    return _take_diagonals(term._replace(value=value, labels=(repeated, *labels)), out)


def known_size(term: Term, label: str, out: Rewriter) -> int | None:
    """Return the size of a dimension, or `None` if it is unknown."""
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
    """Return the product of two operands, summed over the labels that are not needed."""
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
    """Sum over the dimensions that are not needed."""
    axes = [axis for axis, label in enumerate(term.labels) if label not in needed]
    if not axes:
        return term
    value = out.emit("ReduceSum", [term.value], axes=axes, keepdims=0)
    return term._replace(value=value, labels=tuple(label for label in term.labels if label in needed))


def sizes_agree(first: Term, second: Term, label: str, out: Rewriter) -> bool:
    """Whether both operands have the same nonzero size under a label.

    Ellipsis labels do not count, because they may be broadcast. Sizes of named labels are assumed to be equal
    where one is unknown.
    """
    if label.isdigit():
        return False
    known = [known_size(term, label, out) for term in (first, second)]
    return 0 not in known and (None in known or known[0] == known[1])


def _matrix_product(
    first_term: Term, second_term: Term, groups: tuple[tuple[str, ...], ...], out: Rewriter
) -> Term:
    """Multiply by MatMul, with the dimensions of each group flattened into one."""
    batch, left, right, shared = groups
    first_term = transpose_to_labels(first_term, (*batch, *left, *shared), out)
    second_term = transpose_to_labels(second_term, (*batch, *shared, *right), out)
    # No Reshape is needed: MatMul handles single dimensions and leading batch dimensions itself.
    if len(shared) == len(right) == 1 and (len(left) == 1 or (left and not batch)):
        value = out.emit("MatMul", [first_term.value, second_term.value])
        return Term(value, (*batch, *left, *right), merge_origins(first_term, second_term))
    # In Reshape 0 copies a dimension, so its size does not have to be known.
    copied: list[Dimension] = [0] * len(batch)
    left_sizes, shared_sizes = (_sizes(first_term, labels, out) for labels in (left, shared))
    right_sizes = _sizes(second_term, right, out)
    first, second = (
        reshape(term.value, [*copied, *_matrix_sizes(pair, bool(copied), out)], out)
        for term, pair in (
            (first_term, (left_sizes, shared_sizes)),
            (second_term, (shared_sizes, right_sizes)),
        )
    )
    value = reshape(out.emit("MatMul", [first, second]), [*copied, *left_sizes, *right_sizes], out)
    return Term(value, (*batch, *left, *right), merge_origins(first_term, second_term))


def _matrix_sizes(
    groups: tuple[list[Dimension], list[Dimension]], has_batch: bool, out: Rewriter
) -> list[Dimension]:
    """Return the sizes of a matrix; that of a vector, which may be 0, is inferred: Reshape would copy it."""
    rows, columns = (_product(group, out) for group in groups)
    if not has_batch and 1 in (rows, columns):
        # Only a size next to numbers other than 0 can be inferred.
        return [each if isinstance(each, int) and each else -1 for each in (rows, columns)]
    return [rows, columns]


def transpose_to_labels(term: Term, labels: Sequence[str], out: Rewriter) -> Term:
    """Transpose to the order of some labels."""
    if term.labels == tuple(labels):
        return term
    order = [term.labels.index(label) for label in labels]
    return term._replace(value=out.emit("Transpose", [term.value], perm=order), labels=tuple(labels))


def merge_origins(first: Term, second: Term) -> Mapping[str, tuple[str, int] | None]:
    """Return the origins of the sizes of a product."""
    shared_digits = {label for label in first.labels if label.isdigit() and label in second.labels}
    return {**first.origins, **second.origins, **dict.fromkeys(shared_digits)}


def unsqueeze_to_labels(term: Term, labels: Sequence[str], out: Rewriter) -> str:
    """Return the value with a dimension of size 1 for every label that the operand lacks."""
    arranged_term = transpose_to_labels(term, [label for label in labels if label in term.labels], out)
    axes = [axis for axis, label in enumerate(labels) if label not in term.labels]
    return out.emit("Unsqueeze", [arranged_term.value], axes=axes) if axes else arranged_term.value
