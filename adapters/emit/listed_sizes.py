"""Lists of sizes that are partly known: numbers, axes of the data with the same size, or unknown sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeGuard

from opshift.inference.facts import ListedSize


class AlignedSizes(NamedTuple):
    """Reshape that copies each size known only at run time from its own position.

    Attributes:
        inserted: axes at which the data gets dimensions of 1 before.
        shape: constant shape, with 0 for the copied sizes.
        removed: axes of the result with dimensions of 1, which are removed afterwards.
    """

    inserted: tuple[int, ...]
    shape: tuple[int, ...]
    removed: tuple[int, ...]


def copies_zeros(sizes: Sequence[ListedSize]) -> bool:
    """Return whether a Reshape to these sizes has the same result with `allowzero` and without it.

    Without it, a 0 in the shape copies a dimension of the data. So each element has to be nonzero, or the
    size of that dimension. ONNX forbids a 0 next to -1.
    """
    if not sizes:
        return False
    return -1 in sizes or all(
        position in size if isinstance(size, tuple) else bool(size) for position, size in enumerate(sizes)
    )


def has_one_unknown(sizes: Sequence[ListedSize]) -> bool:
    """Return whether all sizes but one are positive numbers."""
    return sum(not _is_positive(size) for size in sizes) == 1


def align_sizes(sizes: Sequence[ListedSize]) -> AlignedSizes | None:
    """Insert dimensions of 1 such that each size known only at run time has the same position in the data.

    `None` if the order of these sizes differs from that in the data, or one of the others may be 0.
    """
    inserted: list[int] = []
    shape: list[int] = []
    removed: list[int] = []
    start = next_axis = 0
    for size in sizes:
        if _is_positive(size):
            shape.append(size)
            continue
        axis = (
            min((each for each in size if each >= next_axis), default=None)
            if isinstance(size, tuple)
            else None
        )
        if axis is None:
            return None
        given, wanted = axis - next_axis, len(shape) - start
        inserted += range(start + given, start + wanted)
        removed += range(start + wanted, start + given)
        shape += [1] * (given - wanted) + [0]
        start, next_axis = len(shape), axis + 1
    return AlignedSizes(tuple(inserted), tuple(shape), tuple(removed)) if start else None


def _is_positive(size: ListedSize) -> TypeGuard[int]:
    return isinstance(size, int) and size > 0
