"""Generators of nodes: activations, biases, gates, normalization and embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np

from comparison.sampler import FLOATS, Array, Sample, Sampler, generates

f32 = np.float32


def _random_float_type(draw: Sampler) -> Any:
    return FLOATS[draw.pick(["float", "float", "float16", "double"])]


def _random_half_type(draw: Sampler) -> Any:
    return FLOATS[draw.pick(["float", "float16"])]


@generates("Gelu", "FastGelu", "QuickGelu", "ScaledSiLU", "SampleOp")
def function(draw: Sampler, op_type: str) -> Sample:
    """Generate an elementwise function, with an optional bias, factor or `alpha`."""
    dtype = f32 if op_type in ("QuickGelu", "SampleOp") else _random_half_type(draw)
    if op_type == "Gelu":
        dtype = f32
    data = draw.floats((*draw.shape(0, 3), draw.size(1, 6)), dtype, draw.pick([1, 5]))
    inputs: list[Array | None] = [data]
    attributes: dict[str, Any] = {}
    if op_type == "FastGelu" and draw.maybe():
        inputs.append(draw.floats(data.shape[-1:], dtype))
    if op_type in ("QuickGelu", "ScaledSiLU"):
        attributes = draw.some(alpha=draw.pick([0.5, 1.0, 2.0, -1.0, 0.0]))
    if op_type == "ScaledSiLU" and draw.maybe():
        inputs.append(draw.floats((), draw.pick([dtype, f32, np.float16])))
    bias = inputs[1] if op_type == "FastGelu" and len(inputs) > 1 else None
    tolerance = _rounding_of_tanh(data, bias) if op_type == "FastGelu" else 0.0
    return Sample(op_type, inputs, [dtype], attributes, tolerance=tolerance)


def _rounding_of_tanh(data: Array, bias: Array | None) -> float:
    """Return the error of `1 + tanh`, which cancels for negative numbers, relative to the largest result."""
    with np.errstate(invalid="ignore"):  # infinite numbers of both signs, whose sum is NaN
        wide = data.astype(np.float64) + (0 if bias is None else bias)
    finite = np.clip(wide[np.isfinite(wide)], -20, 20)
    largest = np.abs(finite * (1 + np.tanh(0.8 * (finite + 0.044715 * finite**3)))).max(initial=0)
    return float(2e-7 * np.abs(finite).max(initial=0) / max(largest, 1e-6))


@generates("BiasGelu", "BiasSplitGelu", "BiasAdd", "BiasSoftmax", "BiasDropout")
def with_bias(draw: Sampler, op_type: str) -> Sample:
    """Generate an operator that adds a bias."""
    dtype = f32 if op_type in ("BiasGelu", "BiasSoftmax") else _random_half_type(draw)
    if op_type in ("BiasSplitGelu", "BiasAdd"):
        shape: tuple[int, ...] = (draw.size(1, 3), draw.size(1, 3), draw.pick([320, 640]))
        if op_type == "BiasSplitGelu":
            shape = (*shape[:2], 2560)
        inputs: list[Array | None] = [draw.floats(shape, dtype), draw.floats(shape[-1:], dtype)]
        if op_type == "BiasAdd":
            inputs.append(draw.floats(shape, dtype))
        return Sample(op_type, inputs, [dtype], {})
    shape = (*draw.shape(0, 3), draw.size(1, 6))
    inputs = [draw.floats(shape, dtype), draw.floats(shape[-1:], dtype)]
    if op_type == "BiasSoftmax":
        axis = draw.integer(-len(shape), len(shape) - 1)
        return Sample(
            op_type,
            [inputs[0], draw.floats(shape, dtype)],
            [dtype],
            draw.some(axis=axis) | {"is_inner_broadcast": draw.integer(0, 1)},
        )
    if op_type == "BiasDropout":
        inputs.append(draw.floats(shape, dtype) if draw.maybe() else None)
        inputs.append(np.array(0.3, f32) if draw.maybe() else None)
        inputs.append(np.array(False) if draw.maybe() else None)
        outputs = [dtype, np.bool_] if draw.maybe(0.3) else [dtype]
        return Sample(op_type, inputs, outputs, draw.some(seed=7))
    return Sample(op_type, inputs, [dtype], {})


@generates("GatedAdd", "GatedRMSNorm", "LinearAttentionGate")
def gate(draw: Sampler, op_type: str) -> Sample:
    """Generate an operator that multiplies data by gates."""
    dtype = _random_half_type(draw)
    lead = draw.shape(1, 3)
    if op_type == "GatedAdd":
        shapes = [(*lead, draw.size())] * 2 + [(*lead, 1)]
        return Sample(op_type, [draw.floats(each, dtype) for each in shapes], [dtype], {})
    if op_type == "GatedRMSNorm":
        group = draw.integer(1, 5)
        shape = (*lead, group * draw.integer(1, 3))
        attributes = draw.epsilon() | draw.some(activation=draw.pick(["silu", "swish", "sigmoid"]))
        scale = draw.pick([1, 1e-3, 30])
        data = [draw.floats(shape, dtype, scale), draw.floats((group,), dtype), draw.floats(shape, dtype)]
        return Sample(op_type, data, [dtype], attributes)
    heads = draw.integer(1, 4)
    shape = (draw.size(1, 2), draw.size(1, 3), heads)
    inputs: list[Array | None] = [
        draw.floats(shape, dtype, 3),
        draw.floats((heads,)),
        -draw.positive((heads,), 0, 2),
    ]
    outputs = [dtype]
    if draw.maybe():
        inputs.append(draw.floats(shape, dtype))
        outputs.append(dtype)
    return Sample(op_type, inputs, outputs, {})


@generates("LayerNormalization", "SimplifiedLayerNormalization")
def layer_normalization(draw: Sampler, op_type: str) -> Sample:
    """Generate normalization operators that onnxruntime writes to the default domain."""
    dtype = _random_float_type(draw)
    scale_type = dtype if draw.maybe(0.8) else f32
    shape = (*draw.shape(0, 2), draw.integer(1, 6))
    axis = draw.integer(-len(shape), len(shape) - 1)
    attributes = draw.epsilon() | draw.some(stash_type=1)
    if axis == -1:
        attributes |= draw.some(axis=axis)
    else:
        attributes["axis"] = axis
    weights = shape[axis:]
    inputs: list[Array | None] = [
        draw.floats(shape, dtype, draw.pick([1, 30, 1e-3])),
        draw.floats(weights, scale_type),
    ]
    if op_type == "LayerNormalization" and draw.maybe(0.7):
        inputs.append(draw.floats(weights, scale_type))
    outputs: list[Any] = [scale_type]
    if draw.maybe(0.1):
        outputs += [np.float64 if dtype == np.float64 else f32]
        if op_type == "LayerNormalization":
            outputs.append(outputs[-1])
    return Sample(op_type, inputs, outputs, attributes, domain="")


@generates("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
def skip_normalization(draw: Sampler, op_type: str) -> Sample:
    """Generate the normalization of a sum."""
    dtype = _random_float_type(draw)
    shape = (draw.size(1, 3), draw.size(1, 3), draw.integer(1, 6))
    if draw.maybe(0.3):
        shape = shape[1:]  # type: ignore[assignment]
    skip = shape if draw.maybe(0.7) or len(shape) == 2 else draw.pick([(1, *shape[1:]), shape[1:]])
    scale = draw.pick([1, 30, 1e-3])
    inputs: list[Array | None] = [
        draw.floats(shape, dtype, scale),
        draw.floats(skip, dtype, scale),
        draw.floats(shape[-1:], dtype),
    ]
    if op_type == "SkipLayerNormalization":
        inputs.append(draw.floats(shape[-1:], dtype) if draw.maybe() else None)
    inputs.append(draw.floats(shape[-1:], dtype) if draw.maybe() else None)
    outputs: list[Any] = [dtype]
    if draw.maybe(0.4):
        statistic = draw.pick([None, f32])
        outputs += [statistic, statistic, dtype]
    return Sample(op_type, inputs, outputs, draw.epsilon())


@generates("EmbedLayerNormalization")
def embedding(draw: Sampler, op_type: str) -> Sample:
    """Generate the normalized sum of rows of tables."""
    dtype, i32 = _random_half_type(draw), np.int32
    batch, length, width = draw.size(1, 3), draw.size(1, 4), draw.integer(1, 6)
    has_segments = draw.maybe()
    positions = draw.pick([(), (1, length), (batch, length)]) if draw.maybe() else None
    inputs: list[Array | None] = [
        draw.integers((batch, length), i32, 0, 5),
        draw.integers((batch, length), i32, 0, 1) if has_segments else None,
        draw.floats((6, width), dtype),
        draw.floats((5, width), dtype),
        draw.floats((2, width), dtype) if has_segments else None,
        draw.floats((width,), dtype),
        draw.floats((width,), dtype),
        draw.integers((batch, length), i32, 0, draw.pick([1, 2])) if draw.maybe() else None,
        draw.integers(positions, i32, 0, 4) if positions else None,
    ]
    outputs: list[Any] = [dtype, np.int32]
    if draw.maybe(0.3):
        outputs.append(dtype)
    return Sample(op_type, inputs, outputs, draw.epsilon() | draw.some(mask_index_type=draw.integer(0, 1)))


@generates("GroupNorm", "SkipGroupNorm")
def group_normalization(draw: Sampler, op_type: str) -> Sample:
    """Generate the normalization of groups of channels."""
    dtype, groups = _random_half_type(draw), draw.integer(1, 3)
    channels, last = groups * draw.integer(1, 3), draw.integer(0, 1)
    batch, rows, columns = draw.size(), draw.integer(1, 3), draw.integer(1, 3)
    shape = (batch, rows, columns, channels) if last else (batch, channels, rows, columns)
    kind = draw.pick([dtype, f32])
    attributes: dict[str, Any] = {"groups": groups, "activation": draw.integer(0, 1)} | draw.epsilon()
    if not last or draw.maybe():
        attributes["channels_last"] = last
    inputs: list[Array | None] = [
        draw.floats(shape, dtype),
        *(draw.floats((channels,), kind) for _ in range(2)),
    ]
    outputs = [dtype]
    if op_type == "SkipGroupNorm":
        inputs += [draw.floats(draw.pick([shape, (batch, channels)]), dtype)]
        inputs += [draw.floats((channels,), dtype) if draw.maybe() else None]
        outputs += [dtype] if draw.maybe() else []
    return Sample(op_type, inputs, outputs, attributes)
