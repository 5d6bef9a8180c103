"""Broadcasting before opset 7: attributes for the second input, or Tile for values of known shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter

Shape = tuple[int | None, ...]
OPSET = 6
"""Opset of the emitted helper nodes: the last one without NumPy broadcasting."""


class Legacy(NamedTuple):
    """Attributes that broadcast the second input, and the shape to give it first (`None`: keep its shape)."""

    attributes: dict[str, int]
    shape: tuple[int, ...] | None


def legacy(first: Shape | None, second: Shape | None) -> Legacy | None:
    """Return the attributes `broadcast` and `axis` that broadcast the second input to the first, or `None`.

    Without the ones at either end, its dimensions must be consecutive dimensions of the first.
    """
    if second == ():
        return Legacy({"broadcast": 1}, None)
    if first is None or second is None or len(second) > len(first):
        return None
    if first == second and None not in first:
        return Legacy({}, None)
    non_unit = [i for i, dim in enumerate(second) if dim != 1]
    if not non_unit:
        return Legacy({"broadcast": 1}, None)
    # Refuse unknown dimensions, and dimensions of size 0, which Reshape would copy from its input.
    core = tuple(dim for dim in second[non_unit[0] : non_unit[-1] + 1] if dim)
    start = len(first) - len(second) + non_unit[0]
    if len(core) != non_unit[-1] + 1 - non_unit[0] or core != first[start : start + len(core)]:
        return None
    axis = {} if start + len(core) == len(first) else {"axis": start}
    return Legacy({"broadcast": 1, **axis}, None if core == second else core)


def common_shape(shapes: Sequence[Shape | None]) -> tuple[int, ...] | None:
    """Return the NumPy broadcast of shapes, or `None` if a dimension is unknown."""
    known = [static for shape in shapes if (static := _static_shape(shape)) is not None]
    if len(known) != len(shapes):
        return None
    rank = max(len(shape) for shape in known)
    padded = [(1,) * (rank - len(shape)) + shape for shape in known]
    return tuple(next((dim for dim in dims if dim != 1), 1) for dims in zip(*padded, strict=True))


def _static_shape(shape: Shape | None) -> tuple[int, ...] | None:
    known = tuple(dim for dim in shape or () if dim is not None)
    return known if shape is not None and len(known) == len(shape) else None


def to_one_shape(names: Sequence[str], out: Rewriter) -> list[str]:
    """Tile values to the shape that they broadcast to.

    Raises:
        CannotConvert: a dimension is unknown.
    """
    shapes = [out.shape(name) for name in names]
    common = common_shape(shapes)
    if common is None:
        raise CannotConvert(
            f"the shapes of {', '.join(map(repr, names))} must be fully known to broadcast them "
            "before opset 7",
            remedy="add a value_info for each",
        )
    return [
        repeated(name, _static_shape(shape) or (), common, out)
        for name, shape in zip(names, shapes, strict=True)
    ]


def repeated(name: str, shape: tuple[int, ...], full: tuple[int, ...], out: Rewriter) -> str:
    """Tile a value of a known shape to another shape."""
    if shape == full:
        return name
    ones = (1,) * (len(full) - len(shape)) + shape
    if len(shape) != len(full):
        name = out.emit("Unsqueeze", [name], opset=OPSET, axes=range(len(full) - len(shape)))
    if ones == full:
        return name
    # Avoid a division by zero: a dimension of size 0 needs no repetition.
    counts = [target // size if size else 1 for target, size in zip(full, ones, strict=True)]
    return out.emit("Tile", [name, out.constant(counts, "int64")], opset=OPSET)
