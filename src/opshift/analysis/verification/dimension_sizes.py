"""Sizes of dynamic dimensions; dimensions with the same name get the same size."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice, product
from typing import NamedTuple

from opshift.model.types import Dim

MAX_CANDIDATES = 12
"""Limit of attempts with different shapes."""


class SizePattern(NamedTuple):
    """Sizes of the first dimension of each input and of the next one, and the step to each further one."""

    leading: int
    other: int
    step: int


SIZE_PATTERNS = (
    SizePattern(2, 3, 1),
    SizePattern(2, 3, 0),
    SizePattern(3, 3, 0),
    SizePattern(1, 1, 0),
    SizePattern(2, 8, 0),
    SizePattern(1, 64, 0),
    SizePattern(1, 224, 0),
)
"""Different sizes first; then equal sizes, for models that require them without declaring it; then larger
sizes, for models that reduce them."""

CANDIDATE_RANKS = (2, 1, 3, 4, 0)
"""Ranks to try for inputs without a declared rank."""


class ModelInput(NamedTuple):
    """Graph input; `element_type` is `None` if it is not a tensor, `dims` if the rank is not declared."""

    name: str
    type: str
    element_type: str | None
    dims: tuple[Dim, ...] | None


InputShapes = Mapping[str, tuple[int, ...]]
"""Shape of each input."""

_Key = int | str | tuple[str, int]


def candidate_shapes(inputs: Sequence[ModelInput], bound: Mapping[str, int]) -> Iterator[InputShapes]:
    """Yield different shapes of all inputs; `bound` contains the named dimensions with known sizes."""
    ranks = CANDIDATE_RANKS if any(each.dims is None for each in inputs) else CANDIDATE_RANKS[:1]
    layouts = (_layout(inputs, bound, sizes, rank) for rank, sizes in product(ranks, SIZE_PATTERNS))
    for shapes in islice(dict.fromkeys(layouts), MAX_CANDIDATES):
        yield {each.name: shape for each, shape in zip(inputs, shapes, strict=True)}


def _layout(
    inputs: Sequence[ModelInput], bound: Mapping[str, int], sizes: SizePattern, rank: int
) -> tuple[tuple[int, ...], ...]:
    keys = [_dimension_keys(each, rank) for each in inputs]
    leading = {each[0] for each in keys if each}
    assigned: dict[_Key, int] = dict(bound.items())
    other = sizes.other
    for key in chain.from_iterable(keys):
        if key in assigned:
            continue
        if isinstance(key, int):
            assigned[key] = key
        elif key in leading:
            assigned[key] = sizes.leading
        else:
            assigned[key] = other
            other += sizes.step
    return tuple(tuple(assigned[key] for key in each) for each in keys)


def _dimension_keys(graph_input: ModelInput, rank: int) -> tuple[_Key, ...]:
    """Return a key for each dimension: its size, its name, or its position. Equal keys get equal sizes."""
    dims = (None,) * rank if graph_input.dims is None else graph_input.dims
    return tuple((graph_input.name, axis) if dim is None else dim for axis, dim in enumerate(dims))
