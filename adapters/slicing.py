"""Slice: bounds became inputs, and steps came, at 10; axes may be negative from 11 on."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.adapters.computed_axes import MASKS_CAME
from opshift.adapters.computed_slicing import Bound, Cut, pick_by_mask
from opshift.adapters.negative_axes import from_the_front
from opshift.adapters.negative_indices import OPSET, shifted_if_negative
from opshift.adapters.node import Node, Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME

LONGEST = 1 << 16
"""The most indices that are written out as a constant."""


@adapter("Slice", 11, 10)
def axes_of_bounds_count_from_the_front(node: Node, out: Rewriter) -> None:
    """The rank is added to negative `axes`."""
    axes = node.input(3)
    known = out.constant_value(axes)
    if not axes or (known is not None and all(axis >= 0 for axis in known.values)):
        out.become(node)
        return
    if known is None:
        rank = out.emit("Size", [out.emit("Shape", [node.inputs[0]])])
        positive = shifted_if_negative(axes, rank, out.element_type(axes), out)
    else:
        listed = tuple(from_the_front(axis, node.inputs[0], out) for axis in known.values)
        positive = out.tensor(Tensor(known.element_type, known.dims, listed))
    out.become(node, inputs=[*node.inputs[:3], positive, *node.inputs[4:]])


@adapter("Slice", 10, 1)
def bounds_become_attributes(node: Node, out: Rewriter) -> None:
    """Constant bounds with a step of 1 are written out; elsewhere the elements are picked one by one."""
    cuts = _cuts(node, out)
    plain = [cut for cut in cuts if cut.step == 1 and isinstance(cut.start, int) and isinstance(cut.end, int)]
    others = [cut for cut in cuts if cut not in plain]
    data = node.inputs[0]
    indices = [_indices(cut, data, out) for cut in others]
    if out.default_opset < MASKS_CAME and None in indices:
        raise CannotConvert(
            "before 10 its bounds are constant and its steps 1, and before 9 nothing else picks elements",
            remedy="make starts, ends and steps constant, and state the shape of the data",
        )
    if plain or not others:
        data = out.fresh("slice") if others else node.outputs[0]
        axes, starts, ends, _ = zip(*plain, strict=True) if plain else ((),) * 4
        bounds = {"axes": axes, "starts": starts, "ends": ends}
        out.become(node, inputs=node.inputs[:1], outputs=[data], attributes=bounds)
    _pick(data, others, indices, node, out)


def _pick(
    data: str, cuts: list[Cut], indices: list[tuple[int, ...] | None], node: Node, out: Rewriter
) -> None:
    """Gather what is known by index, and mask the rest, one axis after another."""
    for cut, listed in zip(cuts, indices, strict=True):
        outputs: Sequence[str] | int = node.outputs if cut is cuts[-1] else 1
        if listed is None:
            data = pick_by_mask(data, node.inputs[0], cut, outputs, out)
        else:
            data = out.emit("Gather", [data, out.constant(listed, "int64")], outputs, axis=cut.axis)


def _indices(cut: Cut, data: str, out: Rewriter) -> tuple[int, ...] | None:
    """The elements that a cut keeps, where they are known."""
    shape = out.shape(data)
    size = shape[cut.axis] if shape is not None else None
    if size is None or size > LONGEST or isinstance(cut.start, str) or isinstance(cut.end, str):
        return None
    return tuple(range(*slice(cut.start, cut.end, cut.step).indices(size)))


def _cuts(node: Node, out: Rewriter) -> list[Cut]:
    """What happens to each axis.

    Raises:
        CannotConvert: which axes there are, or their steps, is not known.
    """
    starts, ends = node.inputs[1:3]
    if node.input(3):
        axes = out.require_constant(node.input(3), "input axes").values
        axes = tuple(from_the_front(axis, node.inputs[0], out) for axis in axes)
    else:
        axes = tuple(range(_length(starts, out)))
    steps = (1,) * len(axes)
    if node.input(4):
        steps = out.require_constant(node.input(4), "input steps").values
    places = enumerate(zip(axes, steps, strict=True))
    return [Cut(axis, _bound(starts, at, out), _bound(ends, at, out), step) for at, (axis, step) in places]


def _bound(bounds: str, position: int, out: Rewriter) -> Bound:
    """One of the bounds: a number, or the name of an int64 scalar."""
    known = out.constant_value(bounds)
    if known is not None:
        return int(known.values[position])
    bound = out.emit("Gather", [bounds, out.constant(position, "int64")], opset=OPSET, axis=0)
    if out.element_type(bounds) == "int64":
        return bound
    return out.emit("Cast", [bound], opset=OPSET, to=BY_NAME["int64"].number)


def _length(bounds: str, out: Rewriter) -> int:
    shape = out.shape(bounds)
    if shape is None or shape[0] is None:
        raise CannotConvert(
            f"it names no axes, and how many bounds {bounds!r} has is not known",
            remedy=f"state it: add a value_info for {bounds!r}",
        )
    return shape[0]
