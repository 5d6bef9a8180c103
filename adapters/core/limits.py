"""Limits of what the conversion of one node may add: declared sizes are hostile until they are checked."""

from collections.abc import Iterable
from math import prod
from typing import Protocol

from opshift.model.errors import CannotConvert
from opshift.registry.steps import Allow

MAX_NODES = 2_000
"""Maximum number of nodes that replace one node."""

MAX_OUTPUTS = 1 << 14
"""Maximum number of outputs of an emitted node."""

MAX_ELEMENTS = 1 << 21
"""Maximum number of elements of a constant: 16 MiB of int64."""

MAX_CONSTANT_BYTES = 16 << 20
"""Maximum number of bytes of the constants that replace one node."""

LARGE_FACTOR = 8
"""Factor of all limits if the caller allows `large`; it bounds memory and time."""


def positions_of(sizes: Iterable[int]) -> int:
    """Return the number of positions to enumerate for some sizes, where an empty one counts as 1."""
    return prod(max(size, 1) for size in sizes)


class _Allowing(Protocol):
    def allow(self, kind: Allow, reason: str) -> bool: ...


def require_at_most(count: int, limit: int, added: str, allowing: _Allowing) -> None:
    """Refuse to add more than a limit; up to `LARGE_FACTOR` times as many if the caller allows `large`.

    Args:
        count: what the conversion of one node would add.
        limit: the maximum.
        added: the unit of both, for the message.
        allowing: the allowances of the caller.

    Raises:
        CannotConvert: the count exceeds the limit.
    """
    if count <= limit:
        return
    reason = f"the conversion of this node would add {count:,} {added}, more than {limit:,}"
    if count > limit * LARGE_FACTOR:
        remedy = "reduce the sizes in the model, or convert to a newer opset"
        raise CannotConvert(reason, "limit.exceeded", remedy=remedy)
    if not allowing.allow("large", reason):
        remedy = "pass --allow large (allow= in Python), reduce the sizes, or convert to a newer opset"
        raise CannotConvert(reason, "limit.exceeded", remedy=remedy)
