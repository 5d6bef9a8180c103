"""Slice: bounds as inputs and steps (opset 10), and negative axes (opset 11)."""

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
"""Largest dimension for which indices are emitted as a constant; for larger ones they are computed."""
FAR = 2.0**62
"""An end beyond every dimension, which selects all elements."""


@adapter("Slice", 11, 10)
def axes_of_bounds_count_from_the_front(node: Node, out: Rewriter) -> None:
    """Add the rank to negative `axes`."""
    axes = node.input(3)
    known = out.constant_value(axes)
    if not axes or (known is not None and all(axis >= 0 for axis in known.values)):
        out.become(node)
        return
    if known is None:
        rank = out.emit("Size", [out.emit("Shape", [node.inputs[0]])])
        nonnegative = shifted_if_negative(axes, rank, out.element_type(axes), out)
    else:
        values = tuple(from_the_front(axis, node.inputs[0], out) for axis in known.values)
        nonnegative = out.tensor(Tensor(known.element_type, known.dims, values))
    out.become(node, inputs=[*node.inputs[:3], nonnegative, *node.inputs[4:]])


@adapter("Slice", 10, 1)
def bounds_become_attributes(node: Node, out: Rewriter) -> None:
    """Move constant bounds with a step of 1 to attributes; for all other axes, gather the elements."""
    cuts = _axis_slices(node, out)
    plain = [cut for cut in cuts if cut.step == 1 and isinstance(cut.start, int) and isinstance(cut.end, int)]
    others = [cut for cut in cuts if cut not in plain]
    data = node.inputs[0]
    # Read before the Slice is emitted, because the shape of its output is unknown.
    indices = [_known_indices(cut, data, out) for cut in others]
    if plain or not others:
        data = out.fresh("slice") if others else node.outputs[0]
        axes, starts, ends, _ = zip(*plain, strict=True) if plain else ((),) * 4
        bounds = {"axes": axes, "starts": starts, "ends": ends}
        out.become(node, inputs=node.inputs[:1], outputs=[data], attributes=bounds)
    _gather_slices(data, others, indices, node, out)


def _gather_slices(
    data: str, cuts: list[Cut], indices: list[tuple[int, ...] | None], node: Node, out: Rewriter
) -> None:
    """Emit one Gather per axis, with constant indices where they are known and computed ones elsewhere."""
    for cut, known in zip(cuts, indices, strict=True):
        outputs: Sequence[str] | int = node.outputs if cut is cuts[-1] else 1
        if known is None:
            data = pick_by_place(data, node.inputs[0], cut, outputs, out)
        else:
            data = out.emit("Gather", [data, out.constant(known, "int64")], outputs, axis=cut.axis)


def _known_indices(cut: Cut, data: str, out: Rewriter) -> tuple[int, ...] | None:
    """Return the indices that an axis slice selects, or `None` if they are unknown or too many."""
    shape = out.shape(data)
    size = shape[cut.axis] if shape is not None else None
    if size is None or size > LONGEST or any(isinstance(bound, str) for bound in cut[1:]):
        return None
    _, start, end, step = map(int, cut)
    if step < 0:
        # ONNX clamps the start of a backward slice to the first element; a Python slice would be empty.
        start = max(start, -size)
    return tuple(range(*slice(start, end, step).indices(size)))


def _axis_slices(node: Node, out: Rewriter) -> list[Cut]:
    """Return the slice of each axis.

    Raises:
        CannotConvert: The node has no axes input, and the number of bounds is unknown; or the rank of the
            data is needed and unknown.
    """
    starts, ends, axes, steps = (node.input(position) for position in range(1, 5))
    known = out.constant_value(axes)
    if axes and known is None:
        return _slices_of_computed_axes(node, out)
    if known is not None:
        numbers = tuple(from_the_front(axis, node.inputs[0], out) for axis in known.values)
    else:
        numbers = tuple(range(_bound_count(starts, out)))
    return [
        Cut(
            axis,
            _bound(starts, position, out),
            _bound(ends, position, out),
            _bound(steps, position, out) if steps else 1,
        )
        for position, axis in enumerate(numbers)
    ]


def _slices_of_computed_axes(node: Node, out: Rewriter) -> list[Cut]:
    """Return a slice for every axis of the data: its bounds if `axes` contains it, else all elements."""
    data, starts, ends, axes = node.inputs[:4]
    cuts = []
    for axis in range(out.rank(data)):
        is_equal = out.emit("Equal", [axes, out.constant(axis, out.element_type(axes))], opset=OPSET)
        mask = cast(is_equal, "double", out)
        start, end, step = (_masked_bound(each, mask, out) for each in (starts, ends, node.input(4)))
        # 1 for an axis that is not sliced: its start is 0, its end becomes BEYOND_ANY_SIZE and its step 1.
        is_whole = out.emit("Sub", [out.constant(1.0, "double"), _sum(mask, out)], opset=OPSET)
        far_end = out.emit("Mul", [is_whole, out.constant(FAR, "double")], opset=OPSET)
        end, step = (out.emit("Add", pair, opset=OPSET) for pair in ((end, far_end), (step, is_whole)))
        cuts.append(Cut(axis, start, end, step))
    return cuts


def _masked_bound(bounds: str, mask: str, out: Rewriter) -> str:
    """Return the bound that a mask of ones and zeros selects, or 0; omitted steps are 1."""
    if not bounds:
        return _sum(mask, out)
    return _sum(out.emit("Mul", [cast(bounds, "double", out), mask], opset=OPSET), out)


def _sum(numbers: str, out: Rewriter) -> str:
    return out.emit("ReduceSum", [numbers], opset=OPSET, axes=[0], keepdims=0)


def _bound(bounds: str, position: int, out: Rewriter) -> Bound:
    """Return one of the bounds: a number if it is constant, else the name of a double scalar."""
    known = out.constant_value(bounds)
    if known is not None:
        return int(known.values[position])
    bound = out.emit("Gather", [bounds, out.constant(position, "int64")], opset=OPSET, axis=0)
    return cast(bound, "double", out)


def _bound_count(bounds: str, out: Rewriter) -> int:
    shape = out.shape(bounds)
    if shape is None or shape[0] is None:
        raise CannotConvert(
            f"it has no axes input, and the length of {bounds!r} is unknown",
            remedy=f"add a value_info with the shape of {bounds!r}",
        )
    return shape[0]
