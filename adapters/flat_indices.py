"""Emit flat indices: row-major positions computed from an index for each dimension."""

from __future__ import annotations

from math import prod

from opshift.adapters.negative_indices import OPSET, shifted_if_negative, size_of
from opshift.adapters.node import Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.registry.element_types import BY_NAME

LONGEST = 1 << 16
"""Maximum number of indices in a constant; a larger one would bloat the model."""
ONE = Tensor("int64", (1,), (1,))


def depth_of(indices: str, out: Rewriter) -> int:
    """Return the length of the index tuples of GatherND and ScatterND: the last dimension of `indices`.

    Raises:
        CannotConvert: the dimension is unknown.
    """
    shape = out.shape(indices)
    if not shape or shape[-1] is None:
        raise CannotConvert(
            f"the last dimension of the index tuples {indices!r} is unknown",
            remedy=f"declare it: add a value_info for {indices!r}",
        )
    return shape[-1]


def flat_tuples(data: str, indices: str, out: Rewriter) -> str:
    """Emit the row of each index tuple, in data with the indexed dimensions flattened into rows."""
    columns = []
    for axis in range(depth_of(indices, out)):
        column = out.emit("Gather", [indices, out.constant(axis, "int64")], opset=OPSET, axis=-1)
        columns.append(shifted_if_negative(column, size_of(data, axis, out), "int64", out))
    return _row_major(data, columns, out)


def flat_elements(data: str, indices: str, axis: int, out: Rewriter) -> str:
    """Emit flat positions for indices along one axis, as in GatherElements and ScatterElements.

    The index in every other dimension is the element's own position in `indices`.

    Returns:
        The name of a 1-D int64 tensor with an element for each element of `indices`.
    """
    flattened = out.emit("Reshape", [indices, out.constant([-1], "int64")], opset=OPSET)
    if out.element_type(indices) != "int64":
        flattened = out.emit("Cast", [flattened], opset=OPSET, to=BY_NAME["int64"].number)
    columns = _element_positions(indices, out.rank(data), out)
    columns[axis] = shifted_if_negative(flattened, size_of(data, axis, out), "int64", out)
    return _row_major(data, columns, out)


def _element_positions(indices: str, rank: int, out: Rewriter) -> list[str]:
    """Emit for each dimension the position of every element of `indices` along it, in row-major order."""
    shape = out.shape(indices)
    known = [size for size in shape or () if size is not None]
    if len(known) == rank and prod(known) <= LONGEST:
        return [out.constant(column, "int64") for column in _constant_positions(known)]
    # NonZero of ones lists the positions of all elements, one row for each dimension.
    ones = out.emit("ConstantOfShape", [out.emit("Shape", [indices], opset=OPSET)], opset=OPSET, value=ONE)
    positions = out.emit("NonZero", [ones], opset=OPSET)
    rows = (out.constant(axis, "int64") for axis in range(rank))
    return [out.emit("Gather", [positions, row], opset=OPSET, axis=0) for row in rows]


def _constant_positions(sizes: list[int]) -> list[tuple[int, ...]]:
    strides = [prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    pairs = list(zip(strides, sizes, strict=True))
    return [tuple(position // stride % size for position in range(prod(sizes))) for stride, size in pairs]


def _row_major(data: str, columns: list[str], out: Rewriter) -> str:
    """Emit the row-major position for indices into the leading dimensions of `data`."""
    flat = columns[0]
    for axis, column in enumerate(columns[1:], 1):
        scaled = out.emit("Mul", [flat, size_of(data, axis, out)], opset=OPSET)
        flat = out.emit("Add", [scaled, column], opset=OPSET)
    return flat
