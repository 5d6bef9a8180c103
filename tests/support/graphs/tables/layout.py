"""Moving elements: axes, shapes, slices, pads, splits."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from support.graphs.draft import Choice, Draft, Of
from support.graphs.values import Shape

ANY_SIGN = 11
"""The opset from which on most operators count axes from the back too."""


def axis(n: Draft) -> int:
    """One axis of the first input."""
    found: int = n.fact("axis", lambda: n.number(-n.rank if n.graph.opset >= ANY_SIGN else 0, n.rank - 1))
    return found


def some_axes(n: Draft) -> list[int] | None:
    """Some axes, or none stated."""
    found: list[int] | None = n.fact("axes", lambda: _some_axes(n, n.rank))
    return found


def _some_axes(n: Draft, rank: int) -> list[int] | None:
    if n.chance(20):
        return None
    chosen = n.graph.draw(st.lists(st.integers(0, rank - 1), unique=True, min_size=1, max_size=rank))
    return [each - rank if n.graph.opset >= ANY_SIGN and n.chance(30) else each for each in chosen]


def broadcasting(n: Draft) -> Of:
    """A shape that broadcasts with the first input's."""
    kept = n.shape[n.number(0, n.rank) :]
    shape = tuple(1 if n.chance(25) else size for size in kept)
    if len(kept) == n.rank and n.chance(20):
        shape = (n.number(1, 2), *shape)
    return Of(shape)


def several(n: Draft) -> list[Of]:
    """One to three that broadcast, or before that of one shape."""
    first = _any_shape(n)
    same = n.version.shape != "broadcast"
    rest = [Of(first if same else first[n.number(0, len(first)) :]) for _ in range(n.number(0, 2))]
    return [Of(first), *rest]


def _any_shape(n: Draft, least: int = 0) -> Shape:
    return tuple(n.number(1, 3) for _ in range(n.number(least, 3)))


def joined(n: Draft) -> list[Of]:
    """Shapes that differ along the axis."""
    shape = _any_shape(n, 1)
    chosen = n.fact("axis", lambda: n.number(-len(shape) if n.graph.opset >= ANY_SIGN else 0, len(shape) - 1))
    place = chosen % len(shape)
    sizes = [n.number(1, 3) for _ in range(n.number(1, 3))]
    return [Of((*shape[:place], size, *shape[place + 1 :])) for size in sizes]


def new_shape(n: Draft) -> list[int]:
    """The same elements in another shape."""
    size = math.prod(n.shape)
    whole = [[size], [1, size], [*reversed(n.shape)], [*n.shape, 1], [*n.shape]]
    open_ends = [[-1], [-1, 1], [*n.shape[:1], -1], [0] * n.rank, [0] * min(n.rank, 1) + [-1]]
    found: list[int] = n.one_of(*whole, *open_ends)
    return found


def ones(n: Draft) -> list[int] | None:
    """Axes of size 1, or none stated for all of them."""
    places = [place for place, size in enumerate(n.shape) if size == 1]
    if not places or n.chance(25):
        return None
    chosen = n.graph.draw(st.lists(st.sampled_from(places), unique=True, min_size=1))
    return [each - n.rank if n.graph.opset >= ANY_SIGN and n.chance(30) else each for each in chosen]


def new_axes(n: Draft) -> list[int]:
    """Where dimensions of 1 are put in."""
    count = n.number(1, 2)
    rank = n.rank + count
    places = n.graph.draw(st.lists(st.integers(0, rank - 1), unique=True, min_size=count, max_size=count))
    return [each - rank if n.graph.opset >= ANY_SIGN and n.chance(30) else each for each in places]


def wider(n: Draft) -> list[int]:
    """A shape to which the first input can be stretched."""
    shape = [n.number(1, 3) if size == 1 else size for size in n.shape]
    narrower = shape[n.number(0, n.rank) :] if n.chance(30) else shape
    return [n.number(1, 2), *shape] if n.chance(30) else [1 if n.chance(20) else each for each in narrower]


def perm(n: Draft) -> Any:
    """An order of the axes."""
    return None if n.chance(20) else n.graph.draw(st.permutations(range(n.rank)))


def sliced_axes(n: Draft) -> Any:
    """The axes of a slice; not stated, they are the first ones."""
    return n.fact("axes", lambda: _some_axes(n, n.rank))


def _sliced(n: Draft) -> Any:
    axes = sliced_axes(n)
    return axes if axes is not None else n.fact("count", lambda: list(range(n.number(1, n.rank))))


def _steps(n: Draft) -> Any:
    fixed = n.version.since_version < 10
    return n.fact("steps", lambda: [1 if fixed else n.one_of(1, 1, 2, -1, -2) for _ in _sliced(n)])


def steps(n: Draft) -> list[int] | None:
    """The steps of a slice."""
    found = _steps(n)
    return None if set(found) == {1} and n.chance(50) else found


def _bound(n: Draft, position: int, ends: bool) -> int:
    size, step = n.shape[_sliced(n)[position]], _steps(n)[position]
    forward = (
        n.one_of(0, 1, -1, -size, size // 2) if not ends else n.one_of(size, 2**31 - 1, -1, 2**63 - 1, 1)
    )
    backward = n.one_of(-1, size, size - 1, 100) if not ends else n.one_of(-size - 1, -(2**31), 0, -100, 1)
    found: int = forward if step > 0 else backward
    if n.types.get("Tind") == "int32":
        return max(-(2**31), min(found, 2**31 - 1))
    return found


def _bounds(n: Draft, ends: bool) -> list[int]:
    n.types.setdefault("Tind", n.one_of("int64", "int64", "int32"))
    return [_bound(n, position, ends) for position in range(len(_sliced(n)))]


def pads(n: Draft) -> list[int]:
    """Of both sides of each axis, all or some; those that reflect are less than the size."""
    mode = n.stated("mode")
    axes = n.fact("axes", lambda: _some_axes(n, n.rank) if n.since >= 18 else None)
    sizes = [n.shape[each] for each in axes] if axes is not None else list(n.shape)
    most = {"reflect": -1, "wrap": 0}.get(mode)
    low = -1 if mode in (None, "constant") and n.chance(20) else 0
    return [n.number(low, 2 if most is None else min(2, size + most)) for size in sizes * 2]


def split(n: Draft) -> list[int] | None:
    """The parts of an axis; equal ones need not be listed."""
    size = n.shape[axis(n)]
    count = n.fact("outputs", lambda: n.number(1, min(3, size)) if size else 1)
    if size % count == 0 and n.chance(50):
        return None
    cuts = sorted(n.number(0, size) for _ in range(count - 1))
    found = [b - a for a, b in zip([0, *cuts], [*cuts, size], strict=True)]
    n.facts["split"] = found
    return found


def num_outputs(n: Draft) -> int | None:
    """Where the parts are not listed, their number."""
    return None if "split" in n.facts else n.facts["outputs"]


def cut_or_padded(n: Draft) -> list[int]:
    axes = some_axes(n)
    return [n.number(1, 4) for _ in (axes if axes is not None else n.shape)]


def lengths(n: Draft) -> list[int]:
    """How much of each sequence of a batch there is."""
    batch = n.fact("batch", lambda: n.one_of(0, 1))
    return [n.number(1, n.shape[1 - batch]) for _ in range(n.shape[batch])]


def blocks(n: Draft) -> Any:
    return Of((n.number(1, 2), 4 * n.number(1, 2), n.number(1, 2), n.number(1, 3)))


def unblocked(n: Draft) -> Any:
    return Of((n.number(1, 2), n.number(1, 2), 2 * n.number(1, 2), 2 * n.number(1, 2)))


CHOICES: dict[str, Choice] = {
    "axis": axis,
    "axes": some_axes,
    "perm": perm,
    "broadcast.*": broadcasting,
    "broadcast.data_0": several,
    "same_as_first.data_0": several,
    "Concat.inputs": joined,
    "Reshape.shape": new_shape,
    "Reshape.allowzero": lambda n: n.one_of(None, 0),
    "Flatten.axis": lambda n: n.number(-n.rank if n.since >= 11 else 0, n.rank),
    "Squeeze.axes": ones,
    "Unsqueeze.axes": new_axes,
    "Expand.shape": wider,
    "Tile.repeats": lambda n: [n.size(2) for _ in n.shape],
    "Slice.starts": lambda n: _bounds(n, ends=False),
    "Slice.ends": lambda n: _bounds(n, ends=True),
    "Slice.axes": sliced_axes,
    "Slice.steps": steps,
    "Pad.pads": pads,
    "Pad.mode": lambda n: n.stated("mode"),
    "Pad.axes": lambda n: n.fact("axes", lambda: None),
    "Pad.constant_value": lambda n: None if n.chance(30) else Of(()),
    "Split.split": split,
    "Split.num_outputs": num_outputs,
    "DepthToSpace.input": blocks,
    "SpaceToDepth.input": unblocked,
    "blocksize": lambda n: 2,
    "CenterCropPad.shape": cut_or_padded,
    "CenterCropPad.axes": some_axes,
    "Crop.input": lambda n: Of((1, 2, 4, 5)),
    "Crop.border": lambda n: [1, 0, 1, 2],
    "Crop.scale": lambda n: n.one_of(None, [2, 2]),
    "ImageScaler.input": lambda n: Of((1, 2, 2, 2)),
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
