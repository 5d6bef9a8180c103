"""What an adapter raises when a node cannot be expressed in the other version."""

from __future__ import annotations

from opshift.registry.errors import OpshiftError


class CannotConvert(OpshiftError):
    """This node has no exact form in the version it is asked for.

    The reason says which fact of the node stands in the way; the remedy what its reader can change.
    """
