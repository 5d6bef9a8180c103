"""Einsum: products of operands, aligned by their labels, and summed over what the result does not have."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from opshift.adapters.casts import FLOATS, WIDER, cast
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import Size, dimension, reshaped
from opshift.adapters.table import adapter

HALVES = dict.fromkeys(("float16", "bfloat16"), "float")
DOTS = "..."


class _Term(NamedTuple):
    """A value, a label for each of its dimensions, and which dimension of which input has the same size.

    What an ellipsis stands for may be one in either factor: only the product itself has the size then.
    """

    value: str
    labels: tuple[str, ...]
    origins: Mapping[str, tuple[str, int] | None]


@adapter("Einsum", 12, 11)
def terms_are_multiplied_and_summed(node: Node, out: Rewriter) -> None:
    """One operand after the other is multiplied, and what no later one or the result has is summed up."""
    element_type = out.element_type(node.inputs[0])
    wide = {**WIDER, **HALVES}.get(element_type, element_type)
    terms, result = _read(node, out)
    if wide != element_type:
        terms = [term._replace(value=cast(term.value, wide, out)) for term in terms]
    terms = [_diagonal(term, out) for term in terms]
    current = terms[0]
    for place, term in enumerate(terms[1:], start=2):
        needed = {*result, *(label for later in terms[place:] for label in later.labels)}
        current = _product(current, term, needed, wide in FLOATS, out)
    current = _arranged(_summed(current, set(result), out), result, out)
    if wide == element_type:
        out.emit("Identity", [current.value], node.outputs)
    else:
        cast(current.value, element_type, out, node.outputs)


def _read(node: Node, out: Rewriter) -> tuple[list[_Term], tuple[str, ...]]:
    """The operands and the labels of the result; the dimensions of an ellipsis are labelled from the back."""
    left, arrow, right = node.attribute("equation").decode().replace(" ", "").partition("->")
    terms = []
    for name, text in zip(node.inputs, left.split(","), strict=True):
        letters = len(text.replace(DOTS, ""))
        hidden = out.rank(name) - letters if DOTS in text else 0
        labels = _labels(text, hidden)
        terms.append(_Term(name, labels, {label: (name, place) for place, label in enumerate(labels)}))
    most = max(sum(label.isdigit() for label in term.labels) for term in terms)
    if arrow:
        return terms, _labels(right, most)
    letters_only = re.sub("[^A-Za-z]", "", left)
    once = sorted(label for label in set(letters_only) if letters_only.count(label) == 1)
    return terms, _labels(DOTS + "".join(once), most)


def _labels(text: str, hidden: int) -> tuple[str, ...]:
    before, dots, after = text.partition(DOTS)
    middle = [str(place) for place in reversed(range(hidden))] if dots else []
    return (*before, *middle, *after)


def _diagonal(term: _Term, out: Rewriter) -> _Term:
    """Of two dimensions with one label only the elements where both are at the same place."""
    repeated = next((label for label in term.labels if term.labels.count(label) > 1), None)
    if repeated is None:
        return term
    first = term.labels.index(repeated)
    second = term.labels.index(repeated, first + 1)
    rest = [place for place in range(len(term.labels)) if place not in (first, second)]
    size = _known(term, repeated, out)
    if size is None:
        raise CannotConvert(
            f"it takes the diagonal of {repeated!r}, whose length is not known",
            remedy="state the shapes of its inputs",
        )
    labels = tuple(term.labels[place] for place in rest)
    moved = out.emit("Transpose", [term.value], perm=[first, second, *rest])
    rows = reshaped(moved, [size * size, *_sizes(term, labels, out)], out)
    places = out.constant(tuple(range(0, size * size, size + 1)), "int64")
    value = out.emit("Gather", [rows, places], axis=0)
    return _diagonal(term._replace(value=value, labels=(repeated, *labels)), out)


def _product(one: _Term, other: _Term, needed: set[str], of_floats: bool, out: Rewriter) -> _Term:
    """The product of two operands, summed over the labels that are not needed."""
    one = _summed(one, needed | set(other.labels), out)
    other = _summed(other, needed | set(one.labels), out)
    shared = [label for label in one.labels if label in other.labels]
    groups = (
        tuple(label for label in shared if label in needed),
        tuple(label for label in one.labels if label not in shared),
        tuple(label for label in other.labels if label not in shared),
        tuple(label for label in shared if label not in needed),
    )
    if of_floats and groups[3] and all(_agree(one, other, label, out) for label in groups[3]):
        return _matrix_product(one, other, groups, out)
    labels = tuple(label for group in groups for label in group)
    value = out.emit("Mul", [_spread(one, labels, out), _spread(other, labels, out)])
    return _summed(_Term(value, labels, _origins(one, other)), needed, out)


def _matrix_product(one: _Term, other: _Term, groups: tuple[tuple[str, ...], ...], out: Rewriter) -> _Term:
    """MatMul, with the dimensions of a kind taken as one."""
    batch, left, right, summed = groups
    one = _arranged(one, (*batch, *left, *summed), out)
    other = _arranged(other, (*batch, *summed, *right), out)
    kept: list[Size] = [0] * len(batch)
    sizes = [_sizes(one, left, out), _sizes(one, summed, out), _sizes(other, right, out)]
    first = _grouped(one.value, kept, sizes[:2], out)
    second = _grouped(other.value, kept, sizes[1:], out)
    value = out.emit("MatMul", [first, second])
    if len(left) != 1 or len(right) != 1:
        value = reshaped(value, [*kept, *sizes[0], *sizes[2]], out)
    return _Term(value, (*batch, *left, *right), _origins(one, other))


def _origins(one: _Term, other: _Term) -> Mapping[str, tuple[str, int] | None]:
    both = {label for label in one.labels if label.isdigit() and label in other.labels}
    return {**one.origins, **other.origins, **dict.fromkeys(both)}


def _grouped(value: str, kept: list[Size], groups: list[list[Size]], out: Rewriter) -> str:
    """The value with one dimension for each group of them."""
    if all(len(group) == 1 for group in groups):
        return value
    return reshaped(value, [*kept, *(_whole(group, out) for group in groups)], out)


def _sizes(term: _Term, labels: Sequence[str], out: Rewriter) -> list[Size]:
    return [_size(term, label, out) for label in labels]


def _size(term: _Term, label: str, out: Rewriter) -> Size:
    origin = term.origins[label]
    if origin is not None:
        return dimension(*origin, out)
    place = out.constant([term.labels.index(label)], "int64")
    return out.emit("Gather", [out.emit("Shape", [term.value]), place], axis=0)


def _whole(sizes: list[Size], out: Rewriter) -> Size:
    """The product of sizes."""
    known = 1
    names = []
    for size in sizes:
        if isinstance(size, int):
            known *= size
        else:
            names.append(size)
    if not names:
        return known
    total = out.constant([known], "int64")
    for name in names:
        total = out.emit("Mul", [total, name])
    return total


def _agree(one: _Term, other: _Term, label: str, out: Rewriter) -> bool:
    """Whether both have the same number of elements under a label, none being broadcast."""
    if label.isdigit():
        return False
    known = [_known(term, label, out) for term in (one, other)]
    return None in known or known[0] == known[1]


def _known(term: _Term, label: str, out: Rewriter) -> int | None:
    origin = term.origins[label]
    shape = out.shape(origin[0]) if origin is not None else None
    return shape[origin[1]] if origin is not None and shape is not None else None


def _summed(term: _Term, needed: set[str], out: Rewriter) -> _Term:
    axes = [place for place, label in enumerate(term.labels) if label not in needed]
    if not axes:
        return term
    value = out.emit("ReduceSum", [term.value], axes=axes, keepdims=0)
    return term._replace(value=value, labels=tuple(label for label in term.labels if label in needed))


def _arranged(term: _Term, labels: Sequence[str], out: Rewriter) -> _Term:
    if term.labels == tuple(labels):
        return term
    order = [term.labels.index(label) for label in labels]
    return term._replace(value=out.emit("Transpose", [term.value], perm=order), labels=tuple(labels))


def _spread(term: _Term, labels: Sequence[str], out: Rewriter) -> str:
    """The value with a dimension for every label, of one where it has none."""
    own = _arranged(term, [label for label in labels if label in term.labels], out)
    axes = [place for place, label in enumerate(labels) if label not in term.labels]
    return out.emit("Unsqueeze", [own.value], axes=axes) if axes else own.value
