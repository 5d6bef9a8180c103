"""Flatten: versions before 9 support floating-point data only."""

from math import prod

from opshift.adapters import Node, Rewriter, adapter
from opshift.adapters.emit.expression import FLOAT_TYPES
from opshift.adapters.emit.shapes import SLICE_END, Dimension, shape_tensor


@adapter("Flatten", 9, 1)
def reshape_non_float_data(node: Node, out: Rewriter) -> None:
    """Replace Flatten of non-float data by Reshape, which supports every type."""
    data, axis = node.inputs[0], node.attribute("axis", 1)
    if out.element_type(data) in FLOAT_TYPES:
        out.replace(node)
        return
    sizes = _product(data, 0, axis, out), _product(data, axis, SLICE_END, out)
    out.replace(node, op_type="Reshape", inputs=[data, shape_tensor(sizes, out)], attributes={}, opset=5)


def _product(data: str, start: int, end: int, out: Rewriter) -> Dimension:
    """Return the product of dimensions `start` to `end - 1`; 1 if there are no such dimensions."""
    shape = out.shape(data)
    dims = (None,) if shape is None and end else (shape or ())[start:end]
    known = [dim for dim in dims if dim is not None]
    if len(known) == len(dims):
        return prod(known)
    part = out.emit("Slice", [out.emit("Shape", [data])], starts=[start], ends=[end])
    return out.emit("ReduceProd", [part], axes=[0], keepdims=1)
