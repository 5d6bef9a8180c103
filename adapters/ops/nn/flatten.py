"""Flatten: versions before 9 support floating-point data only."""

from opshift.adapters import Node, Rewriter, adapter
from opshift.adapters.emit.expression import FLOAT_TYPES
from opshift.adapters.emit.shapes import ALLOWZERO_OPSET, SLICE_END, merge_dimensions

RESHAPE_OPSET = 5
"""First opset in which the shape is an input of Reshape."""


@adapter("Flatten", 9, 1)
def reshape_non_float_data(node: Node, out: Rewriter) -> None:
    """Replace Flatten of non-float data by Reshape, which supports every type."""
    data, axis = node.inputs[0], out.require_rank(node.attribute("axis", 1))
    rank = out.known_rank(data)
    if out.element_type(data) in FLOAT_TYPES:
        out.replace(node)
    elif rank is not None:
        axes = range(rank)  # slices of the shape are short, even if the axis is out of range
        groups = [axes[:axis], axes[axis:]]
        merge_dimensions(data, groups, data, out.for_opset(RESHAPE_OPSET), node.outputs)
    else:
        products = [_product(data, 0, axis, out), _product(data, axis, SLICE_END, out)]
        sizes = out.emit("Concat", products, axis=0)
        out.emit("Reshape", [data, sizes], node.outputs, opset=ALLOWZERO_OPSET, allowzero=1)


def _product(data: str, start: int, end: int, out: Rewriter) -> str:
    """Return the product of dimensions `start` to `end - 1`; 1 if there are no such dimensions."""
    if not end:
        return out.int64([1])
    part = out.emit("Slice", [out.emit("Shape", [data])], starts=[start], ends=[end])
    return out.emit("ReduceProd", [part], axes=[0], keepdims=1)
