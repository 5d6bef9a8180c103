"""Operands of Einsum: values with a label for each dimension, and operations on them by label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import Size, dimension


class Term(NamedTuple):
    """A value, a label for each of its dimensions, and an input dimension of the same size for each label.

    The origin of an ellipsis label is `None` if both factors of a product have it: either may have size 1
    there, so only the product itself has its size.
    """

    value: str
    labels: tuple[str, ...]
    origins: Mapping[str, tuple[str, int] | None]


def sizes_of(term: Term, labels: Sequence[str], out: Rewriter) -> list[Size]:
    """Return the sizes of the dimensions with some labels."""
    return [_size(term, label, out) for label in labels]


def _size(term: Term, label: str, out: Rewriter) -> Size:
    origin = term.origins[label]
    if origin is not None:
        return dimension(*origin, out)
    axis = out.constant([term.labels.index(label)], "int64")
    return out.emit("Gather", [out.emit("Shape", [term.value]), axis], axis=0)


def whole(sizes: list[Size], out: Rewriter) -> Size:
    """Return the product of sizes: a number if all are known, else the name of a computed value."""
    factor = 1
    computed = []
    for size in sizes:
        if isinstance(size, int):
            factor *= size
        else:
            computed.append(size)
    if not computed:
        return factor
    total = out.constant([factor], "int64")
    for size_name in computed:
        total = out.emit("Mul", [total, size_name])
    return total


def agree(first: Term, second: Term, label: str, out: Rewriter) -> bool:
    """Whether both operands have the same nonzero size under a label.

    Ellipsis labels do not count, because they may be broadcast. Sizes of named labels are assumed to be equal
    where one is unknown.
    """
    if label.isdigit():
        return False
    known = [known_size(term, label, out) for term in (first, second)]
    return 0 not in known and (None in known or known[0] == known[1])


def known_size(term: Term, label: str, out: Rewriter) -> int | None:
    """Return the size of a dimension, or `None` if it is unknown."""
    origin = term.origins[label]
    shape = out.shape(origin[0]) if origin is not None else None
    return shape[origin[1]] if origin is not None and shape is not None else None


def summed(term: Term, needed: set[str], out: Rewriter) -> Term:
    """Sum over the dimensions that are not needed."""
    axes = [axis for axis, label in enumerate(term.labels) if label not in needed]
    if not axes:
        return term
    value = out.emit("ReduceSum", [term.value], axes=axes, keepdims=0)
    return term._replace(value=value, labels=tuple(label for label in term.labels if label in needed))


def arranged(term: Term, labels: Sequence[str], out: Rewriter) -> Term:
    """Transpose to the order of some labels."""
    if term.labels == tuple(labels):
        return term
    order = [term.labels.index(label) for label in labels]
    return term._replace(value=out.emit("Transpose", [term.value], perm=order), labels=tuple(labels))


def spread(term: Term, labels: Sequence[str], out: Rewriter) -> str:
    """Return the value with a dimension of size 1 for every label that the operand lacks."""
    arranged_term = arranged(term, [label for label in labels if label in term.labels], out)
    axes = [axis for axis, label in enumerate(labels) if label not in term.labels]
    return out.emit("Unsqueeze", [arranged_term.value], axes=axes) if axes else arranged_term.value


def origins_of(first: Term, second: Term) -> Mapping[str, tuple[str, int] | None]:
    """Return the origins of the sizes of a product."""
    shared_digits = {label for label in first.labels if label.isdigit() and label in second.labels}
    return {**first.origins, **second.origins, **dict.fromkeys(shared_digits)}
