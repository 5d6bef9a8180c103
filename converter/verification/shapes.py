"""Sizes for the dimensions that a model leaves open: the same for those that have one name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from typing import NamedTuple

Dim = int | str | None
MOST_LAYOUTS = 12


class Sizes(NamedTuple):
    """How large open dimensions are: the first of an input, and the others, each larger by `step`."""

    leading: int
    other: int
    step: int


SIZES = (
    Sizes(2, 3, 1),
    Sizes(2, 3, 0),
    Sizes(3, 3, 0),
    Sizes(1, 1, 0),
    Sizes(2, 8, 0),
    Sizes(1, 64, 0),
    Sizes(1, 224, 0),
)
"""All different; alike, for models that need that and do not say so; larger, for those that shrink them."""
RANKS = (2, 1, 3, 4, 0)
"""For inputs that do not even say how many dimensions they have."""


class Input(NamedTuple):
    """A graph input; `dims` is `None` if the rank is not stated, `element_type` if it is no tensor."""

    name: str
    type: str
    element_type: str | None
    dims: tuple[Dim, ...] | None


Layout = Mapping[str, tuple[int, ...]]
"""A shape for each input."""
_Key = int | str | tuple[str, int]


def layouts(inputs: Sequence[Input], bound: Mapping[str, int]) -> Iterator[Layout]:
    """Shapes for all inputs, in one way after another; `bound` are the names that have a size already."""
    ranks = RANKS if any(each.dims is None for each in inputs) else RANKS[:1]
    ways = (_layout(inputs, bound, sizes, rank) for rank, sizes in product(ranks, SIZES))
    yield from islice(_distinct(ways), MOST_LAYOUTS)


def _distinct(ways: Iterator[Layout]) -> Iterator[Layout]:
    seen: list[Layout] = []
    for each in ways:
        if each not in seen:
            seen.append(each)
            yield each


def _layout(inputs: Sequence[Input], bound: Mapping[str, int], sizes: Sizes, rank: int) -> Layout:
    keys = {each.name: _keys(each, rank) for each in inputs}
    leading = {each[0] for each in keys.values() if each}
    known: dict[_Key, int] = dict(bound.items())
    others = 0
    for key in (key for each in keys.values() for key in each):
        if key in known:
            continue
        if isinstance(key, int):
            known[key] = key
        elif key in leading:
            known[key] = sizes.leading
        else:
            known[key] = sizes.other + others * sizes.step
            others += 1
    return {name: tuple(known[key] for key in each) for name, each in keys.items()}


def _keys(of: Input, rank: int) -> tuple[_Key, ...]:
    """What decides the size of each dimension: its number, its name, or where it is."""
    dims = (None,) * rank if of.dims is None else of.dims
    return tuple((of.name, axis) if dim is None else dim for axis, dim in enumerate(dims))
