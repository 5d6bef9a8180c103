"""BatchNormalization, Group-, Instance-, Layer-, RMS- and MeanVarianceNormalization.

Versions of BatchNormalization differ in how they declare training, and in the types of statistics and
parameters; versions of GroupNormalization in whether scale and bias belong to groups or channels.
LayerNormalization and RMSNormalization normalize in the type `stash_type`, and multiply in that of the scale.
"""

from collections.abc import Sequence
from typing import NamedTuple

from opshift.adapters import (
    CannotConvert,
    Node,
    Rewriter,
    Tensor,
    adapter,
    expression,
    require_supported_types,
)
from opshift.adapters.emit.expression import Expression, square
from opshift.adapters.emit.shapes import Dimension, computed_dimension, reshape, shape_tensor
from opshift.adapters.ops.legacy import require_four_dimensions
from opshift.model.element_types import BY_NUMBER, round_to_float32

STASH_TYPES = {"float": None, "float16": 10, "double": 11, "bfloat16": 16}
"""Value of `stash_type` by element type of the data; `None` omits the attribute, which defaults to float.

Before version 21, GroupNormalization computes in the element type of the data.
"""

HALF_PRECISION_TYPES = ("float16", "bfloat16")
"""Types for which version 15 computes the statistics of a batch in float32."""

WIDTH_ORDER = {"float16": 1, "bfloat16": 1, "float": 2, "double": 3}
"""Rank of each type by its number of bits."""


@adapter("BatchNormalization", 6, 7)
def drop_is_test(node: Node, out: Rewriter) -> None:
    """Drop `is_test`: since version 7 the number of outputs distinguishes training from inference."""
    is_test = node.attribute("is_test", 0)
    if bool(is_test) == _is_training(node):
        raise CannotConvert(
            f"is_test is {is_test}, but {len(node.outputs)} outputs mean the opposite since version 7",
            "training.unsupported",
            remedy="set is_test to 1 if the model is for inference",
        )
    out.replace(node, attributes=node.without("is_test"))


@adapter("BatchNormalization", 7, 9)
def expand_non_spatial_normalization(node: Node, out: Rewriter) -> None:
    """Rewrite `spatial` 0, which keeps statistics for every element of a sample, as arithmetic."""
    if node.attribute("spatial", 1):
        out.replace(node, attributes=node.without("spatial"))
        return
    if _is_training(node):
        reason = "the node trains with spatial 0, which no later version supports"
        raise CannotConvert(reason, "training.unsupported")
    _emit_normalization(node, node.inputs, out.element_type(node.inputs[0]), out)


@adapter("BatchNormalization", 9, 14)
def add_training_mode(node: Node, out: Rewriter) -> None:
    """Set `training_mode` if the number of outputs implies training; refuse outputs 4 and 5 in use."""
    if not _is_training(node):
        out.replace(node, outputs=node.outputs[:1])
        return
    if any(out.is_used(node.output(position)) for position in (3, 4)):
        reason = "the statistics of the batch (outputs 4 and 5) are used, but version 14 does not have them"
        raise CannotConvert(reason, "output.unsupported")
    outputs = [node.output(position) or out.fresh("statistics") for position in range(3)]
    out.replace(node, outputs=outputs, attributes={**node.attributes, "training_mode": 1})


@adapter("BatchNormalization", 15, 14)
def unify_parameter_types(node: Node, out: Rewriter) -> None:
    """Cast data, scale and bias to one type; statistics of a batch are computed in at least float32."""
    wider = _common_type(node.inputs[:3], out)
    is_half = out.element_type(node.inputs[0]) in HALF_PRECISION_TYPES
    if wider is None and is_half and node.attribute("training_mode", 0):
        wider = "float"
    if wider is None:
        out.replace(node)
    else:
        _emit_in_type(wider, 3, 1, node, out)


@adapter("BatchNormalization", 14, 9)
def expand_training(node: Node, out: Rewriter) -> None:
    """Keep inference; for training, emit the batch statistics: runtimes do not train before version 14."""
    wider = _common_type(node.inputs[:5], out)
    if wider is not None:
        _emit_in_type(wider, 5, 3, node, out)
        return
    require_supported_types(node, out)
    attributes = node.without("training_mode")
    if not node.attribute("training_mode", 0):
        out.replace(node, outputs=node.outputs[:1], attributes=attributes)
        return
    mean, variance = _batch_statistics(node.inputs[0], out)
    inputs = (*node.inputs[:3], mean, variance)
    out.replace(node, inputs=inputs, outputs=node.outputs[:1], attributes=attributes)
    for position, current in ((1, mean), (2, variance)):
        if node.output(position):
            _emit_running_statistic(node, position, current, out.element_type(node.inputs[0]), out)


@expression("BatchNormalization", 14, 15)
def express_in_arithmetic(node: Node, out: Rewriter) -> None:
    """Rewrite as arithmetic in at least float32, for runtimes whose kernel needs constant parameters."""
    wider = _common_type(node.inputs[:5], out) or out.element_type(node.inputs[0])
    wider = "float" if wider in HALF_PRECISION_TYPES else wider
    axes = list(range(1, out.rank(node.inputs[0]) - 1))
    node, casts_back = _in_type(wider, 5, 3, node, out)
    older = out.for_opset(9)
    data, *parameters = node.inputs
    if node.attribute("training_mode", 0):
        parameters[2:] = _batch_statistics(data, older)
        for position in (1, 2):
            if node.output(position):
                _emit_running_statistic(node, position, parameters[position + 1], wider, older)
    columns = [older.emit("Unsqueeze", [name], axes=axes) if axes else name for name in parameters]
    _emit_normalization(node, [data, *columns], wider, older)
    for each in casts_back:
        out.cast(each.value, each.element_type, [each.output], opset=out.source.since_version)


@adapter("BatchNormalization", 7, 6)
def add_is_test(node: Node, out: Rewriter) -> None:
    """Set `is_test` from the number of outputs, which distinguishes training from inference in version 7."""
    is_test = int(not any(node.outputs[1:]))
    out.replace(node, attributes={**node.attributes, "is_test": is_test})


def _is_training(node: Node) -> bool:
    return any(node.outputs[1:])


def _emit_normalization(node: Node, inputs: Sequence[str], element_type: str, out: Rewriter) -> None:
    """Emit the first output; `inputs` (data, scale, bias, mean, variance) broadcast and have one type."""
    data, scale, bias, mean, variance = inputs
    epsilon = out.constant(node.attribute("epsilon", 1e-5), element_type)
    deviation = out.emit("Sqrt", [out.emit("Add", [variance, epsilon])])
    normal = out.emit("Div", [out.emit("Sub", [data, mean]), deviation])
    out.emit("Add", [out.emit("Mul", [normal, scale]), bias], node.outputs[:1])


def _common_type(names: Sequence[str], out: Rewriter) -> str | None:
    """Return the narrowest type that represents all values of the inputs; `None` if their types are equal."""
    types = {out.element_type(name) for name in names}
    if len(types) == 1:
        return None
    widest = max(types, key=lambda element_type: WIDTH_ORDER[element_type])
    # Neither float16 nor bfloat16 represents all values of the other type.
    return "float" if WIDTH_ORDER[widest] == 1 else widest


class _CastBack(NamedTuple):
    """Cast to emit: from `value` to `output`, an output of the original node with type `element_type`."""

    value: str
    element_type: str
    output: str


def _emit_in_type(element_type: str, input_count: int, output_count: int, node: Node, out: Rewriter) -> None:
    """Emit the node; cast its first inputs to `element_type`, and its first outputs back."""
    # Emit the source version, so that this step runs again on the node, whose inputs then have one type.
    opset = out.source.since_version
    wide, casts_back = _in_type(element_type, input_count, output_count, node, out)
    out.replace(node, inputs=wide.inputs, outputs=wide.outputs, opset=opset)
    for each in casts_back:
        out.cast(each.value, each.element_type, [each.output], opset=opset)


def _in_type(
    element_type: str, input_count: int, output_count: int, node: Node, out: Rewriter
) -> tuple[Node, list[_CastBack]]:
    """Emit casts of the first inputs; return the node with these inputs, and the casts of outputs to emit."""
    inputs, outputs, casts_back = list(node.inputs), list(node.outputs), []
    for position, name in enumerate(inputs[:input_count]):
        if out.element_type(name) != element_type:
            inputs[position] = out.cast(name, element_type, opset=out.source.since_version)
    for position, name in enumerate(outputs[:output_count]):
        # Output 0 has the type of the data; outputs 1 and 2 have the types of inputs 3 and 4.
        original_type = out.element_type(node.inputs[0 if position == 0 else position + 2])
        if name and original_type != element_type:
            outputs[position] = out.fresh(f"{name}_wide")
            casts_back.append(_CastBack(outputs[position], original_type, name))
    return node.with_(inputs=inputs, outputs=outputs), casts_back


@adapter("GroupNormalization", 21, 18, 17)
def expand_group_normalization(node: Node, out: Rewriter) -> None:
    """Rewrite as InstanceNormalization over the groups, then scale each channel."""
    data, scale, bias = node.inputs
    compute_type = BY_NUMBER[node.attribute("stash_type", 1)].name
    if out.source.since_version < 21:
        groups, compute_type = node.attribute("num_groups"), out.element_type(data)
        scale, bias = (_repeat_per_channel(name, groups, data, out) for name in (scale, bias))
    normalized = _normalize_groups(node, compute_type, out)
    shape = out.emit("Shape", [data])
    restored = out.emit("Reshape", [normalized, shape])
    rank = out.known_rank(data)
    if rank is not None:
        scale, bias = (reshape(name, (-1, *[1] * (rank - 2)), out) for name in (scale, bias))
        out.emit("Add", [out.emit("Mul", [restored, scale]), bias], node.outputs)
        return
    # Flatten the spatial dimensions, so that columns of scale and bias broadcast.
    channels = reshape(restored, (0, 0, -1), out)
    scale, bias = (reshape(name, (-1, 1), out) for name in (scale, bias))
    scaled = out.emit("Mul", [channels, scale])
    out.emit("Reshape", [out.emit("Add", [scaled, bias]), shape], node.outputs)


def _batch_statistics(data: str, out: Rewriter) -> tuple[str, str]:
    """Return the mean and the population variance of each channel."""
    rank = out.known_rank(data)
    # Reshape only data of unknown rank, because Reshape cannot infer the last dimension of empty data.
    if rank is None:
        data, rank = reshape(data, (0, 0, -1), out), 3
    axes = [0, *range(2, rank)]
    means = out.emit("ReduceMean", [data], axes=axes, keepdims=1)
    deviation = out.emit("Sub", [data, means])
    squares = out.emit("Mul", [deviation, deviation])
    # Data of rank 1 has one channel, whose variance has the shape (1,).
    variance = out.emit("ReduceMean", [squares], axes=axes, keepdims=int(rank == 1))
    return reshape(means, (-1,), out), variance


def _emit_running_statistic(
    node: Node, position: int, current: str, element_type: str, out: Rewriter
) -> None:
    """Emit `momentum * old + (1 - momentum) * current`, the running mean or variance."""
    momentum = node.attribute("momentum", 0.9)
    kept = out.emit("Mul", [node.inputs[position + 2], out.constant(momentum, element_type)])
    added = out.emit("Mul", [current, out.constant(1.0 - momentum, element_type)])
    out.emit("Add", [kept, added], [node.outputs[position]])


@adapter("GroupNormalization", 18, 21)
def repeat_scale_and_bias(node: Node, out: Rewriter) -> None:
    """Repeat `scale` and `bias`, which have one value per group in version 18, for each channel."""
    data, scale, bias = node.inputs
    stash_type = STASH_TYPES[out.element_type(data)]
    groups = node.attribute("num_groups")
    attributes = {**node.attributes, **({"stash_type": stash_type} if stash_type else {})}
    repeated = [_repeat_per_channel(name, groups, data, out) for name in (scale, bias)]
    out.replace(node, inputs=[data, *repeated], attributes=attributes)


def _repeat_per_channel(name: str, groups: int, data: str, out: Rewriter) -> str:
    """Repeat each value of `name`, one per group, for every channel of the group."""
    count = out.known_dimension(name, 0)
    if count not in (None, groups):
        reason = f"{name!r} has the size {count}, but num_groups is {groups}"
        remedy = "import opset 21, if the input has an element for each channel (see `opshift doctor`)"
        raise CannotConvert(reason, "node.invalid", remedy=remedy)
    tensor, channels = out.constant_value(name), out.known_dimension(data, 1)
    if tensor is not None and channels is not None:
        repeats = out.require_elements(channels) // groups
        values = tuple(value for value in tensor.values for _ in range(repeats))
        return out.tensor(Tensor(tensor.element_type, (len(values),), values))
    column = reshape(name, (-1, 1), out)
    size: Dimension = channels // groups if channels is not None else ""
    if channels is None:
        size = out.emit("Div", [computed_dimension(data, 1, out), out.int64([groups])])
    expanded = out.emit("Expand", [column, shape_tensor((1, size), out)])
    return reshape(expanded, (-1,), out)


def _normalize_groups(node: Node, compute_type: str, out: Rewriter) -> str:
    """Normalize each group by InstanceNormalization, as a channel with one spatial dimension."""
    data, groups = node.inputs[0], node.attribute("num_groups")
    element_type = out.element_type(data)
    if compute_type == "bfloat16":  # InstanceNormalization supports bfloat16 only since version 22
        compute_type = "float"
    if compute_type != element_type:
        data = out.cast(data, compute_type)
    grouped = reshape(data, (0, groups, -1), out)
    out.require_elements(groups)
    ones, zeros = (out.constant([number] * groups, compute_type) for number in (1.0, 0.0))
    epsilon = node.attribute("epsilon", 1e-5)
    normalized = out.emit("InstanceNormalization", [grouped, ones, zeros], epsilon=epsilon)
    return normalized if compute_type == element_type else out.cast(normalized, element_type)


@adapter("InstanceNormalization", 6, 1)
def reshape_data_to_rank_4(node: Node, out: Rewriter) -> None:
    """Reshape data to rank 4, the only rank that version 1 supports, and restore the rank of the result."""
    data = node.inputs[0]
    if out.known_rank(data) == 4:
        out.replace(node)
        return
    image = reshape(data, (0, 0, -1, 1), out, opset=5)
    normalized = out.fresh("instance")
    out.replace(node, inputs=(image, *node.inputs[1:]), outputs=[normalized])
    out.emit("Reshape", [normalized, out.emit("Shape", [data])], node.outputs, opset=5)


ARITHMETIC_OPSET = 8
"""Opset of the emitted arithmetic, unless axes are negative, which opset 11 introduced."""

MAX_NEUTRAL_BIAS = 8192
"""Maximum number of elements of the bias that is added to a LayerNormalization without a bias."""


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
    centered = out.emit("Sub", [data, _emit_mean(data, axes, out)])
    squared = out.emit("Mul", [centered, centered])
    deviation = Expression(_emit_mean(squared, axes, out), out.element_type(data), out).apply("Sqrt")
    # Add the constant of the function body, which avoids a division by zero.
    out.emit("Div", [centered, (deviation + round_to_float32(1e-9)).name], node.outputs)


def _emit_mean(data: str, axes: Sequence[int], out: Rewriter, name: str = "") -> str:
    outputs = [name] if name else 1
    opset = 11 if min(axes, default=0) < 0 else ARITHMETIC_OPSET
    return out.emit("ReduceMean", [data], outputs, axes=tuple(axes), keepdims=1, opset=opset)


@adapter("LayerNormalization", 17, 16)
def expand_layer_normalization(node: Node, out: Rewriter) -> None:
    """Rewrite as `(x - mean) / sqrt(variance + epsilon) * scale + bias`.

    Square by Pow, divide by Div and add a bias, by default -0.0, because runtimes fuse only these nodes.
    """
    data, scale, bias = node.inputs[0], node.inputs[1], node.input(2)
    element_type = out.element_type(data)
    stash_type = BY_NUMBER[node.attribute("stash_type", 1)].name
    axes = _normalized_axes(node, out)
    stashed = _cast_if_needed(data, element_type, stash_type, out)
    mean = _emit_mean(stashed, axes, out, node.output(1))
    centered = out.emit("Sub", [stashed, mean])
    variance = _emit_mean(square(centered, stash_type, out), axes, out)
    deviation = _standard_deviation(variance, node, stash_type, out)
    if out.is_used(node.output(2)):
        out.emit("Reciprocal", [deviation], [node.output(2)])
    normalized = _cast_if_needed(out.emit("Div", [centered, deviation]), stash_type, element_type, out)
    bias = bias or _neutral_bias(scale, out)
    if not bias:
        out.emit("Mul", [normalized, scale], node.outputs[:1])
        return
    out.emit("Add", [out.emit("Mul", [normalized, scale]), bias], node.outputs[:1])


def _normalized_axes(node: Node, out: Rewriter) -> Sequence[int]:
    """Return the axes from `axis` to the last one; negative axes if the rank is unknown."""
    axis, rank = node.attribute("axis", -1), out.known_rank(node.inputs[0])
    if axis < 0 and rank is None:
        return range(-out.require_rank(-axis), 0)
    rank = out.rank(node.inputs[0])
    return range(axis % rank, rank)


def _neutral_bias(scale: str, out: Rewriter) -> str:
    """Return a bias of -0.0, because runtimes fuse only nodes with an Add; `""` if the size is not small."""
    shape = out.shape(scale)
    if shape is None or len(shape) != 1 or shape[0] is None or shape[0] > MAX_NEUTRAL_BIAS:
        return ""
    # A bias of 0.0 would turn results of -0.0 into 0.0.
    return out.constant([-0.0] * shape[0], out.element_type(scale))


def _cast_if_needed(value: str, source: str, target: str, out: Rewriter) -> str:
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
    stashed = _cast_if_needed(data, element_type, stash_type, out)
    mean_square = _emit_mean(square(stashed, stash_type, out), _normalized_axes(node, out), out)
    normalized = out.emit("Div", [stashed, _standard_deviation(mean_square, node, stash_type, out)])
    normalized = _cast_if_needed(
        _cast_if_needed(normalized, stash_type, element_type, out), element_type, scale_type, out
    )
    out.emit("Mul", [normalized, scale], node.outputs)
