"""ArgMax and ArgMin: `select_last_index` exists since opset 12."""

from opshift.adapters import Node, Rewriter, adapter
from opshift.adapters.emit.indices import dimension_scalar

REVERSE_SLICE_END = -(2**31)
"""End of a slice with step -1 through a whole dimension."""


@adapter(("ArgMax", "ArgMin"), 12, 11)
def replace_select_last_index(node: Node, out: Rewriter) -> None:
    """Select the first index in reversed data, and count it from the end."""
    attributes = node.without("select_last_index")
    if not node.attribute("select_last_index", 0):
        out.replace(node, attributes=attributes)
        return
    data, axis = node.inputs[0], node.attribute("axis", 0)
    bounds = [out.int64([each]) for each in (-1, REVERSE_SLICE_END, axis, -1)]
    reversed_data = out.emit("Slice", [data, *bounds])
    index = out.fresh(node.op_type.lower())
    out.replace(node, inputs=[reversed_data], outputs=[index], attributes=attributes)
    last = out.emit("Sub", [dimension_scalar(data, axis, out), out.int64(1)])
    out.emit("Sub", [last, index], node.outputs)
