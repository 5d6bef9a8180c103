"""Inputs of nodes, such as `axes`, whose effect the shapes of the data and of the outputs determine."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from itertools import chain, combinations
from operator import mul
from typing import Final

from opshift.analysis.fit.known_node import KnownNode, Sizes

MAX_REDUCED_RANK: Final = 8
"""Maximum rank of data for which all choices of axes are compared."""

Rule = Callable[[KnownNode], Sizes | None]
"""Elements of an input that yield the only possible result of a node; `None` if several are possible."""


def _output(known: KnownNode) -> Sizes:
    return known.outputs[0]


def _expanded(known: KnownNode) -> Sizes:
    # A shorter shape is aligned at the last axis.
    output = known.outputs[0]
    return output if known.length is None else output[max(len(output) - known.length, 0) :]


def _reshape(known: KnownNode) -> Sizes | None:
    # A zero may also mean the size of the data.
    return known.outputs[0] if 0 not in known.outputs[0] or known.attribute("allowzero") == 1 else None


def _repeats(known: KnownNode) -> Sizes | None:
    data, output = known.data, known.outputs[0]
    if data is None or len(data) != len(output):
        return None
    counts = tuple(after // max(before, 1) for before, after in zip(data, output, strict=True))
    return counts if tuple(map(mul, data, counts)) == output else None


def _split(known: KnownNode) -> Sizes | None:
    sizes = [known.at_axis(shape) for shape in known.outputs]
    is_complete = len(sizes) == len(known.node.outputs) and None not in sizes
    return tuple(chain.from_iterable(filter(None, sizes))) if is_complete else None


def _inserted_axes(known: KnownNode) -> Sizes | None:
    return None if known.data is None else _single_axes(known.outputs[0], known.data)


def _removed_axes(known: KnownNode) -> Sizes | None:
    return None if known.data is None else _single_axes(known.data, known.outputs[0])


def _single_axes(longer: Sizes, shorter: Sizes) -> Sizes | None:
    """Return axes of size 1 without which a shape equals another one: all choices keep the elements."""
    axes: list[int] = []
    for axis, size in enumerate(longer):
        position = axis - len(axes)
        if position >= len(shorter) or shorter[position] != size:
            axes.append(axis)
    is_found = len(longer) - len(axes) == len(shorter) and all(longer[axis] == 1 for axis in axes)
    return tuple(axes) if axes and is_found else None


def _reduced_axes(known: KnownNode) -> Sizes | None:
    data, output = known.data, known.outputs[0]
    if data is None or len(data) > MAX_REDUCED_RANK:
        return None
    every = tuple(range(len(data)))
    if_empty = () if known.attribute("noop_with_empty_axes") == 1 else every
    counts = (*every[1:], len(data), 0) if known.length is None else (known.length,)
    keeps = known.attribute("keepdims") == 1
    found: dict[Hashable, Sizes] = {}
    for axes in chain.from_iterable(combinations(every, count) for count in counts):
        reduced = axes or if_empty
        sizes = [1 if axis in reduced else size for axis, size in enumerate(data)]
        if output == tuple(size for axis, size in enumerate(sizes) if keeps or axis not in reduced):
            # An axis of size 1 may be reduced or not, but some operators change each element if any axis is.
            changed = bool(reduced) and known.operator.name not in _KEEP_SINGLE_ELEMENTS
            found.setdefault((changed, *(axis for axis in reduced if data[axis] != 1)), axes)
    return next(iter(found.values())) if len(found) == 1 else None


_KEEP_SINGLE_ELEMENTS = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")
"""Operators that reduce a single element to itself."""


def _along_axes(known: KnownNode) -> Sizes | None:
    axes = known.axes()
    return axes and tuple(known.outputs[0][axis] for axis in axes)


def _sizes(known: KnownNode) -> Sizes | None:
    is_stretched = known.attribute("keep_aspect_ratio_policy") in (None, b"stretch")
    return _along_axes(known) if is_stretched else None


_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")

RULES: Final[Mapping[str, Mapping[str, Rule]]] = {
    # The number of channels does not affect the grid.
    "AffineGrid": {"size": lambda known: (*known.outputs[0][:1], 1, *known.outputs[0][1:-1])},
    "CenterCropPad": {"shape": _along_axes},
    "ConstantOfShape": {"input": _output},
    "Expand": {"shape": _expanded},
    "MaxUnpool": {"output_shape": _output},
    "OneHot": {"depth": lambda known: known.at_axis(known.outputs[0])},
    "Reshape": {"shape": _reshape},
    "Resize": {"sizes": _sizes},
    "Split": {"split": _split},
    "Squeeze": {"axes": _removed_axes},
    "Tile": {"repeats": _repeats},
    "TopK": {"K": lambda known: known.at_axis(known.outputs[0])},
    "Unsqueeze": {"axes": _inserted_axes},
    **{f"Reduce{each}": {"axes": _reduced_axes} for each in _REDUCTIONS},
    **{f"{each}Window": {"size": _output} for each in ("Blackman", "Hamming", "Hann")},
}
"""Inputs by operator of the default domain, with the rules that determine them."""
