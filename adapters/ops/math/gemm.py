"""Gemm: `C` is optional since version 11, and broadcasts without an attribute since version 7."""

from opshift.adapters import Node, Rewriter, UnknownShape, adapter, require_supported_types
from opshift.adapters.emit.shapes import reshape


@adapter("Gemm", 11, 9)
def add_zero_addend(node: Node, out: Rewriter) -> None:
    """Add a `C` of 0 if it is absent."""
    if node.input(2):
        out.replace(node)
        return
    zero = out.constant([0], out.element_type(node.inputs[0]))
    out.replace(node, inputs=(*node.inputs[:2], zero))


@adapter("Gemm", 7, 6)
def add_broadcast_attribute(node: Node, out: Rewriter) -> None:
    """Set `broadcast` for a scalar or row `C`; add a column by separate nodes.

    Before version 7 `broadcast` expands scalars and rows only.
    """
    require_supported_types(node, out)
    *factors, addend = node.inputs
    shape = out.shape(addend)
    if shape is None or (len(shape) > 1 and None in shape and 1 not in shape):
        reason = f"the shape of {addend!r} is unknown, and it decides whether to broadcast"
        raise UnknownShape(reason, addend)
    if len(shape) < 2:
        out.replace(node, attributes={**node.attributes, "broadcast": 1})
    elif shape[0] == 1:
        row = reshape(addend, (-1,), out)
        out.replace(node, inputs=[*factors, row], attributes={**node.attributes, "broadcast": 1})
    elif shape[1] == 1:
        _add_column(node, out)
    else:
        out.replace(node)


def _add_column(node: Node, out: Rewriter) -> None:
    """Emit a Gemm with a `C` of 0, and add the scaled column to its result."""
    element_type = out.element_type(node.inputs[0])
    product = out.fresh("gemm")
    inputs = [*node.inputs[:2], out.constant([0], element_type)]
    out.replace(node, inputs=inputs, outputs=[product], attributes={**node.attributes, "broadcast": 1})
    scale = out.constant(node.attribute("beta", 1.0), element_type)
    column = out.emit("Mul", [node.inputs[2], scale], opset=7)
    out.emit("Add", [product, column], node.outputs, opset=7)
