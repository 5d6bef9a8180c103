"""Broadcasting: elementwise operators, and Expand.

NumPy broadcasting replaced the attributes `broadcast` and `axis` in opset 7. Before, only the second input
broadcasts, if `broadcast` is 1: its dimensions align with the dimensions of the first input from `axis` on,
or with the last dimensions if `axis` is absent. Before opset 8, all inputs of Sum, Mean, Max and Min have the
same shape. Expand (introduced in opset 8) becomes Tile or, for some unknown shapes, Mul with ones or And with
True.
"""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from opshift.adapters import (
    CannotConvert,
    Node,
    Rewriter,
    Tensor,
    UnknownShape,
    adapter,
    require_supported_types,
)
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.emit.expression import ARITHMETIC_TYPES, cast, cast_between, cast_output, fold
from opshift.adapters.emit.shapes import reshape
from opshift.inference.facts import ListedSize

OPERATORS_SINCE_6 = ("Add", "Sub", "Mul", "Div")
"""Operators that change from version 6 to version 7."""

OPERATORS_SINCE_1 = ("And", "Or", "Xor", "Equal", "Greater", "Less", "Pow")
"""Operators that change from version 1 to version 7."""

SWAPPED_OPERATORS = {
    **{name: name for name in ("Add", "Mul", "And", "Or", "Xor", "Equal")},
    "Greater": "Less",
    "Less": "Greater",
}
"""Operators to operators that compute the same result with swapped inputs."""

Shape = tuple[int | None, ...]

LEGACY_OPSET = 6
"""Opset of the emitted helper nodes: the last opset without NumPy broadcasting."""


class LegacyBroadcast(NamedTuple):
    """Attributes that broadcast the second input, and the new shape of this input (`None` keeps the shape).

    If the new shape has unknown sizes, `squeezed` lists the dimensions of size 1 to remove by Squeeze.
    """

    attributes: dict[str, int]
    shape: tuple[int, ...] | None
    squeezed: tuple[int, ...] = ()


@adapter(OPERATORS_SINCE_6, 6, 7)
@adapter(OPERATORS_SINCE_1, 1, 7)
def append_trailing_dimensions(node: Node, out: Rewriter) -> None:
    """Replace `axis` by trailing dimensions of size 1 on the second input."""
    attributes = node.without("broadcast", "axis")
    axis = node.attribute("axis")
    if not node.attribute("broadcast", 0) or axis is None:
        out.replace(node, attributes=attributes)
        return
    first, second = node.inputs
    rank, second_rank = out.rank(first), out.rank(second)
    start = axis + rank if axis < 0 else axis
    trailing = rank - start - second_rank
    if start < 0:
        reason = f"axis {axis} is out of range for {first!r}, which has {rank} dimensions"
        raise CannotConvert(reason, "node.invalid", remedy=f"set axis to a number from 0 to {rank - 1}")
    if trailing > 0:
        second = out.emit("Unsqueeze", [second], axes=range(second_rank, second_rank + trailing))
    out.replace(node, inputs=(first, second), attributes=attributes)


@adapter(OPERATORS_SINCE_6, 7, 6)
@adapter(OPERATORS_SINCE_1, 7, 1)
def add_broadcast_attributes(node: Node, out: Rewriter) -> None:
    """Set `broadcast` and `axis`, with swapped inputs if necessary; if impossible, tile both to one shape."""
    require_supported_types(node, out)
    first, second = node.inputs
    shapes = out.comparable_shapes(node.inputs)
    if first == second:
        out.replace(node)
    elif broadcast := _find_legacy_broadcast(*shapes):
        _broadcast_second(node, node.op_type, (first, second), broadcast, out)
    elif (swapped := _find_legacy_broadcast(shapes[1], shapes[0])) and node.op_type in SWAPPED_OPERATORS:
        _broadcast_second(node, SWAPPED_OPERATORS[node.op_type], (second, first), swapped, out)
    else:
        out.replace(node, inputs=_tile_to_common_shape(node.inputs, out))


def _find_legacy_broadcast(first: Shape | None, second: Shape | None) -> LegacyBroadcast | None:
    """Return the attributes `broadcast` and `axis` that broadcast the second shape to the first, or `None`.

    Without leading and trailing ones, the second shape must equal the dimensions of the first shape at the
    same positions. Equal negative numbers are equal unknown sizes, see `Rewriter.comparable_shapes`.
    """
    if second == ():
        return LegacyBroadcast({"broadcast": 1}, None)
    if first is None or second is None or len(second) > len(first):
        return None
    if first == second and None not in first:
        return LegacyBroadcast({}, None)
    non_unit = [i for i, dim in enumerate(second) if dim != 1]
    if not non_unit:
        return LegacyBroadcast({"broadcast": 1}, None)
    # Refuse unknown dimensions, and dimensions of size 0, which Reshape would copy from its input.
    core = tuple(dim for dim in second[non_unit[0] : non_unit[-1] + 1] if dim)
    start = len(first) - len(second) + non_unit[0]
    if len(core) != non_unit[-1] + 1 - non_unit[0] or core != first[start : start + len(core)]:
        return None
    axis = {} if start + len(core) == len(first) else {"axis": start}
    kept = range(non_unit[0], non_unit[-1] + 1)
    squeezed = tuple(i for i in range(len(second)) if i not in kept) if min(core) < 0 else ()
    return LegacyBroadcast({"broadcast": 1, **axis}, None if core == second else core, squeezed)


def _broadcast_second(
    node: Node, op_type: str, inputs: tuple[str, str], broadcast: LegacyBroadcast, out: Rewriter
) -> None:
    first, second = inputs
    if broadcast.squeezed:
        second = out.emit("Squeeze", [second], opset=LEGACY_OPSET, axes=broadcast.squeezed)
    elif broadcast.shape is not None:
        second = out.emit("Reshape", [second, out.int64(broadcast.shape)], opset=LEGACY_OPSET)
    out.replace(node, op_type=op_type, inputs=(first, second), attributes=broadcast.attributes)


def _tile_to_common_shape(names: Sequence[str], out: Rewriter) -> list[str]:
    """Tile values to their broadcast shape; refuse if a required size is unknown."""
    shapes = out.comparable_shapes(names)
    common = _common_shape(shapes)
    if common is None:
        labels = ", ".join(map(repr, names))
        reason = f"the shapes of {labels} must be fully known to broadcast them before opset 7"
        raise UnknownShape(reason, *names)
    return [_tile_to_shape(name, shape or (), common, out) for name, shape in zip(names, shapes, strict=True)]


def _common_shape(shapes: Sequence[Shape | None]) -> tuple[int, ...] | None:
    """Return the shape to which comparable shapes broadcast, or `None` if a required size is unknown."""
    known = [tuple(dim for dim in shape or () if dim is not None) for shape in shapes]
    if any(shape is None or len(dims) < len(shape) for shape, dims in zip(shapes, known, strict=True)):
        return None
    rank = max(map(len, known))
    padded = [(1,) * (rank - len(shape)) + shape for shape in known]
    common = tuple(next((dim for dim in dims if dim != 1), 1) for dims in zip(*padded, strict=True))
    # Negative sizes are unknown. They must be equal in all values, because Tile needs known repetitions.
    is_possible = all(
        set(dims) == {size} if min(dims) < 0 else True
        for dims, size in zip(zip(*padded, strict=True), common, strict=True)
    )
    return common if is_possible else None


def _tile_to_shape(name: str, shape: Shape, full: tuple[int, ...], out: Rewriter) -> str:
    """Tile a value of the shape `shape` to the shape `full`; negative numbers are unknown sizes."""
    ones = (1,) * (len(full) - len(shape)) + tuple(dim for dim in shape if dim is not None)
    if shape == full:
        return name
    if len(shape) != len(full):
        name = out.emit("Unsqueeze", [name], opset=LEGACY_OPSET, axes=range(len(full) - len(shape)))
    if ones == full:
        return name
    # A dimension of size 0 needs no repetition, and would cause a division by zero.
    counts = [target // size if size else 1 for target, size in zip(full, ones, strict=True)]
    return out.emit("Tile", [name, out.int64(counts)], opset=LEGACY_OPSET)


@adapter("PRelu", 6, 7)
def align_slope_with_channels(node: Node, out: Rewriter) -> None:
    """Unsqueeze a 1-D slope, which version 6 aligns with dimension 1, but version 7 with the last dimension.

    If the data is a scalar, squeeze the slope.
    """
    data, slope = node.inputs
    shape = out.shape(slope)
    if shape is not None and len(shape) == 1 and out.known_rank(data) == 0:
        out.replace(node, inputs=(data, out.emit("Squeeze", [slope], axes=[0])))
        return
    if shape == (1,) or (shape is not None and len(shape) != 1):
        out.replace(node)
        return
    rank = out.rank(data)
    # raises UnknownShape for a slope of unknown rank
    out.rank(slope)
    if rank > 2:
        slope = out.emit("Unsqueeze", [slope], axes=range(1, rank - 1))
    out.replace(node, inputs=(data, slope))


@adapter("PRelu", 7, 6)
def restrict_slope(node: Node, out: Rewriter) -> None:
    """Keep a PRelu with a slope per tensor or channel; else use Relu, or Pow if a slope may be infinite.

    Finite slopes give `Relu(x) - slope * Relu(-x)`. An infinite slope times 0 would be NaN: instead, multiply
    by the slope to the power 1 for negative data, and to the power 0, which is 1, for other data.
    """
    require_supported_types(node, out)
    data, slope = node.inputs
    out.rank(slope)  # raises an error for a slope of unknown rank
    shape, rank = out.shape(slope) or (), out.known_rank(data)
    non_unit = [i for i, dim in enumerate(shape) if dim != 1]
    channel = len(shape) + 1 - rank if rank is not None and rank > 1 else None
    if not non_unit or non_unit == [channel]:
        flat_slope = slope if len(shape) == 1 else reshape(slope, (-1,), out, opset=5)
        out.replace(node, inputs=[data, flat_slope])
    elif not _is_finite(slope, out):
        element_type = out.element_type(data)
        is_negative = out.emit("Less", [data, out.constant(0.0, element_type)], opset=7)
        exponent = out.cast(is_negative, element_type, opset=6)
        out.emit("Mul", [data, out.emit("Pow", [slope, exponent], opset=7)], node.outputs, opset=7)
    else:
        negative = out.emit("Relu", [out.emit("Neg", [data])], opset=7)
        below = out.emit("Mul", [negative, slope], opset=7)
        out.emit("Sub", [out.emit("Relu", [data], opset=7), below], node.outputs, opset=7)


def _is_finite(name: str, out: Rewriter) -> bool:
    """Return whether a value is a constant of finite numbers."""
    constant = out.constant_value(name)
    return constant is not None and all(map(math.isfinite, constant.values))


@adapter(("Sum", "Mean"), 8, 6)
def expand_into_additions(node: Node, out: Rewriter) -> None:
    """Rewrite as Add, and Div for Mean, unless all shapes are equal: Sum-6 and Mean-6 do not broadcast."""
    if _have_equal_shapes(node, out):
        out.replace(node)
        return
    require_supported_types(node, out)
    *names, last = node.inputs
    total = fold("Add", names, out.for_opset(7))
    if node.op_type == "Sum":
        out.emit("Add", [total, last], node.outputs, opset=7)
        return
    count = out.constant(len(node.inputs), out.element_type(last))
    out.emit("Div", [out.emit("Add", [total, last], opset=7), count], node.outputs, opset=7)


def _have_equal_shapes(node: Node, out: Rewriter) -> bool:
    first, *others = out.comparable_shapes(node.inputs)
    is_known = first is not None and None not in first
    return len(set(node.inputs)) == 1 or (is_known and all(each == first for each in others))


@adapter(("Max", "Min"), 12, 8)
def compare_64_bit_integers(node: Node, out: Rewriter) -> None:
    """Rewrite Max and Min of 64-bit integers as comparisons and Where: no float type represents them all."""
    if out.element_type(node.inputs[0]) not in ("int64", "uint64"):
        require_supported_types(node, out)
        out.replace(node)
        return
    comparison = "Greater" if node.op_type == "Max" else "Less"
    selected, *rest = node.inputs
    for name in rest:
        is_selected = out.emit(comparison, [selected, name], opset=11)
        selected = out.emit("Where", [is_selected, selected, name], opset=11)
    rename_output(selected, node, out)


@adapter(("Max", "Min"), 8, 6)
def equalize_input_shapes(node: Node, out: Rewriter) -> None:
    """Tile the inputs to one shape; if shapes are unknown, add zeros of the broadcast shape."""
    require_supported_types(node, out)
    if _have_equal_shapes(node, out):
        out.replace(node)
        return
    is_known = _common_shape(out.comparable_shapes(node.inputs)) is not None
    equalize = _tile_to_common_shape if is_known else _broadcast_by_adding_zeros
    out.replace(node, inputs=equalize(node.inputs, out))


def _broadcast_by_adding_zeros(names: Sequence[str], out: Rewriter) -> list[str]:
    """Broadcast the values: add a tensor of -0.0 in the broadcast shape to each value.

    Adding -0.0 changes no number, not even the sign of a zero.
    """
    element_type = out.element_type(names[0])
    out = out.for_opset(7)
    # No value, not even NaN, is less than itself: this yields False in the shape of the input.
    always_false = (out.emit("Less", [name, name]) for name in names if out.shape(name) != ())
    zeros = (out.emit("Neg", [out.cast(each, element_type, opset=6)], opset=6) for each in always_false)
    total = fold("Add", zeros, out)
    return [out.emit("Add", [name, total]) for name in names]


MULTIPLIABLE_TYPES = frozenset(
    {"float16", "float", "double", "int32", "int64", "uint32", "uint64", *ARITHMETIC_TYPES}
)
"""Element types that Mul supports before opset 14, directly or after a cast to a wider type."""


BROADCASTING_OPSET = 7
"""First opset in which Mul and And broadcast shapes that are known only at run time."""


@adapter("Expand", 8, 7)
def expand_by_tiling(node: Node, out: Rewriter) -> None:
    """Repeat dimensions of size 1 by Tile; for unknown sizes, prefer Mul with ones, or And with True."""
    data, shape = node.inputs
    rank, length = out.known_rank(data), out.known_dimension(shape, 0)
    if rank is None or length is None:
        _multiply_by_ones(node, None, out)
        return
    result_rank = out.require_rank(max(rank, length))
    found = _repeats(node, rank, length, out)
    repeats = [each for each in found if each is not None]
    is_known = len(repeats) == len(found)
    if not is_known and out.default_opset >= BROADCASTING_OPSET and _compute_type(data, out):
        _multiply_by_ones(node, length, out)
        return
    if rank < result_rank:
        data = out.emit("Unsqueeze", [data], axes=list(range(result_rank - rank)))
    if is_known and REPEATED not in repeats:
        tiles = out.int64(repeats)
    else:
        if length < result_rank:
            shape = out.emit("Concat", [out.int64([1] * (result_rank - length)), shape], axis=0)
        tiles = _computed_repeats(data, repeats if is_known else None, shape, out)
    out.emit("Tile", [data, tiles], node.outputs)


REPEATED: Final = -1
"""Marker of a dimension of size 1 whose number of repetitions is known only at run time."""


def _repeats(node: Node, rank: int, length: int, out: Rewriter) -> list[int | None]:
    """Return the repetitions of each dimension of the result, as described at `_repetitions`."""
    data, shape = node.inputs
    result_rank = max(rank, length)
    first_axis = result_rank - rank
    sizes = (*[1] * first_axis, *(out.shape(data) or [None] * rank))
    targets = (*[1] * (result_rank - length), *(out.listed_sizes(data, shape) or [None] * length))
    return [
        _repetitions(size, target, axis - first_axis)
        for axis, (size, target) in enumerate(zip(sizes, targets, strict=True))
    ]


def _repetitions(size: int | None, target: ListedSize, axis: int) -> int | None:
    """Return the repetitions of dimension `axis` of the data: a number, `REPEATED`, or `None` if unknown."""
    if size == 1:
        return target if isinstance(target, int) else REPEATED
    # Repeat only sizes that may be 1, unless the target is 1, or equals the size in every run.
    never = target == 1 or size is not None or (isinstance(target, tuple) and axis in target)
    return 1 if never else None


def _computed_repeats(data: str, repeats: Sequence[int] | None, shape: str, out: Rewriter) -> str:
    """Emit the tensor of repetitions: the target size for each dimension of 1, and 1 for all others."""
    if repeats is not None and 1 not in repeats:
        return shape
    one = out.int64([1])
    if repeats is not None:
        is_one = out.int64([int(each != 1) for each in repeats])
    else:
        is_one = cast(out.emit("Equal", [out.emit("Shape", [data]), one]), "int64", out)
    additional = out.emit("Mul", [is_one, out.emit("Sub", [shape, one])])
    return out.emit("Add", [additional, one])


def _compute_type(data: str, out: Rewriter) -> str | None:
    """Return the type for Mul with ones, `bool` for And, or `None` if the type is unknown or unsupported."""
    element_type = out.known_element_type(data) or ""
    if element_type != "bool" and element_type not in MULTIPLIABLE_TYPES:
        return None
    return ARITHMETIC_TYPES.get(element_type, element_type)


def _multiply_by_ones(node: Node, length: int | None, out: Rewriter) -> None:
    """Emit Mul with ones, or And with True, in the target shape; `length` is its rank, `None` if unknown.

    Raises:
        UnknownShape: the element type is unknown, or neither Mul nor And supports it.
    """
    data, shape = node.inputs
    compute_type = _compute_type(data, out)
    if compute_type is None:
        reason = f"the rank of {data!r} or the length of {shape!r} is unknown"
        raise UnknownShape(reason, data, shape, otherwise="convert to opset 8 or later")
    is_bool = compute_type == "bool"
    # ConstantOfShape exists only since opset 9: tile a single element of the target rank.
    if length is None:
        zeros = out.emit("Sub", [shape, shape])
        ones = out.emit("Add", [zeros, out.int64([1])])
        single = out.emit("Reshape", [out.constant([is_bool or 1], compute_type), ones])
    else:
        single = out.tensor(Tensor(compute_type, (1,) * out.require_rank(length), (is_bool or 1,)))
    value = cast_between(data, out.element_type(data), compute_type, out)
    product = out.emit("And" if is_bool else "Mul", [value, out.emit("Tile", [single, shape])])
    cast_output(product, compute_type, out.element_type(data), node, out)
