"""Where a model uses what an IR version added, and what stands in the way of going without."""

from __future__ import annotations

from typing import NamedTuple

from opshift.adapters.rewriter import Concession


class Use(NamedTuple):
    """One use of a feature.

    Attributes:
        feature: its name in `ir_versions.yaml`, or that of an element type.
        place: the graph or function, and what in it.
        obstacle: why it cannot be rewritten for an older IR version; empty if it can.
        remedy: what would help.
        concession: what allows to drop it.
    """

    feature: str
    place: str
    obstacle: str = ""
    remedy: str = ""
    concession: Concession | None = None
