"""The error for nodes that cannot be converted."""

from __future__ import annotations

from opshift.registry.errors import OpshiftError


class CannotConvert(OpshiftError):
    """A node cannot be converted exactly to the requested operator version.

    The reason names the property of the node that prevents it, and the remedy a change to the model that
    helps.
    """
