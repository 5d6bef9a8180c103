"""Positions of elements in a tensor laid out flat, from their indices in its dimensions."""

from __future__ import annotations

from math import prod

from opshift.adapters.negative_indices import OPSET, shifted_if_negative, size_of
from opshift.adapters.node import Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.registry.element_types import BY_NAME

LONGEST = 1 << 16
"""The most places that are written out as a constant."""
ONE = Tensor("int64", (1,), (1,))


def depth_of(indices: str, out: Rewriter) -> int:
    """How many dimensions each index tuple goes into: the size of the last dimension of the tuples.

    Raises:
        CannotConvert: it is not known.
    """
    shape = out.shape(indices)
    if not shape or shape[-1] is None:
        raise CannotConvert(
            f"how long the index tuples {indices!r} are is not known",
            remedy=f"state it: add a value_info for {indices!r}",
        )
    return shape[-1]


def flat_tuples(data: str, indices: str, out: Rewriter) -> str:
    """The position of the row that each index tuple names, of data flattened to rows."""
    columns = []
    for axis in range(depth_of(indices, out)):
        column = out.emit("Gather", [indices, out.constant(axis, "int64")], opset=OPSET, axis=-1)
        columns.append(shifted_if_negative(column, size_of(data, axis, out), "int64", out))
    return _flat(data, columns, out)


def flat_elements(data: str, indices: str, axis: int, out: Rewriter) -> str:
    """The positions of elements whose index is given for one axis, and is their own place for the others."""
    given = out.emit("Reshape", [indices, out.constant([-1], "int64")], opset=OPSET)
    if out.element_type(indices) != "int64":
        given = out.emit("Cast", [given], opset=OPSET, to=BY_NAME["int64"].number)
    columns = _places(indices, out.rank(data), out)
    columns[axis] = shifted_if_negative(given, size_of(data, axis, out), "int64", out)
    return _flat(data, columns, out)


def _places(indices: str, rank: int, out: Rewriter) -> list[str]:
    """For each dimension the place of every element in it, in row-major order."""
    shape = out.shape(indices)
    known = [size for size in shape or () if size is not None]
    if len(known) == rank and prod(known) <= LONGEST:
        return [out.constant(column, "int64") for column in _columns(known)]
    ones = out.emit("ConstantOfShape", [out.emit("Shape", [indices], opset=OPSET)], opset=OPSET, value=ONE)
    places = out.emit("NonZero", [ones], opset=OPSET)
    rows = (out.constant(each, "int64") for each in range(rank))
    return [out.emit("Gather", [places, row], opset=OPSET, axis=0) for row in rows]


def _columns(sizes: list[int]) -> list[tuple[int, ...]]:
    strides = [prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    pairs = list(zip(strides, sizes, strict=True))
    return [tuple(place // stride % size for place in range(prod(sizes))) for stride, size in pairs]


def _flat(data: str, columns: list[str], out: Rewriter) -> str:
    """One number for the indices into the first dimensions, the last of them running fastest."""
    flat = columns[0]
    for axis, column in enumerate(columns[1:], 1):
        above = out.emit("Mul", [flat, size_of(data, axis, out)], opset=OPSET)
        flat = out.emit("Add", [above, column], opset=OPSET)
    return flat
