"""Generators of nodes on tensors of 8-bit integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from comparison.sampler import FLOATS, Array, Sample, Sampler, generates

f32 = np.float32
KINDS: list[Any] = [np.uint8, np.int8]


def _random_scale(draw: Sampler, low: float = 0.002, high: float = 0.5) -> Array:
    return np.array(draw.pick([0.5, 0.25, 1 / 256]), f32) if draw.maybe(0.3) else draw.positive((), low, high)


def _random_zero_point(draw: Sampler, kind: Any, *, optional: bool = True) -> Array | None:
    return None if optional and draw.maybe(0.2) else draw.integers((), kind)


def _random_constants(draw: Sampler, *positions: int) -> frozenset[int]:
    return frozenset(positions) if draw.maybe() else frozenset()


@generates("QLinearAdd", "QLinearMul")
def arithmetic(draw: Sampler, op_type: str) -> Sample:
    """Generate a binary operator with operands that broadcast."""
    kind, shape = draw.pick(KINDS), draw.shape(0, 4)
    other = tuple(1 if draw.maybe(0.3) else size for size in shape)[
        draw.integer(0, len(shape)) if draw.maybe(0.3) else 0 :
    ]
    shapes = [shape, other][:: draw.pick([1, -1])]
    parts: list[Array | None] = []
    for each in shapes:
        parts += [draw.integers(each, kind), _random_scale(draw), _random_zero_point(draw, kind)]
    return Sample(
        op_type,
        [*parts, _random_scale(draw), _random_zero_point(draw, kind)],
        [kind],
        {},
        _random_constants(draw, 1, 2, 4, 5, 6, 7),
    )


@generates(
    "QLinearSigmoid", "QLinearLeakyRelu", "QLinearReduceMean", "QLinearSoftmax", "QLinearGlobalAveragePool"
)
def function(draw: Sampler, op_type: str) -> Sample:
    """Generate a function of one operand; without zero points, some kernels end the process."""
    kind, attributes = draw.pick(KINDS), dict[str, Any]()
    shape = draw.shape(3, 4) if op_type == "QLinearGlobalAveragePool" else draw.shape(1, 4)
    match op_type:
        case "QLinearLeakyRelu":
            attributes = draw.some(alpha=draw.pick([0.3, 0.0, -0.5, 2.0]))
        case "QLinearReduceMean":
            axes = sorted({draw.integer(0, len(shape) - 1) for _ in range(2)})
            attributes = {"axes": axes, "keepdims": draw.integer(0, 1)}
        case "QLinearSoftmax":
            attributes = {"opset": draw.pick([11, 12, 13, 17])}
            attributes |= draw.some(axis=draw.integer(-len(shape), len(shape) - 1))
        case "QLinearGlobalAveragePool":
            attributes = draw.flags("channels_last")
    zero = _random_zero_point(draw, kind, optional=op_type == "QLinearReduceMean")
    result = draw.pick([f32(1 / 256), f32(0.0031), _random_scale(draw)])
    inputs = [
        draw.integers(shape, kind),
        _random_scale(draw),
        _random_zero_point(draw, kind, optional=op_type in ("QLinearReduceMean", "QLinearSoftmax")),
        np.asarray(result),
        zero,
    ]
    return Sample(op_type, inputs, [kind], attributes, _random_constants(draw, 1, 2, 3, 4))


@generates("QLinearAveragePool", "NhwcMaxPool")
def pooling(draw: Sampler, op_type: str) -> Sample:
    """Generate pooling over one or two spatial dimensions."""
    kind, dimensions, is_max = draw.pick(KINDS), draw.pick([1, 2, 2, 3]), op_type == "NhwcMaxPool"
    kernel, sizes = (
        [draw.integer(1, 3) for _ in range(dimensions)],
        [draw.integer(3, 6) for _ in range(dimensions)],
    )
    attributes: dict[str, Any] = {
        "kernel_shape": kernel,
        **draw.some(strides=[draw.integer(1, 3) for _ in kernel]),
    }
    match draw.pick(["pads", "pads", "none", "SAME_UPPER", "SAME_LOWER", "VALID"]):
        case "pads":
            attributes["pads"] = [draw.integer(0, size - 1) for size in kernel * 2]
        case "none":
            attributes |= draw.some(auto_pad="NOTSET")
        case other:
            attributes["auto_pad"] = other
    attributes |= draw.flags("ceil_mode")
    if is_max:
        attributes |= (
            draw.some(dilations=[draw.integer(1, 2) for _ in kernel]) if "auto_pad" not in attributes else {}
        )
        shape = (draw.size(1, 2), *sizes, draw.integer(1, 3))
        return Sample(op_type, [draw.integers(shape, kind)], [kind], attributes)
    attributes |= draw.flags("count_include_pad", "channels_last")
    batch, channels = draw.size(1, 2), draw.integer(1, 3)
    shape = (batch, *sizes, channels) if attributes.get("channels_last") else (batch, channels, *sizes)
    inputs = [
        draw.integers(shape, kind),
        _random_scale(draw),
        _random_zero_point(draw, kind),
        _random_scale(draw),
        _random_zero_point(draw, kind),
    ]
    return Sample(op_type, inputs, [kind], attributes, _random_constants(draw, 1, 2, 3, 4))


@generates("QLinearConcat")
def concat(draw: Sampler, op_type: str) -> Sample:
    """Generate a concatenation of operands with separate scales."""
    kind, shape = draw.pick(KINDS), draw.shape(1, 3)
    axis = draw.integer(-len(shape), len(shape) - 1)
    inputs: list[Array | None] = [_random_scale(draw), _random_zero_point(draw, kind, optional=False)]
    for _ in range(draw.integer(1, 3)):
        sizes = list(shape)
        sizes[axis] = draw.size()
        same = draw.maybe(0.3)
        inputs += [
            draw.integers(sizes, kind),
            inputs[0] if same else _random_scale(draw),
            inputs[1] if same else _random_zero_point(draw, kind, optional=False),
        ]
    return Sample(
        op_type,
        inputs,
        [kind],
        {"axis": axis},
        frozenset() if draw.maybe() else frozenset(i for i in range(len(inputs)) if i % 3 != 2),
    )


@generates("QLinearWhere")
def where(draw: Sampler, op_type: str) -> Sample:
    """Generate a selection between two operands."""
    kind, shape = draw.pick(KINDS), draw.shape(0, 3)

    def part() -> tuple[int, ...]:
        return tuple(1 if draw.maybe(0.2) else size for size in shape)

    inputs: list[Array | None] = [draw.integers(part(), np.uint8, 0, 1).astype(bool)]
    for _ in range(2):
        inputs += [
            draw.integers(part(), kind),
            _random_scale(draw),
            _random_zero_point(draw, kind, optional=False),
        ]
    inputs += [_random_scale(draw), _random_zero_point(draw, kind, optional=False)]
    return Sample(op_type, inputs, [kind], {}, _random_constants(draw, 2, 3, 5, 6, 7, 8))


@generates("QuantizeLinear", "DequantizeLinear")
def quantize(draw: Sampler, op_type: str) -> Sample:
    """Generate per-tensor and per-axis quantization with types that ONNX added later."""
    kind, dtype = draw.pick([*KINDS, np.uint16, np.int16]), FLOATS[draw.pick(["float", "float", "float16"])]
    shape = draw.shape(1, 3)
    attributes, sizes = dict[str, Any](), tuple[int, ...]()
    if draw.maybe(0.5):
        axis = draw.integer(-len(shape), len(shape) - 1)
        attributes, sizes = {"axis": axis}, (shape[axis],)
    scale = draw.positive(sizes, 0.01, 0.5, dtype)
    zero: Array | None = draw.integers(sizes, kind)
    if op_type == "QuantizeLinear":
        if draw.maybe(0.3):
            zero, kind = None, np.uint8
        return Sample(
            op_type,
            [draw.floats(shape, dtype, 10), scale, zero],
            [kind],
            attributes,
            _random_constants(draw, 1, 2),
        )
    kind = draw.pick([kind, np.int32])
    zero = None if kind is np.int32 or draw.maybe(0.3) else draw.integers(sizes, kind)
    return Sample(
        op_type, [draw.integers(shape, kind), scale, zero], [dtype], attributes, _random_constants(draw, 1, 2)
    )


@generates("QGemm")
def gemm(draw: Sampler, op_type: str) -> Sample:
    """Generate a product with a float or 8-bit result."""
    kind, other = draw.pick(KINDS), draw.pick(KINDS)
    rows, inner, columns = draw.size(), draw.size(), draw.size()
    attributes: dict[str, Any] = draw.flags("transA", "transB") | draw.some(alpha=draw.pick([0.5, 2.0]))
    by_column = draw.maybe(0.3)
    has_scale, has_zero = draw.maybe(), draw.maybe(0.8)
    first = (inner, rows) if attributes.get("transA") else (rows, inner)
    second = (columns, inner) if attributes.get("transB") else (inner, columns)
    addend = draw.pick([(rows, columns), (columns,), (1, columns), (rows, 1), (1,)])
    inputs: list[Array | None] = [
        draw.integers(first, kind), _random_scale(draw), _random_zero_point(draw, kind, optional=False),
        draw.integers(second, other),
        draw.positive((columns,)) if by_column else _random_scale(draw),
        draw.integers((columns,), other) if by_column else _random_zero_point(draw, other, optional=False),
        draw.integers(addend, np.int32, -500, 500) if draw.maybe() else None,
        _random_scale(draw, 0.1, 5) if has_scale else None,
        draw.integers((), kind) if has_scale and has_zero else None,
    ]  # fmt: skip
    return Sample(
        op_type,
        inputs,
        [kind if has_scale and has_zero else f32],
        attributes,
        _random_constants(draw, 1, 2, 4, 5, 7, 8),
    )


@generates("DynamicQuantizeMatMul")
def dynamic_matmul(draw: Sampler, op_type: str) -> Sample:
    """Generate a product of data that the node itself quantizes."""
    inner, columns, kind = draw.size(), draw.size(), draw.pick(KINDS)
    size = draw.pick([(), (1,), (columns,)])
    inputs: list[Array | None] = [
        draw.floats((*draw.shape(1, 2), inner)), draw.integers((inner, columns), kind), draw.positive(size),
        draw.integers(size, kind) if draw.maybe() else None,
        draw.floats((columns,)) if draw.maybe() else None,
    ]  # fmt: skip
    return Sample(op_type, inputs, [f32], {}, _random_constants(draw, 1, 2, 3))


@generates("MatMulIntegerToFloat")
def scaled_matmul(draw: Sampler, op_type: str) -> Sample:
    """Generate a product of integers that is scaled to float."""
    inner, columns, kind, other = draw.size(), draw.size(), draw.pick(KINDS), draw.pick(KINDS)
    size = draw.pick([(), (1,), (columns,)])
    inputs: list[Array | None] = [
        draw.integers((*draw.shape(1, 2), inner), kind), draw.integers((inner, columns), other),
        draw.positive(()), draw.positive(size),
        _random_zero_point(draw, kind), draw.integers(size, other) if draw.maybe() else None,
        draw.floats((columns,)) if draw.maybe() else None,
    ]  # fmt: skip
    return Sample(op_type, inputs, [f32], {}, _random_constants(draw, 1, 3, 5))


@generates("MatMulInteger16")
def wide_matmul(draw: Sampler, op_type: str) -> Sample:
    """Generate a product of 16-bit integers."""
    inner = draw.size()
    batches = draw.shape(0, 1)
    data = [
        draw.integers((*batches, draw.size(), inner), np.int16),
        draw.integers((inner, draw.size()), np.int16),
    ]
    return Sample(op_type, data, [np.int32], {})


@generates("MulInteger")
def product(draw: Sampler, op_type: str) -> Sample:
    """Generate an elementwise product."""
    kind, shape = draw.pick(KINDS), draw.shape(0, 3)
    inputs = [
        draw.integers(shape, kind),
        _random_zero_point(draw, kind),
        draw.integers(shape, kind),
        _random_zero_point(draw, kind),
    ]
    return Sample(op_type, inputs, [np.int32], {})


@generates("ReduceSumInteger")
def total(draw: Sampler, op_type: str) -> Sample:
    """Generate a sum."""
    kind, shape = draw.pick(KINDS), draw.shape(1, 3)
    attributes = {"axes": [draw.integer(-len(shape), len(shape) - 1)], "keepdims": draw.integer(0, 1)}
    return Sample(
        op_type, [draw.integers(shape, kind)], [np.uint32 if kind is np.uint8 else np.int32], attributes
    )
