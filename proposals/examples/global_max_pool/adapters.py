"""GlobalMaxPool: ReduceMax takes its place with 29."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

CHANNEL = 1


@adapter("GlobalMaxPool", 22, 29)
def pooling_is_a_reduction(node: Node, out: Rewriter) -> None:
    """Over all axes behind the channel; without any of them there is nothing to reduce."""
    spatial = range(CHANNEL + 1, out.rank(node.inputs[0]))
    if not spatial:
        raise CannotConvert("there is no spatial axis", remedy="give the pool an input of rank 3 or more")
    axes = out.constant(tuple(spatial), "int64")
    out.become(node, op_type="ReduceMax", inputs=[node.inputs[0], axes], attributes={"keepdims": 1})
