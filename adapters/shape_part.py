"""Shape: the attributes `start` and `end`, which select a part of the shape (opset 15)."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import TO_THE_LAST
from opshift.adapters.table import adapter


@adapter("Shape", 15, 13)
def part_is_cut_out(node: Node, out: Rewriter) -> None:
    """Emit the whole shape and a Slice from `start` to `end`."""
    rank = out.known_rank(node.inputs[0])
    start, end = (_nonnegative_bound(node.attribute(name), rank) for name in ("start", "end"))
    if not start and end in (None, rank):
        out.become(node, attributes={})
        return
    whole = out.fresh("shape")
    out.become(node, outputs=[whole], attributes={})
    # With an unknown rank, Slice resolves negative and large bounds at run time as Shape does.
    bounds = [out.constant([bound], "int64") for bound in (start or 0, TO_THE_LAST if end is None else end)]
    out.emit("Slice", [whole, *bounds, out.constant([0], "int64")], node.outputs)


def _nonnegative_bound(bound: int | None, rank: int | None) -> int | None:
    """Return the bound clamped to the range 0 to `rank`, or unchanged if the rank is unknown."""
    if bound is None or rank is None:
        return bound
    return min(max(bound + rank if bound < 0 else bound, 0), rank)
