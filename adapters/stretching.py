"""How shapes are stretched before 7: the second input only, unless a value is repeated to a known shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter

Shape = tuple[int | None, ...]
OPSET = 6
"""What helping nodes are written for: the last opset without numpy's broadcasting."""


class Legacy(NamedTuple):
    """How the second input is stretched: the attributes, and the shape to give it first (`None`: its own)."""

    attributes: dict[str, int]
    shape: tuple[int, ...] | None


def legacy(first: Shape | None, second: Shape | None) -> Legacy | None:
    """The attributes `broadcast` and `axis` that stretch the second input to the first's shape.

    Its dimensions, but for ones at either end, have to be a stretch of the first's.
    """
    if second == ():
        return Legacy({"broadcast": 1}, None)
    if first is None or second is None or len(second) > len(first):
        return None
    if first == second and None not in first:
        return Legacy({}, None)
    counts = [i for i, dim in enumerate(second) if dim != 1]
    if not counts:
        return Legacy({"broadcast": 1}, None)
    core = tuple(dim for dim in second[counts[0] : counts[-1] + 1] if dim)  # Reshape takes 0 to mean a copy
    start = len(first) - len(second) + counts[0]
    if len(core) != counts[-1] + 1 - counts[0] or core != first[start : start + len(core)]:
        return None
    axis = {} if start + len(core) == len(first) else {"axis": start}
    return Legacy({"broadcast": 1, **axis}, None if core == second else core)


def common_shape(shapes: Sequence[Shape | None]) -> tuple[int, ...] | None:
    """What numpy's broadcasting makes of shapes that are all known."""
    known = [static for shape in shapes if (static := _static(shape)) is not None]
    if len(known) != len(shapes):
        return None
    rank = max(len(shape) for shape in known)
    padded = [(1,) * (rank - len(shape)) + shape for shape in known]
    return tuple(next((dim for dim in dims if dim != 1), 1) for dims in zip(*padded, strict=True))


def _static(shape: Shape | None) -> tuple[int, ...] | None:
    known = tuple(dim for dim in shape or () if dim is not None)
    return known if shape is not None and len(known) == len(shape) else None


def to_one_shape(names: Sequence[str], out: Rewriter) -> list[str]:
    """The values, repeated to the shape that broadcasting gives them.

    Raises:
        CannotConvert: their shapes are not known.
    """
    shapes = [out.shape(name) for name in names]
    full = common_shape(shapes)
    if full is None:
        raise CannotConvert(
            f"the shapes of {', '.join(map(repr, names))} are not known well enough to tell how they are "
            "stretched",
            remedy="state them: add a value_info for each",
        )
    return [
        repeated(name, _static(shape) or (), full, out) for name, shape in zip(names, shapes, strict=True)
    ]


def repeated(name: str, shape: tuple[int, ...], full: tuple[int, ...], out: Rewriter) -> str:
    """A value of a known shape, repeated to another."""
    if shape == full:
        return name
    ones = (1,) * (len(full) - len(shape)) + shape
    if len(shape) != len(full):
        name = out.emit("Unsqueeze", [name], opset=OPSET, axes=range(len(full) - len(shape)))
    if ones == full:
        return name
    counts = [large // small if small else 1 for large, small in zip(full, ones, strict=True)]
    return out.emit("Tile", [name, out.constant(counts, "int64")], opset=OPSET)
