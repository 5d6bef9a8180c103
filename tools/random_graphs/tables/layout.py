"""Operators that move elements: axes, shapes, slices, pads and splits."""

from __future__ import annotations

import math
from typing import Any

from random_graphs.draft import Choice, Draft, TensorSpec
from random_graphs.values import Shape

NEGATIVE_AXES = 11
"""The first opset with negative axes in nearly all operators."""


def axis(n: Draft) -> int:
    """Choose one axis of the first input."""
    found: int = n.fact(
        "axis", lambda: n.number(-n.rank if n.graph.opset >= NEGATIVE_AXES else 0, n.rank - 1)
    )
    return found


def some_axes(n: Draft) -> list[int] | None:
    """Choose some axes, or `None` to omit them."""
    found: list[int] | None = n.fact("axes", lambda: _some_axes(n, n.rank))
    return found


def _some_axes(n: Draft, rank: int) -> list[int] | None:
    if n.chance(20):
        return None
    chosen = n.graph.draw.distinct(range(rank), 1, rank)
    return [each - rank if n.graph.opset >= NEGATIVE_AXES and n.chance(30) else each for each in chosen]


def broadcasting(n: Draft) -> TensorSpec:
    """Choose a shape that broadcasts with the shape of the first input."""
    trailing = n.shape[n.number(0, n.rank) :]
    shape = tuple(1 if n.chance(25) else size for size in trailing)
    if len(trailing) == n.rank and n.chance(20):
        shape = (n.number(1, 2), *shape)
    return TensorSpec(shape)


def variadic_inputs(n: Draft) -> list[TensorSpec]:
    """Choose one to three inputs that broadcast, or have equal shapes in older versions."""
    first = _any_shape(n)
    same = n.version.shape != "broadcast"
    rest = [TensorSpec(first if same else first[n.number(0, len(first)) :]) for _ in range(n.number(0, 2))]
    return [TensorSpec(first), *rest]


def _any_shape(n: Draft, min_rank: int = 0) -> Shape:
    return tuple(n.number(1, 3) for _ in range(n.number(min_rank, 3)))


def concatenated_inputs(n: Draft) -> list[TensorSpec]:
    """Choose shapes that differ along the axis."""
    shape = _any_shape(n, 1)
    chosen = n.fact(
        "axis",
        lambda: n.number(-len(shape) if n.graph.opset >= NEGATIVE_AXES else 0, len(shape) - 1),
    )
    position = chosen % len(shape)
    sizes = [n.number(1, 3) for _ in range(n.number(1, 3))]
    return [TensorSpec((*shape[:position], size, *shape[position + 1 :])) for size in sizes]


def new_shape(n: Draft) -> list[int]:
    """Choose a different shape for the same elements."""
    size = math.prod(n.shape)
    complete = [[size], [1, size], [*reversed(n.shape)], [*n.shape, 1], [*n.shape]]
    partial = [[-1], [-1, 1], [*n.shape[:1], -1], [0] * n.rank, [0] * min(n.rank, 1) + [-1]]
    found: list[int] = n.one_of(*complete, *partial)
    return found


def unit_axes(n: Draft) -> list[int] | None:
    """Choose axes of size 1, or `None` for all of them."""
    positions = [position for position, size in enumerate(n.shape) if size == 1]
    if not positions or n.chance(25):
        return None
    chosen = n.graph.draw.distinct(positions, 1, len(positions))
    return [each - n.rank if n.graph.opset >= NEGATIVE_AXES and n.chance(30) else each for each in chosen]


def new_axes(n: Draft) -> list[int]:
    """Choose the positions of inserted dimensions."""
    count = n.number(1, 2)
    rank = n.rank + count
    positions = n.graph.draw.distinct(range(rank), count, count)
    return [each - rank if n.graph.opset >= NEGATIVE_AXES and n.chance(30) else each for each in positions]


def expanded_shape(n: Draft) -> list[int]:
    """Choose a shape to which the first input broadcasts."""
    shape = [n.number(1, 3) if size == 1 else size for size in n.shape]
    narrower = shape[n.number(0, n.rank) :] if n.chance(30) else shape
    return [n.number(1, 2), *shape] if n.chance(30) else [1 if n.chance(20) else each for each in narrower]


def perm(n: Draft) -> Any:
    """Choose an order of the axes."""
    return None if n.chance(20) else n.graph.draw.distinct(range(n.rank), n.rank, n.rank)


def slice_axes(n: Draft) -> Any:
    """Choose the axes of a slice, or `None` for the leading axes."""
    return n.fact("axes", lambda: _some_axes(n, n.rank))


def _explicit_slice_axes(n: Draft) -> Any:
    axes = slice_axes(n)
    return axes if axes is not None else n.fact("count", lambda: list(range(n.number(1, n.rank))))


def _slice_steps(n: Draft) -> Any:
    fixed = n.version.since_version < 10
    return n.fact(
        "steps", lambda: [1 if fixed else n.one_of(1, 1, 2, -1, -2) for _ in _explicit_slice_axes(n)]
    )


def steps(n: Draft) -> list[int] | None:
    """Choose the steps of a slice."""
    found = _slice_steps(n)
    return None if set(found) == {1} and n.chance(50) else found


def _slice_bound(n: Draft, position: int, ends: bool) -> int:
    size, step = n.shape[_explicit_slice_axes(n)[position]], _slice_steps(n)[position]
    forward = (
        n.one_of(0, 1, -1, -size, size // 2) if not ends else n.one_of(size, 2**31 - 1, -1, 2**63 - 1, 1)
    )
    backward = n.one_of(-1, size, size - 1, 100) if not ends else n.one_of(-size - 1, -(2**31), 0, -100, 1)
    found: int = forward if step > 0 else backward
    if n.types.get("Tind") == "int32":
        return max(-(2**31), min(found, 2**31 - 1))
    return found


def _slice_bounds(n: Draft, ends: bool) -> list[int]:
    n.types.setdefault("Tind", n.one_of("int64", "int64", "int32"))
    return [_slice_bound(n, position, ends) for position in range(len(_explicit_slice_axes(n)))]


def pads(n: Draft) -> list[int]:
    """Choose pads for both sides of all or some axes; reflected pads are smaller than the dimension."""
    mode = n.attribute("mode")
    axes = n.fact("axes", lambda: _some_axes(n, n.rank) if n.since >= 18 else None)
    sizes = [n.shape[each] for each in axes] if axes is not None else list(n.shape)
    limit = {"reflect": -1, "wrap": 0}.get(mode)
    low = -1 if mode in (None, "constant") and n.chance(20) else 0
    return [n.number(low, 2 if limit is None else min(2, size + limit)) for size in sizes * 2]


def split(n: Draft) -> list[int] | None:
    """Choose the parts of an axis, or `None` for equal parts."""
    size = n.shape[axis(n)]
    count = n.fact("outputs", lambda: n.number(1, min(3, size)) if size else 1)
    if size % count == 0 and n.chance(50):
        return None
    cuts = sorted(n.number(0, size) for _ in range(count - 1))
    found = [b - a for a, b in zip([0, *cuts], [*cuts, size], strict=True)]
    n.facts["split"] = found
    return found


def num_outputs(n: Draft) -> int | None:
    """Return the number of parts unless they are listed."""
    return None if "split" in n.facts else n.facts["outputs"]


def cropped_shape(n: Draft) -> list[int]:
    axes = some_axes(n)
    return [n.number(1, 4) for _ in (axes if axes is not None else n.shape)]


def lengths(n: Draft) -> list[int]:
    """Choose the lengths of sequences in a batch."""
    batch = n.fact("batch", lambda: n.one_of(0, 1))
    return [n.number(1, n.shape[1 - batch]) for _ in range(n.shape[batch])]


def channel_blocks(n: Draft) -> Any:
    return TensorSpec((n.number(1, 2), 4 * n.number(1, 2), n.number(1, 2), n.number(1, 3)))


def spatial_blocks(n: Draft) -> Any:
    return TensorSpec((n.number(1, 2), n.number(1, 2), 2 * n.number(1, 2), 2 * n.number(1, 2)))


CHOICES: dict[str, Choice] = {
    "axis": axis,
    "axes": some_axes,
    "perm": perm,
    "broadcast.*": broadcasting,
    "broadcast.data_0": variadic_inputs,
    "same_as_first.data_0": variadic_inputs,
    "Concat.inputs": concatenated_inputs,
    "Reshape.shape": new_shape,
    "Reshape.allowzero": lambda n: n.one_of(None, 0),
    "Flatten.axis": lambda n: n.number(-n.rank if n.since >= 11 else 0, n.rank),
    "Squeeze.axes": unit_axes,
    "Unsqueeze.axes": new_axes,
    "Expand.shape": expanded_shape,
    "Tile.repeats": lambda n: [n.size(2) for _ in n.shape],
    "Slice.starts": lambda n: _slice_bounds(n, ends=False),
    "Slice.ends": lambda n: _slice_bounds(n, ends=True),
    "Slice.axes": slice_axes,
    "Slice.steps": steps,
    "Pad.pads": pads,
    "Pad.mode": lambda n: n.attribute("mode"),
    "Pad.axes": lambda n: n.fact("axes", lambda: None),
    "Pad.constant_value": lambda n: None if n.chance(30) else TensorSpec(()),
    "Split.split": split,
    "Split.num_outputs": num_outputs,
    "DepthToSpace.input": channel_blocks,
    "SpaceToDepth.input": spatial_blocks,
    "blocksize": lambda n: 2,
    "CenterCropPad.shape": cropped_shape,
    "CenterCropPad.axes": some_axes,
    "Crop.input": lambda n: TensorSpec((1, 2, 4, 5)),
    "Crop.border": lambda n: [1, 0, 1, 2],
    "Crop.scale": lambda n: n.one_of(None, [2, 2]),
    "ImageScaler.input": lambda n: TensorSpec((1, 2, 2, 2)),
    "ImageScaler.bias": lambda n: [0.5, 1.0],
    "ConstantFill.shape": lambda n: [2, 3],
    "ConstantFill.input": lambda n: None,
    "DynamicSlice.starts": lambda n: [0],
    "DynamicSlice.ends": lambda n: [1],
    "DynamicSlice.axes": lambda n: None,
    "Trilu.k": lambda n: None if n.chance(40) else n.number(-3, 3),
    "EyeLike.k": lambda n: None if n.chance(40) else n.number(-2, 2),
    "Shape.start": lambda n: n.one_of(None, 0, 1, -1, -2),
    "Shape.end": lambda n: n.one_of(None, 0, 1, -1, 5),
    "ReverseSequence.batch_axis": lambda n: n.facts["batch"],
    "ReverseSequence.time_axis": lambda n: 1 - n.facts["batch"],
    "ReverseSequence.sequence_lens": lengths,
}
RANKS: dict[str, tuple[int, int]] = {
    "slice": (1, 4), "pad": (1, 4), "split": (1, 4), "CenterCropPad": (1, 4), "reduce": (1, 4),
    "arg_reduce": (1, 4), "Unsqueeze": (0, 3), "Trilu": (2, 4), "EyeLike": (2, 2), "ReverseSequence": (2, 4),
    "Flatten": (1, 4), "MeanVarianceNormalization": (4, 4),
}  # fmt: skip
