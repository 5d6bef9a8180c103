"""Einsum: products of operands, aligned by their labels, and summed over what the result does not have."""

from __future__ import annotations

import re

from opshift.adapters.casts import FLOATS, WIDER, cast
from opshift.adapters.einsum_terms import (
    Term,
    agree,
    arranged,
    known_size,
    origins_of,
    sizes_of,
    spread,
    summed,
    whole,
)
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import Size, reshaped
from opshift.adapters.table import adapter

HALVES = dict.fromkeys(("float16", "bfloat16"), "float")
DOTS = "..."


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
    current = arranged(summed(current, set(result), out), result, out)
    if wide == element_type:
        out.emit("Identity", [current.value], node.outputs)
    else:
        cast(current.value, element_type, out, node.outputs)


def _read(node: Node, out: Rewriter) -> tuple[list[Term], tuple[str, ...]]:
    """The operands and the labels of the result; the dimensions of an ellipsis are labelled from the back."""
    left, arrow, right = node.attribute("equation").decode().replace(" ", "").partition("->")
    terms = []
    for name, text in zip(node.inputs, left.split(","), strict=True):
        letters = len(text.replace(DOTS, ""))
        hidden = out.rank(name) - letters if DOTS in text else 0
        labels = _labels(text, hidden)
        terms.append(Term(name, labels, {label: (name, place) for place, label in enumerate(labels)}))
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


def _diagonal(term: Term, out: Rewriter) -> Term:
    """Of two dimensions with one label only the elements where both are at the same place."""
    repeated = next((label for label in term.labels if term.labels.count(label) > 1), None)
    if repeated is None:
        return term
    first = term.labels.index(repeated)
    second = term.labels.index(repeated, first + 1)
    rest = [place for place in range(len(term.labels)) if place not in (first, second)]
    size = known_size(term, repeated, out)
    if size is None:
        raise CannotConvert(
            f"it takes the diagonal of {repeated!r}, whose length is not known",
            remedy="state the shapes of its inputs",
        )
    labels = tuple(term.labels[place] for place in rest)
    moved = out.emit("Transpose", [term.value], perm=[first, second, *rest])
    rows = reshaped(moved, [size * size, *sizes_of(term, labels, out)], out)
    places = out.constant(tuple(range(0, size * size, size + 1)), "int64")
    value = out.emit("Gather", [rows, places], axis=0)
    return _diagonal(term._replace(value=value, labels=(repeated, *labels)), out)


def _product(one: Term, other: Term, needed: set[str], of_floats: bool, out: Rewriter) -> Term:
    """The product of two operands, summed over the labels that are not needed."""
    one = summed(one, needed | set(other.labels), out)
    other = summed(other, needed | set(one.labels), out)
    shared = [label for label in one.labels if label in other.labels]
    groups = (
        tuple(label for label in shared if label in needed),
        tuple(label for label in one.labels if label not in shared),
        tuple(label for label in other.labels if label not in shared),
        tuple(label for label in shared if label not in needed),
    )
    if of_floats and groups[3] and all(agree(one, other, label, out) for label in groups[3]):
        return _matrix_product(one, other, groups, out)
    labels = tuple(label for group in groups for label in group)
    value = out.emit("Mul", [spread(one, labels, out), spread(other, labels, out)])
    return summed(Term(value, labels, origins_of(one, other)), needed, out)


def _matrix_product(one: Term, other: Term, groups: tuple[tuple[str, ...], ...], out: Rewriter) -> Term:
    """MatMul, with the dimensions of a kind taken as one."""
    batch, left, right, shared = groups
    one = arranged(one, (*batch, *left, *shared), out)
    other = arranged(other, (*batch, *shared, *right), out)
    if len(shared) == len(right) == 1 and (len(left) == 1 or (left and not batch)):
        value = out.emit("MatMul", [one.value, other.value])
        return Term(value, (*batch, *left, *right), origins_of(one, other))
    kept: list[Size] = [0] * len(batch)
    sizes = [sizes_of(one, left, out), sizes_of(one, shared, out), sizes_of(other, right, out)]
    first, second = (
        reshaped(term.value, [*kept, *(whole(group, out) for group in pair)], out)
        for term, pair in ((one, sizes[:2]), (other, sizes[1:]))
    )
    value = reshaped(out.emit("MatMul", [first, second]), [*kept, *sizes[0], *sizes[2]], out)
    return Term(value, (*batch, *left, *right), origins_of(one, other))
