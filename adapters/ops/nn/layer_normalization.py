"""LayerNormalization, RMSNormalization and MeanVarianceNormalization: statistics over some dimensions.

The first two compute in the type that `stash_type` names, and scale in the type of their data.
"""

from collections.abc import Sequence

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.emit.expression import Expression, square
from opshift.adapters.ops.legacy.experimental import require_four_dimensions
from opshift.model.element_types import BY_NUMBER, round_to_float32

ARITHMETIC_OPSET = 8
"""Opset of the arithmetic emitted here, before negative axes were introduced in opset 11."""

MAX_NEUTRAL_BIAS = 8192
"""Maximum number of elements of a bias that is added for a LayerNormalization without one."""


@adapter("MeanVarianceNormalization", 1, 9)
def normalize_without_epsilon(node: Node, out: Rewriter) -> None:
    """Rewrite as arithmetic: version 9 adds 1e-9 to the standard deviation, version 1 nothing."""
    if "axes" in node.attributes:
        reason = "axes is set, but version 1 does not define it"
        raise CannotConvert(reason, "attribute.unsupported", remedy="import opset 9, which defines axes")
    data = node.inputs[0]
    require_four_dimensions(data, out)
    axes = (0, 1, 2, 3) if node.attribute("across_channels", 0) else (0, 2, 3)
    mean = out.emit("ReduceMean", [data], axes=axes)
    if not node.attribute("normalize_variance", 1):
        out.emit("Sub", [data, mean], node.outputs)
        return
    deviation = out.emit("Sub", [data, mean])
    variance = out.emit("ReduceMean", [out.emit("Mul", [deviation, deviation])], axes=axes)
    out.emit("Div", [deviation, out.emit("Sqrt", [variance])], node.outputs)


@adapter("MeanVarianceNormalization", 9, 1)
def expand_mean_variance_normalization(node: Node, out: Rewriter) -> None:
    """Rewrite as `(x - mean) / (deviation + 1e-9)`; runtimes lack the experimental version 1."""
    data, rank = node.inputs[0], out.known_rank(node.inputs[0])
    axes = [axis % rank if rank else axis for axis in node.attribute("axes", (0, 2, 3))]
    out = out.for_opset(ARITHMETIC_OPSET)
    centered = out.emit("Sub", [data, _mean(data, axes, out)])
    squared = out.emit("Mul", [centered, centered])
    deviation = Expression(_mean(squared, axes, out), out.element_type(data), out).apply("Sqrt")
    # The function body adds this constant to avoid a division by zero.
    out.emit("Div", [centered, (deviation + round_to_float32(1e-9)).name], node.outputs)


def _mean(data: str, axes: Sequence[int], out: Rewriter, name: str = "") -> str:
    outputs = [name] if name else 1
    opset = 11 if min(axes, default=0) < 0 else ARITHMETIC_OPSET
    return out.emit("ReduceMean", [data], outputs, axes=tuple(axes), keepdims=1, opset=opset)


@adapter("LayerNormalization", 17, 16)
def expand_layer_normalization(node: Node, out: Rewriter) -> None:
    """Rewrite as `(x - mean) / sqrt(variance + epsilon) * scale + bias`.

    Runtimes fuse this form: with Pow for the square, a Div, and the Add of a bias.
    """
    data, scale, bias = node.inputs[0], node.inputs[1], node.input(2)
    element_type = out.element_type(data)
    stash_type = BY_NUMBER[node.attribute("stash_type", 1)].name
    axes = _normalized_axes(node, out)
    stashed = _cast(data, element_type, stash_type, out)
    mean = _mean(stashed, axes, out, node.output(1))
    centered = out.emit("Sub", [stashed, mean])
    variance = _mean(square(centered, stash_type, out), axes, out)
    deviation = _standard_deviation(variance, node, stash_type, out)
    if out.is_used(node.output(2)):
        out.emit("Reciprocal", [deviation], [node.output(2)])
    normalized = _cast(out.emit("Div", [centered, deviation]), stash_type, element_type, out)
    bias = bias or _neutral_bias(scale, out)
    if not bias:
        out.emit("Mul", [normalized, scale], node.outputs[:1])
        return
    out.emit("Add", [out.emit("Mul", [normalized, scale]), bias], node.outputs[:1])


def _normalized_axes(node: Node, out: Rewriter) -> Sequence[int]:
    """Return the dimensions from `axis` onwards; negative axes if the rank is unknown."""
    axis, rank = node.attribute("axis", -1), out.known_rank(node.inputs[0])
    if axis < 0 and rank is None:
        return range(axis, 0)
    rank = out.rank(node.inputs[0])
    return range(axis % rank, rank)


def _neutral_bias(scale: str, out: Rewriter) -> str:
    """Return a bias that changes no number, because runtimes fuse only sums; `""` if its shape is unknown."""
    shape = out.shape(scale)
    if shape is None or len(shape) != 1 or shape[0] is None or shape[0] > MAX_NEUTRAL_BIAS:
        return ""
    # The sum with 0.0 would turn -0.0 into 0.0.
    return out.constant([-0.0] * shape[0], out.element_type(scale))


def _cast(value: str, source: str, target: str, out: Rewriter) -> str:
    return value if source == target else out.cast(value, target)


def _standard_deviation(mean_square: str, node: Node, stash_type: str, out: Rewriter) -> str:
    """Return `sqrt(mean_square + epsilon)`."""
    epsilon = out.constant(node.attribute("epsilon", 1e-5), stash_type)
    return out.emit("Sqrt", [out.emit("Add", [mean_square, epsilon])])


@adapter("RMSNormalization", 23, 22)
def expand_rms_normalization(node: Node, out: Rewriter) -> None:
    """Rewrite as `x / sqrt(mean(x * x) + epsilon) * scale`; the result has the type of the scale."""
    data, scale = node.inputs
    element_type, scale_type = out.element_type(data), out.element_type(scale)
    stash_type = BY_NUMBER[node.attribute("stash_type", 1)].name
    stashed = _cast(data, element_type, stash_type, out)
    mean_square = _mean(square(stashed, stash_type, out), _normalized_axes(node, out), out)
    normalized = out.emit("Div", [stashed, _standard_deviation(mean_square, node, stash_type, out)])
    normalized = _cast(_cast(normalized, stash_type, element_type, out), element_type, scale_type, out)
    out.emit("Mul", [normalized, scale], node.outputs)
