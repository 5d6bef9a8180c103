"""Attributes, inputs and resized axes of a Resize or Upsample node of any version."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor
from opshift.adapters.emit.shapes import computed_dimension
from opshift.adapters.ops.tensor.resize_samples import (
    ResizeAxis,
    Sampling,
    Vector,
    computed_vector,
    is_unchanged,
)
from opshift.model.element_types import round_to_float32

ERROR = (
    "at most N 2^-22 of the largest pixel, for N pixels along the resized axes, and 1 unit in the last place "
    "of a type narrower than float; mode nearest reads a pixel at a distance of at most N 2^-22"
)
"""Bound of the rounding error of pixels, caused by coordinates that are computed in float32."""

STRETCH = "stretch"

LENGTH_DEPENDENT_COORDINATES = ("align_corners", "tf_crop_and_resize", "pytorch_half_pixel")
"""Coordinate modes that depend on the length of the output, in addition to the scale."""

REPEATING_MODES = (
    ("half_pixel", "round_prefer_floor"),
    ("half_pixel", "round_prefer_ceil"),
    ("pytorch_half_pixel", "round_prefer_floor"),
    ("pytorch_half_pixel", "round_prefer_ceil"),
    ("tf_half_pixel_for_nn", "floor"),
)
"""Pairs of coordinate and rounding mode that repeat pixels as version 10 does, for integer scales."""


class ResizeRequest(NamedTuple):
    """Inputs (`""` if absent), axes, aspect ratio policy and sampling method of a Resize or Upsample."""

    data: str
    roi: str
    scales: str
    sizes: str
    axes: tuple[int, ...]
    rank: int
    policy: str
    sampling: Sampling

    @property
    def crops(self) -> bool:
        """Whether `roi` selects the part of the input to resize."""
        return self.sampling.coordinates == "tf_crop_and_resize"


def text_attribute(node: Node, name: str, default: str) -> str:
    """Return a string attribute, or `default` if the node does not have it."""
    value = node.attribute(name)
    return value.decode() if isinstance(value, bytes) else default


def read_request(node: Node, out: Rewriter) -> ResizeRequest:
    """Read the inputs and attributes of a Resize or Upsample of any version."""
    sampling = _read_sampling(node, out)
    rank = out.rank(node.inputs[0])
    axes = tuple(axis % rank for axis in node.attribute("axes", range(rank)))
    policy = text_attribute(node, "keep_aspect_ratio_policy", STRETCH)
    roi, scales, sizes = (node.input(position) for position in (1, 2, 3))
    if out.source.since_version < 11:
        roi, scales = "", node.input(1)
    elif sizes:
        scales = ""
    _require_length(out.constant_value(sizes or scales), sizes or scales, len(axes))
    return ResizeRequest(node.inputs[0], roi, scales, sizes, axes, rank, policy, sampling)


def _read_sampling(node: Node, out: Rewriter) -> Sampling:
    """Return the sampling method of a node; before version 11, a node can only choose the mode."""
    mode = text_attribute(node, "mode", "nearest")
    if out.source.since_version < 11:
        return Sampling(mode, "asymmetric", "by_direction")
    antialias = mode != "nearest" and bool(node.attribute("antialias", 0))
    return Sampling(
        mode,
        text_attribute(node, "coordinate_transformation_mode", "half_pixel"),
        text_attribute(node, "nearest_mode", "round_prefer_floor"),
        node.attribute("cubic_coeff_a", -0.75),
        (mode == "cubic" or antialias) and bool(node.attribute("exclude_outside", 0)),
        antialias,
    )


def read_axes(node: Node, request: ResizeRequest, out: Rewriter) -> dict[int, ResizeAxis]:
    """Return the axes whose pixels may change, by number; emit nodes for unknown sizes and scales."""
    kept = _kept_positions(request, out)
    positions = [position for position in range(len(request.axes)) if position not in kept]
    changed = [request.axes[position] for position in positions]
    sizes = [
        _known_size(request.data, axis, out) or _computed_size(request.data, axis, out) for axis in changed
    ]
    declared = [_known_size(node.output(0), axis, out) for axis in changed]
    count = len(request.axes)
    lengths: list[Vector]
    if not request.sizes:
        scales = _elements(request.scales, count, positions, out)
        scaled = zip(declared, sizes, scales, strict=True)
        lengths = [length or (size * scale).apply("Floor") for length, size, scale in scaled]
    elif request.policy == STRETCH:
        known = [length for length in declared if length is not None]
        if out.constant_value(request.sizes) is None and len(known) == len(sizes):
            lengths = known
        else:
            lengths = _elements(request.sizes, count, positions, out)
        scales = [length / size for length, size in zip(lengths, sizes, strict=True)]
    else:
        targets = _elements(request.sizes, count, positions, out)
        scale, *others = [target / size for target, size in zip(targets, sizes, strict=True)]
        for ratio in others:
            scale = scale.apply("Min" if request.policy == "not_larger" else "Max", ratio)
        scales = [scale] * len(sizes)
        pairs = zip(declared, sizes, strict=True)
        lengths = [length or (scale * size + 0.5).apply("Floor") for length, size in pairs]
        _require_equal_rounding(targets, sizes, lengths, request.policy)
    axes = [ResizeAxis(*numbers) for numbers in zip(sizes, lengths, scales, strict=True)]
    if request.crops:
        axes = _add_regions(axes, request, out)
    return dict(zip(changed, axes, strict=True))


def _kept_positions(request: ResizeRequest, out: Rewriter) -> set[int]:
    """Return the positions in `axes` of kept sizes; none for crops, policies, or if all sizes are known."""
    dims = [out.known_dimension(request.data, axis) for axis in request.axes]
    if request.crops or request.policy != STRETCH or None not in dims:
        return set()
    if not request.sizes:
        scales = out.constant_value(request.scales)
        return {position for position, scale in enumerate(scales.values if scales else ()) if scale == 1}
    listed = out.listed_sizes(request.data, request.sizes) or ()
    pairs = enumerate(zip(request.axes, dims, listed, strict=False))
    return {
        position
        for position, (axis, dim, size) in pairs
        if (axis in size if isinstance(size, tuple) else size is not None and size == dim)
    }


def _require_equal_rounding(
    targets: Sequence[Vector], sizes: Sequence[Vector], lengths: Sequence[Vector], policy: str
) -> None:
    """Refuse known sizes that runtimes, which compute in float32, round unlike the specification."""
    from fractions import Fraction  # imported here: few models need this import, which takes 2 ms

    numbers = [
        (*(target.numbers or ()), *(size.numbers or ())) for target, size in zip(targets, sizes, strict=True)
    ]
    if any(len(pair) != 2 or not pair[1] for pair in numbers):
        return
    ratio = (min if policy == "not_larger" else max)(
        Fraction(target) / Fraction(size) for target, size in numbers
    )
    for (_, size), length in zip(numbers, lengths, strict=True):
        if length.numbers != (math.floor(ratio * Fraction(size) + Fraction(1, 2)),):
            raise CannotConvert(
                "an output size is close to a midpoint of two integers, which runtimes round differently",
                "result.runtime-dependent",
                remedy="list the sizes, without keep_aspect_ratio_policy",
            )


def _known_size(name: str, axis: int, out: Rewriter) -> Vector | None:
    size = out.known_dimension(name, axis)
    return None if size is None else Vector((float(size),))


def _computed_size(data: str, axis: int, out: Rewriter) -> Vector:
    return computed_vector(out.cast(computed_dimension(data, axis, out), "float"), out)


def _add_regions(axes: list[ResizeAxis], request: ResizeRequest, out: Rewriter) -> list[ResizeAxis]:
    """Set `start` and `end` of each axis to the bounds in `roi`, for `tf_crop_and_resize`."""
    if not request.roi:
        reason = "roi is missing, but tf_crop_and_resize requires it"
        raise CannotConvert(reason, "node.invalid", remedy="add input roi")
    count = 2 * len(axes)
    bounds = _elements(request.roi, count, range(count), out)
    regions = zip(axes, bounds[: len(axes)], bounds[len(axes) :], strict=True)
    return [axis._replace(start=start, end=end) for axis, start, end in regions]


def _elements(name: str, count: int, positions: Sequence[int], out: Rewriter) -> list[Vector]:
    """Return the elements at `positions` of an input of length `count`, each as a float vector."""
    known = out.constant_value(name)
    if known is not None:
        _require_length(known, name, count)
        return [Vector((round_to_float32(known.values[position]),)) for position in positions]
    if out.element_type(name) != "float":
        name = out.cast(name, "float")
    indices = map(out.int64, ([position] for position in positions))
    return [computed_vector(out.emit("Gather", [name, index], axis=0), out) for index in indices]


def _require_length(known: Tensor | None, name: str, count: int) -> None:
    """Refuse a constant input with another number of elements than `count`."""
    if known is not None and len(known.values) != count:
        reason = f"{name!r} has {len(known.values)} elements, expected {count}"
        raise CannotConvert(reason, "node.invalid", remedy="correct the number of elements, or axes")


def has_constant_axes(node: Node, request: ResizeRequest, out: Rewriter) -> bool:
    """Return whether `read_axes` knows all sizes and scales, so that it emits no nodes."""
    sizes, lengths = (
        [out.known_dimension(name, axis) for axis in request.axes] for name in (request.data, node.output(0))
    )
    has_lengths = request.policy == STRETCH and bool(request.sizes) and None not in lengths
    is_constant = has_lengths or out.constant_value(request.sizes or request.scales) is not None
    has_region = not request.crops or out.constant_value(request.roi) is not None
    return is_constant and None not in sizes and has_region


def has_integer_scales(node: Node, out: Rewriter) -> bool:
    """Return whether all scales of a Resize-11 are known to be integers."""
    if node.input(3):
        sizes, shape = out.constant_value(node.input(3)), out.known_shape(node.inputs[0])
        if sizes is None or shape is None:
            return False
        return all(dim and size % dim == 0 for size, dim in zip(sizes.values, shape, strict=True))
    scales = out.constant_value(node.input(2))
    return scales is not None and all(map(float.is_integer, scales.values))


def repeats_pixels(request: ResizeRequest, out: Rewriter) -> bool:
    """Return whether a node is known to enlarge by repeating pixels as version 10 does."""
    scales = out.constant_value(request.scales)
    if request.sampling.mode != "nearest" or scales is None or min(scales.values, default=0) < 1:
        return False
    modes = (request.sampling.coordinates, request.sampling.rounding)
    if modes == ("asymmetric", "floor"):
        return True
    return modes in REPEATING_MODES and all(map(float.is_integer, scales.values))


def runtime_difference(axes: Mapping[int, ResizeAxis], request: ResizeRequest) -> str:
    """Describe how onnxruntime deviates from the specification for these axes; `""` for no deviation."""
    sampling = request.sampling
    changed = [axis for axis in axes.values() if not is_unchanged(axis, sampling)]
    kept = [axis for axis in changed if _may_keep_its_size(axis, request)]
    if kept and (len(kept) == len(changed) or sampling.antialias or sampling.coordinates.startswith("tf_")):
        return "onnxruntime copies a dimension of unchanged size; by the definition, its pixels are shifted"
    if not request.scales or sampling.coordinates not in LENGTH_DEPENDENT_COORDINATES:
        return ""
    fractions = [axis for axis in changed if not _has_integer_length(axis)]
    if sampling.coordinates == "pytorch_half_pixel":
        fractions = [axis for axis in fractions if axis.length.numbers in (None, (1.0,))]
    if fractions:
        return (
            f"onnxruntime rounds fractional sizes down before {sampling.coordinates}; other runtimes do not"
        )
    return ""


def _may_keep_its_size(axis: ResizeAxis, request: ResizeRequest) -> bool:
    """Return whether an axis whose pixels change may have equal input and output sizes."""
    if axis.length.numbers is not None and axis.size.numbers is not None:
        return axis.length.numbers == axis.size.numbers
    if request.sampling.antialias or request.sampling.coordinates.startswith("tf_"):
        return True
    # Without the input `scales`, only a policy can make the scale differ from the ratio of the sizes.
    if not request.scales and request.policy == STRETCH:
        return False
    return axis.scale.numbers is None or 1 < axis.scale.numbers[0] < 2


def _has_integer_length(axis: ResizeAxis) -> bool:
    """Return whether size times scale is known to be an integer, up to the rounding of the scale."""
    if axis.scale.numbers is None:
        return False
    if axis.scale.numbers[0].is_integer():
        return True
    if axis.size.numbers is None:
        return False
    exact = axis.size.numbers[0] * axis.scale.numbers[0]
    return abs(exact - round(exact)) < 1e-5 * exact


def equivalent_scales(axes: Mapping[int, ResizeAxis], rank: int) -> Sequence[float] | None:
    """Return one scale for each dimension such that size * scale, rounded down, is the output size.

    Return `None` if a number is unknown, or if the product in float or in double gives another size: runtimes
    use either type.
    """
    scales = [1.0] * rank
    for axis, (size, length, scale, *_) in axes.items():
        if size.numbers is None or length.numbers is None or scale.numbers is None:
            return None
        exact = size.numbers[0] * scale.numbers[0]
        if not math.floor(exact) == math.floor(round_to_float32(exact)) == length.numbers[0]:
            return None
        scales[axis] = scale.numbers[0]
    return scales
