"""Operands of Einsum: values with a label for each dimension, and what is done to them by label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import Size, dimension


class Term(NamedTuple):
    """A value, a label for each of its dimensions, and which dimension of which input has the same size.

    What an ellipsis stands for may be one in either factor: only the product itself has the size then.
    """

    value: str
    labels: tuple[str, ...]
    origins: Mapping[str, tuple[str, int] | None]


def sizes_of(term: Term, labels: Sequence[str], out: Rewriter) -> list[Size]:
    """The sizes of some dimensions."""
    return [_size(term, label, out) for label in labels]


def _size(term: Term, label: str, out: Rewriter) -> Size:
    origin = term.origins[label]
    if origin is not None:
        return dimension(*origin, out)
    place = out.constant([term.labels.index(label)], "int64")
    return out.emit("Gather", [out.emit("Shape", [term.value]), place], axis=0)


def whole(sizes: list[Size], out: Rewriter) -> Size:
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


def agree(one: Term, other: Term, label: str, out: Rewriter) -> bool:
    """Whether both have the same number of elements under a label, none being broadcast or empty."""
    if label.isdigit():
        return False
    known = [known_size(term, label, out) for term in (one, other)]
    return 0 not in known and (None in known or known[0] == known[1])


def known_size(term: Term, label: str, out: Rewriter) -> int | None:
    """The size of a dimension, if it is known."""
    origin = term.origins[label]
    shape = out.shape(origin[0]) if origin is not None else None
    return shape[origin[1]] if origin is not None and shape is not None else None


def summed(term: Term, needed: set[str], out: Rewriter) -> Term:
    """Without the dimensions that are not needed."""
    axes = [place for place, label in enumerate(term.labels) if label not in needed]
    if not axes:
        return term
    value = out.emit("ReduceSum", [term.value], axes=axes, keepdims=0)
    return term._replace(value=value, labels=tuple(label for label in term.labels if label in needed))


def arranged(term: Term, labels: Sequence[str], out: Rewriter) -> Term:
    """With its dimensions in another order."""
    if term.labels == tuple(labels):
        return term
    order = [term.labels.index(label) for label in labels]
    return term._replace(value=out.emit("Transpose", [term.value], perm=order), labels=tuple(labels))


def spread(term: Term, labels: Sequence[str], out: Rewriter) -> str:
    """The value with a dimension for every label, of one where it has none."""
    own = arranged(term, [label for label in labels if label in term.labels], out)
    axes = [place for place, label in enumerate(labels) if label not in term.labels]
    return out.emit("Unsqueeze", [own.value], axes=axes) if axes else own.value


def origins_of(one: Term, other: Term) -> Mapping[str, tuple[str, int] | None]:
    """Where the sizes of a product come from."""
    both = {label for label in one.labels if label.isdigit() and label in other.labels}
    return {**one.origins, **other.origins, **dict.fromkeys(both)}
