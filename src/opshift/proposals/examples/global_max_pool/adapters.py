"""Adapter of GlobalMaxPool: ReduceMax replaces it in opset 29."""

from opshift.adapters.core.adapter_table import adapter
from opshift.adapters.core.rewriter import Rewriter
from opshift.model.errors import CannotConvert
from opshift.model.node import Node

CHANNEL_AXIS = 1


@adapter("GlobalMaxPool", 22, 29)
def replace_with_reduce_max(node: Node, out: Rewriter) -> None:
    """Replace the node with ReduceMax over all axes after the channel axis."""
    spatial = range(CHANNEL_AXIS + 1, out.rank(node.inputs[0]))
    if not spatial:
        reason = "the input has no spatial axes"
        raise CannotConvert(reason, "node.invalid", remedy="use an input of rank 3 or more")
    axes = out.constant(tuple(spatial), "int64")
    out.replace(node, op_type="ReduceMax", inputs=[node.inputs[0], axes], attributes={"keepdims": 1})
