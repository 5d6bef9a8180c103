"""Softmax, LogSoftmax and Hardmax: `axis` names a single dimension since version 13.

Before, the input was flattened to two dimensions at `axis`, and the second was normalized.
"""

from opshift.adapters import CannotConvert, Node, Rewriter, adapter, function_body
from opshift.adapters.emit.shapes import ALLOWZERO_OPSET


@adapter(("Softmax", "LogSoftmax", "Hardmax"), 11, 13)
def flatten_at_axis(node: Node, out: Rewriter) -> None:
    """Flatten the dimensions starting at `axis`, normalize them, and restore the shape."""
    data = node.inputs[0]
    axis = node.attribute("axis", 1)
    rank = out.known_rank(data)
    if axis == -1 or (rank is not None and axis == rank - 1):
        out.replace(node, attributes={**node.attributes, "axis": -1})
        return
    # Reshape could not restore a dimension of size 0, and an empty input needs no normalization.
    if out.default_opset < ALLOWZERO_OPSET and 0 in (out.shape(data) or ()):
        out.replace(node, op_type="Identity", inputs=[data], attributes={})
        return
    shape = out.emit("Shape", [data])
    flat = out.emit("Flatten", [data], axis=axis)
    normalized = out.fresh(node.op_type.lower())
    out.replace(node, inputs=[flat], outputs=[normalized], attributes={**node.attributes, "axis": -1})
    if out.default_opset < ALLOWZERO_OPSET and _copies_empty_dimensions(out.shape(data), axis):
        out.emit("Reshape", [normalized, shape], node.outputs)
    else:
        out.emit("Reshape", [normalized, shape], node.outputs, opset=ALLOWZERO_OPSET, allowzero=1)


def _copies_empty_dimensions(shape: tuple[int | None, ...] | None, axis: int) -> bool:
    """Return whether a Reshape without `allowzero` restores every dimension that may be 0.

    It copies such a dimension from the same position of the flattened data. With axis 1 these are the first
    dimension, and a product that contains the second one.
    """
    if shape is None:
        return False
    return all(dim or (axis == 1 and position < 2) for position, dim in enumerate(shape))


@adapter(("Softmax", "LogSoftmax", "Hardmax"), 13, 11)
def swap_axis_with_last(node: Node, out: Rewriter) -> None:
    """Swap `axis` with the last dimension, where both versions compute the same."""
    data = node.inputs[0]
    axis, rank = node.attribute("axis", -1), out.known_rank(data)
    # Both versions normalize only the last dimension for -1, so the rank is not required.
    if axis == -1 and rank is None:
        out.replace(node, attributes={"axis": -1})
        return
    rank = out.rank(data)
    last, axis = rank - 1, axis + rank if axis < 0 else axis
    if not 0 <= axis <= last:
        raise CannotConvert(
            f"axis {node.attribute('axis', -1)} is out of range for {data!r}, which has {rank} dimensions",
            "node.invalid",
        )
    if axis == last:
        out.replace(node, attributes={"axis": last})
        return
    order = [*range(axis), last, *range(axis + 1, last), axis]
    moved = out.emit("Transpose", [data], perm=order)
    normalized = out.fresh(node.op_type.lower())
    out.replace(node, inputs=[moved], outputs=[normalized], attributes={"axis": last})
    out.emit("Transpose", [normalized], node.outputs, perm=order)


@function_body(("Softmax", "LogSoftmax"), 13)
def expand_softmax(node: Node, out: Rewriter) -> None:
    """Divide each exponential by their sum along `axis`; LogSoftmax subtracts the logarithm of the sum.

    The maximum is subtracted first, which prevents overflow.
    """
    data, axis = node.inputs[0], node.attribute("axis", -1)
    shifted = out.emit("Sub", [data, out.emit("ReduceMax", [data], axes=(axis,), opset=13)])
    exponentials = out.emit("Exp", [shifted])
    total = out.emit("ReduceSum", [exponentials, out.int64([axis])])
    if node.op_type == "Softmax":
        out.emit("Div", [exponentials, total], node.outputs)
    else:
        out.emit("Sub", [shifted, out.emit("Log", [total])], node.outputs)
