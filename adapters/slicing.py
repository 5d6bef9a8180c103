"""Slice: bounds became inputs, and steps came, at 10; axes may be negative from 11 on."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.adapters.casts import cast
from opshift.adapters.computed_slicing import Bound, Cut, pick_by_place
from opshift.adapters.negative_axes import from_the_front
from opshift.adapters.negative_indices import OPSET, shifted_if_negative
from opshift.adapters.node import Node, Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

LONGEST = 1 << 16
"""The most indices that are written out as a constant."""
FAR = 2.0**62
"""Beyond every axis."""


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
    if plain or not others:
        data = out.fresh("slice") if others else node.outputs[0]
        axes, starts, ends, _ = zip(*plain, strict=True) if plain else ((),) * 4
        bounds = {"axes": axes, "starts": starts, "ends": ends}
        out.become(node, inputs=node.inputs[:1], outputs=[data], attributes=bounds)
    _pick(data, others, indices, node, out)


def _pick(
    data: str, cuts: list[Cut], indices: list[tuple[int, ...] | None], node: Node, out: Rewriter
) -> None:
    """Gather what is known by index, and the rest by places that are computed, one axis after another."""
    for cut, listed in zip(cuts, indices, strict=True):
        outputs: Sequence[str] | int = node.outputs if cut is cuts[-1] else 1
        if listed is None:
            data = pick_by_place(data, node.inputs[0], cut, outputs, out)
        else:
            data = out.emit("Gather", [data, out.constant(listed, "int64")], outputs, axis=cut.axis)


def _indices(cut: Cut, data: str, out: Rewriter) -> tuple[int, ...] | None:
    """The elements that a cut keeps, where they are known."""
    shape = out.shape(data)
    size = shape[cut.axis] if shape is not None else None
    if size is None or size > LONGEST or any(isinstance(bound, str) for bound in cut[1:]):
        return None
    _, start, end, step = map(int, cut)
    if step < 0:
        start = max(start, -size)  # Nothing lies before the first element to start from.
    return tuple(range(*slice(start, end, step).indices(size)))


def _cuts(node: Node, out: Rewriter) -> list[Cut]:
    """What happens to each axis.

    Raises:
        CannotConvert: how many axes there are is not known.
    """
    starts, ends, axes, steps = (node.input(position) for position in range(1, 5))
    known = out.constant_value(axes)
    if axes and known is None:
        return _cuts_of_computed_axes(node, out)
    if known is not None:
        places = tuple(from_the_front(axis, node.inputs[0], out) for axis in known.values)
    else:
        places = tuple(range(_length(starts, out)))
    return [
        Cut(axis, _bound(starts, at, out), _bound(ends, at, out), _bound(steps, at, out) if steps else 1)
        for at, axis in enumerate(places)
    ]


def _cuts_of_computed_axes(node: Node, out: Rewriter) -> list[Cut]:
    """Each axis takes the bounds that are meant for it, and all of it stays where there are none."""
    data, starts, ends, axes = node.inputs[:4]
    cuts = []
    for axis in range(out.rank(data)):
        here = out.emit("Equal", [axes, out.constant(axis, out.element_type(axes))], opset=OPSET)
        is_meant = cast(here, "double", out)
        start, end, step = (_chosen(each, is_meant, out) for each in (starts, ends, node.input(4)))
        kept = out.emit("Sub", [out.constant(1.0, "double"), _total(is_meant, out)], opset=OPSET)
        beyond = out.emit("Mul", [kept, out.constant(FAR, "double")], opset=OPSET)
        end, step = (out.emit("Add", pair, opset=OPSET) for pair in ((end, beyond), (step, kept)))
        cuts.append(Cut(axis, start, end, step))
    return cuts


def _chosen(bounds: str, is_meant: str, out: Rewriter) -> str:
    """The one bound that is meant, or 0; steps that are left out are 1."""
    if not bounds:
        return _total(is_meant, out)
    return _total(out.emit("Mul", [cast(bounds, "double", out), is_meant], opset=OPSET), out)


def _total(numbers: str, out: Rewriter) -> str:
    return out.emit("ReduceSum", [numbers], opset=OPSET, axes=[0], keepdims=0)


def _bound(bounds: str, position: int, out: Rewriter) -> Bound:
    """One of the bounds: a number, or the name of a double scalar."""
    known = out.constant_value(bounds)
    if known is not None:
        return int(known.values[position])
    bound = out.emit("Gather", [bounds, out.constant(position, "int64")], opset=OPSET, axis=0)
    return cast(bound, "double", out)


def _length(bounds: str, out: Rewriter) -> int:
    shape = out.shape(bounds)
    if shape is None or shape[0] is None:
        raise CannotConvert(
            f"it names no axes, and how many bounds {bounds!r} has is not known",
            remedy=f"state it: add a value_info for {bounds!r}",
        )
    return shape[0]
