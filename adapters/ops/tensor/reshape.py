"""Adapters of Reshape, Squeeze, Unsqueeze, Shape, Identity and Tile.

`axes` is an input since opset 13, `allowzero` exists since 14, `start` and `end` of Shape since 15, and
Identity of sequences since 14. In opset 6, the input `repeats` of Tile, one count for each dimension,
replaces `tiles` and `axis`.

A `ListedSize` is a size in a shape input: a number, the axes of the data with this size, or unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple, TypeGuard

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, UnknownShape, adapter
from opshift.adapters.emit.expression import IEEE_FLOAT_TYPES
from opshift.adapters.emit.indices import axis_count, count_axes, kept_axes_mask, shape_without_axes
from opshift.adapters.emit.shapes import ALLOWZERO_OPSET, SLICE_END, reshape
from opshift.inference.facts import ListedSize
from opshift.model.node import Dims

SIGN_OPSET = 9
"""Opset that introduced Sign."""

EXPAND_OPSET = 8
"""Opset that introduced Expand."""


class AlignedSizes(NamedTuple):
    """Arguments of Unsqueeze, Reshape and Squeeze that together replace a Reshape with `allowzero`.

    Attributes:
        inserted: axes of the Unsqueeze.
        shape: constant shape of the Reshape; 0 copies a size of the data that is known only at run time.
        removed: axes of the Squeeze.
    """

    inserted: tuple[int, ...]
    shape: tuple[int, ...]
    removed: tuple[int, ...]


def copies_zeros(sizes: Sequence[ListedSize], are_nonzero: Sequence[bool] = ()) -> bool:
    """Return whether a Reshape to these sizes is known to have one result with and without `allowzero`.

    Without `allowzero`, a 0 in the shape copies the dimension of the data at the same position. So each size
    must be nonzero (for unknown sizes, see `are_nonzero`), or equal to that dimension. With `allowzero`, ONNX
    forbids 0 and -1 in the same shape.
    """
    if not sizes:
        return False
    return -1 in sizes or all(
        position in size if isinstance(size, tuple) else bool(size) or is_nonzero
        for position, (size, is_nonzero) in enumerate(zip_longest(sizes, are_nonzero))
    )


def has_one_unknown(sizes: Sequence[ListedSize]) -> bool:
    """Return whether all sizes but one are positive numbers."""
    return sum(not _is_positive(size) for size in sizes) == 1


def align_sizes(sizes: Sequence[ListedSize]) -> AlignedSizes | None:
    """Align sizes known only at run time with the data, so that a 0 in a constant shape can copy them.

    Return `None` if no size is copied, if copied sizes have a different order in the data, or if a size that
    is not copied is unknown or not positive.
    """
    inserted: list[int] = []
    shape: list[int] = []
    removed: list[int] = []
    start = next_axis = 0
    for size in sizes:
        if _is_positive(size):
            shape.append(size)
            continue
        axis = (
            min((each for each in size if each >= next_axis), default=None)
            if isinstance(size, tuple)
            else None
        )
        if axis is None:
            return None
        given, wanted = axis - next_axis, len(shape) - start
        inserted += range(start + given, start + wanted)
        removed += range(start + wanted, start + given)
        shape += [1] * (given - wanted) + [0]
        start, next_axis = len(shape), axis + 1
    return AlignedSizes(tuple(inserted), tuple(shape), tuple(removed)) if start else None


def _is_positive(size: ListedSize) -> TypeGuard[int]:
    return isinstance(size, int) and size > 0


@adapter("Identity", 14, 13)
def insert_and_erase_element(node: Node, out: Rewriter) -> None:
    """Copy a sequence: append an empty tensor, and erase this tensor; keep Identity of a tensor."""
    known_type = out.known_element_type(node.inputs[0]) or ""
    if not known_type.startswith("seq("):
        out.replace(node)
        return
    element_type = known_type.removeprefix("seq(tensor(").removesuffix("))")
    empty = out.tensor(Tensor(element_type, (0,), ()))
    # Without a position, SequenceInsert appends and SequenceErase removes the last element.
    out.emit("SequenceErase", [out.emit("SequenceInsert", [node.inputs[0], empty])], node.outputs)


@adapter("Shape", 15, 13)
def slice_whole_shape(node: Node, out: Rewriter) -> None:
    """Emit the whole shape and a Slice from `start` to `end`."""
    start, end = node.attribute("start"), node.attribute("end")
    is_whole = not start and end is None
    if not is_whole:
        rank = out.known_rank(node.inputs[0])
        start, end = _nonnegative_bound(start, rank), _nonnegative_bound(end, rank)
        is_whole = not start and end in (None, rank)
    if is_whole:
        out.replace(node, attributes={})
        return
    whole = out.fresh("shape")
    out.replace(node, outputs=[whole], attributes={})
    # If the rank is unknown, Slice resolves negative and large bounds at run time, as Shape does.
    bounds = [out.int64([bound]) for bound in (start or 0, SLICE_END if end is None else end)]
    out.emit("Slice", [whole, *bounds, out.int64([0])], node.outputs)


def _nonnegative_bound(bound: int | None, rank: int | None) -> int | None:
    """Return a bound of Shape as a number from 0 to `rank`; unchanged if bound or rank are unknown."""
    if bound is None or rank is None:
        return bound
    return min(max(bound + rank if bound < 0 else bound, 0), rank)


@adapter("Reshape", 14, 13)
def remove_allowzero(node: Node, out: Rewriter) -> None:
    """Drop `allowzero` if a constant shape has no 0, else emit an empty constant; rewrite computed shapes."""
    attributes = node.without("allowzero")
    data, shape = node.inputs
    # Before version 14, onnx infers no shape from a computed `shape`, and onnxruntime fuses a normalization
    # or a bias only if the last dimension is known.
    out.workspace.declare_shape(node.outputs[0])
    if not node.attribute("allowzero", 0):
        out.replace(node, attributes=attributes)
        return
    known = out.constant_value(shape)
    if known is None:
        _reshape_to_computed_shape(node, out)
    elif all(known.values):
        out.replace(node, attributes=attributes)
    else:
        # The constant shape contains a 0, so the result is empty for any data.
        sizes = tuple(max(size, 0) for size in known.values)
        empty = out.tensor(Tensor(out.element_type(data), sizes, ()))
        out.replace(node, op_type="Identity", inputs=[empty], attributes={})


def _reshape_to_computed_shape(node: Node, out: Rewriter) -> None:
    """Drop `allowzero` if that is exact or allowed; otherwise also change the shape or the data."""
    data, shape = node.inputs
    attributes, sizes = node.without("allowzero"), out.listed_sizes(data, shape) or ()
    reason = f"{data!r} is assumed not to be empty, so that {shape!r} contains no 0"
    aligned = align_sizes(sizes)
    if copies_zeros(sizes) or _has_elements(data, out):
        out.replace(node, attributes=attributes)
    elif has_one_unknown(sizes):
        # All other sizes are positive, so Reshape can infer the unknown size for -1, even if it is 0.
        known = [size if isinstance(size, int) and size > 0 else -1 for size in sizes]
        out.replace(node, inputs=[data, out.int64(known)], attributes=attributes)
    elif _has_no_other_zero(shape, sizes, out):
        out.replace(node, attributes=attributes)
    elif aligned is not None:
        inserted = out.emit("Unsqueeze", [data, out.int64(aligned.inserted)]) if aligned.inserted else data
        moved = node.outputs if not aligned.removed else [out.fresh("aligned")]
        out.replace(node, inputs=[inserted, out.int64(aligned.shape)], outputs=moved, attributes=attributes)
        if aligned.removed:
            out.emit("Squeeze", [moved[0], out.int64(aligned.removed)], node.outputs)
    elif out.workspace.allow("assume-nonempty", reason):
        out.replace(node, attributes=attributes)
    else:
        _reshape_empty_or_not(node, sizes, out)


def _has_elements(data: str, out: Rewriter) -> bool:
    """Return whether data is known to have elements, so that a valid shape contains no 0."""
    shape = out.known_shape(data)
    return shape is not None and all(shape)


def _has_no_other_zero(shape: str, sizes: Sequence[ListedSize], out: Rewriter) -> bool:
    """Return whether unknown sizes differ from 0 in every run, and all others are not 0 or copied by 0."""
    are_nonzero = None if sizes and None not in sizes else out.nonzero_elements(shape)
    return bool(are_nonzero) and copies_zeros(sizes or [None] * len(are_nonzero or ()), are_nonzero or ())


def _reshape_empty_or_not(node: Node, sizes: Sequence[ListedSize], out: Rewriter) -> None:
    """Expand the data so that a Reshape without `allowzero` copies a 0 for each 0 in the shape.

    Empty data gets a dimension of 0 at these positions. Other data gets dimensions of 1, without effect.
    """
    data, shape = node.inputs
    # `signs` has 0 for each 0 of the shape, and 1 for all other sizes.
    if out.default_opset >= SIGN_OPSET and out.is_nonnegative(shape):
        signs = out.emit("Sign", [shape], opset=SIGN_OPSET)
    else:
        # No cast to bool and back: onnx would infer the original sizes, not the signs.
        is_zero = out.emit("Equal", [shape, out.int64([0])])
        signs = out.cast(out.emit("Not", [is_zero]), "int64")
    rank, length = out.known_rank(data), out.known_dimension(shape, 0)
    if length and (out.default_opset < EXPAND_OPSET or rank == length):
        if rank != length:
            data = reshape(data, [*[1] * (out.require_rank(length) - 1), -1], out)
        data = out.emit("Tile", [data, signs])
    else:
        if not _broadcasts_to_signs(out.shape(data), sizes):
            # If the shape has no 0, n elements expand to (1, ..., 1, n); 0 elements expand to any `signs`.
            data = data if rank == 1 else reshape(data, (-1,), out)
        data = out.emit("Expand", [data, signs])
    out.emit("Reshape", [data, shape], node.outputs)


def _broadcasts_to_signs(dims: Dims, sizes: Sequence[ListedSize]) -> bool:
    """Return whether data with these dimensions is known to broadcast to the signs of `sizes`.

    Where a sign is 0, the dimension has to be 0 or 1. A sign of 0 means empty data, so a dimension is 0 if no
    other dimension may be 0.
    """
    if dims is None or len(dims) > len(sizes):
        return False
    maybe_zero = [axis for axis, dim in enumerate(dims) if not dim]
    return all(
        dim == 1 or _is_positive(size) or maybe_zero == [axis] or (isinstance(size, tuple) and axis in size)
        for axis, (dim, size) in enumerate(zip(dims, sizes[len(sizes) - len(dims) :], strict=True))
    )


@adapter(("Squeeze", "Unsqueeze"), 13, 11)
def move_axes_to_attribute(node: Node, out: Rewriter) -> None:
    """Move constant axes to the attribute; for computed axes, emit a Reshape to a computed shape."""
    data, axes = node.inputs[0], node.input(1)
    known = out.constant_value(axes)
    if not axes or known is not None:
        # Some model checkers require axes in ascending order.
        attributes = {} if known is None else {"axes": sorted(known.values)}
        out.replace(node, inputs=[data], attributes=attributes)
        return
    count = axis_count(axes, out)
    if count is None:
        reason = f"input axes ({axes!r}) is not a constant, and its length is unknown"
        raise UnknownShape(reason, axes, otherwise="make the axes an initializer that is not a graph input")
    if count == 0 and node.op_type == "Squeeze":
        out.require_constant(axes, "input axes")  # always raises an error
    if node.op_type == "Squeeze":
        shape = shape_without_axes(data, count_axes(axes, out.rank(data), out), out)
    else:
        shape = _unsqueezed_shape(data, axes, out.rank(data), count or 0, out)
    out.emit("Reshape", [data, shape], node.outputs, opset=ALLOWZERO_OPSET, allowzero=1)


def _unsqueezed_shape(data: str, axes: str, rank: int, count: int, out: Rewriter) -> str:
    """Return the shape of data of rank `rank`, with a 1 inserted at each of the `count` axes."""
    ones = out.int64([1] * out.require_rank(rank + count))
    if not rank:
        return ones
    remaining = kept_axes_mask(count_axes(axes, rank + count, out), out)
    data_axes = reshape(out.emit("NonZero", [remaining]), (-1,), out)
    return out.emit("ScatterElements", [ones, data_axes, out.emit("Shape", [data])], axis=0)


@adapter("Tile", 1, 6)
def expand_tiles_to_repeats(node: Node, out: Rewriter) -> None:
    """Replace `tiles` and `axis` with `repeats`: `tiles` for the dimension `axis`, and 1 for all others."""
    data, tiles, axis_name = node.inputs
    axis = int(out.require_constant(axis_name, "input axis").scalar)
    rank = out.rank(data)
    axis += rank if axis < 0 else 0
    before, after = [1] * axis, [1] * (rank - axis - 1)
    known = out.constant_value(tiles)
    if known is not None:
        out.replace(node, inputs=[data, out.int64([*before, int(known.scalar), *after])])
        return
    count = reshape(out.cast(tiles, "int64"), (1,), out)
    parts = [out.int64(before), count, out.int64(after)]
    out.replace(node, inputs=[data, out.emit("Concat", parts, axis=0)])


@adapter("Tile", 6, 1)
def tile_one_axis_at_a_time(node: Node, out: Rewriter) -> None:
    """Emit one Tile for each repeated dimension."""
    data, element_type = node.inputs[0], out.element_type(node.inputs[0])
    if element_type not in IEEE_FLOAT_TYPES:
        reason = f"{data!r} has element type {element_type}; Tile supports only floating point before opset 6"
        raise CannotConvert(reason, "type.unsupported", subject=element_type)
    counts = out.require_constant(node.inputs[1], "input repeats").values
    repeated = [(axis, count) for axis, count in enumerate(counts) if count != 1]
    if not repeated:
        out.replace(node, op_type="Identity", inputs=[data])
        return
    for axis, count in repeated:
        outputs: Sequence[str] | int = node.outputs if axis == repeated[-1][0] else 1
        # All inputs of Tile-1 have the element type of the data.
        numbers = [out.constant(number, element_type) for number in (count, axis)]
        data = out.emit("Tile", [data, *numbers], outputs)
