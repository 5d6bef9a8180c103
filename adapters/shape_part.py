"""Shape: `start` and `end` pick a part of the shape from 15 on; before, the whole shape came out."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import TO_THE_LAST
from opshift.adapters.table import adapter


@adapter("Shape", 15, 13)
def part_is_cut_out(node: Node, out: Rewriter) -> None:
    """The whole shape, and a Slice of it, which counts from the back and clamps as `start` and `end` did."""
    rank = out.known_rank(node.inputs[0])
    start, end = (_known(node.attribute(name), rank) for name in ("start", "end"))
    if not start and end in (None, rank):
        out.become(node, attributes={})
        return
    whole = out.fresh("shape")
    out.become(node, outputs=[whole], attributes={})
    bounds = [out.constant([bound], "int64") for bound in (start or 0, TO_THE_LAST if end is None else end)]
    out.emit("Slice", [whole, *bounds, out.constant([0], "int64")], node.outputs)


def _known(bound: int | None, rank: int | None) -> int | None:
    """A bound from the front and within the rank, if there is a bound and the rank is known."""
    if bound is None or rank is None:
        return bound
    return min(max(bound + rank if bound < 0 else bound, 0), rank)
