"""Computed axes, as a mask over the dimensions."""

from __future__ import annotations

from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter


def chosen_axes(axes: str, rank: int, out: Rewriter) -> str:
    """Emit how many times each of `rank` dimensions occurs in the axes, a 1-D int64 tensor."""
    one_hot_inputs = [axes, out.constant(rank, "int64"), out.constant([0, 1], "int64")]
    # OneHot accepts negative indices since opset 11, so negative axes need no arithmetic.
    return out.emit(
        "ReduceSum", [out.emit("OneHot", one_hot_inputs, opset=11)], opset=11, axes=[0], keepdims=0
    )


def unchosen(chosen: str, out: Rewriter) -> str:
    """Emit a boolean mask of the dimensions that do not occur in the axes."""
    return out.emit("Equal", [chosen, out.constant([0], "int64")], opset=11)


def without_axes(data: str, chosen: str, out: Rewriter) -> str:
    """Emit the shape of a value without the dimensions in the mask."""
    return out.emit("Compress", [out.emit("Shape", [data]), unchosen(chosen, out)], opset=11, axis=0)


def require_elements(data: str, axes: str, out: Rewriter) -> None:
    """Refuse data that may be empty, because Reshape reads a 0 in a shape as a copy of the input's dimension.

    Raises:
        CannotConvert: a dimension is 0 or unknown.
    """
    shape = out.shape(data)
    if shape is None or not all(shape):
        raise CannotConvert(
            f"the axes {axes!r} are not constant, and a dimension of {data!r} is 0 or unknown",
            remedy="make the axes an initializer that is not a graph input",
        )


def count_of(axes: str, out: Rewriter) -> int | None:
    """Return the number of axes, or `None` if it is unknown."""
    shape = out.shape(axes)
    return shape[0] if shape else None
