"""Axes that are computed, as a mask over the dimensions: 1 for those that are meant."""

from __future__ import annotations

from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter


def chosen_axes(axes: str, rank: int, out: Rewriter) -> str:
    """1 for each of `rank` dimensions that is among the axes, 0 for the others."""
    hot = [axes, out.constant(rank, "int64"), out.constant([0, 1], "int64")]
    return out.emit("ReduceSum", [out.emit("OneHot", hot, opset=11)], opset=11, axes=[0], keepdims=0)


def unchosen(chosen: str, out: Rewriter) -> str:
    """Whether each dimension is not among the axes."""
    return out.emit("Equal", [chosen, out.constant([0], "int64")], opset=11)


def without_axes(data: str, chosen: str, out: Rewriter) -> str:
    """The shape of a value without the dimensions that are chosen."""
    return out.emit("Compress", [out.emit("Shape", [data]), unchosen(chosen, out)], opset=11, axis=0)


def require_elements(data: str, axes: str, out: Rewriter) -> None:
    """Refuse data that may be empty, since a 0 in a computed shape copies a size of the input.

    Raises:
        CannotConvert: a dimension is 0 or not known.
    """
    shape = out.shape(data)
    if shape is None or not all(shape):
        raise CannotConvert(
            f"the axes {axes!r} are no constant, and a dimension of {data!r} is 0 or not known",
            remedy="make the axes an initializer that is no graph input",
        )


def count_of(axes: str, out: Rewriter) -> int | None:
    """How many axes there are, if it is known."""
    shape = out.shape(axes)
    return shape[0] if shape else None
