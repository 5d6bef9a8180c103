"""Generators of nodes: matrix products, convolutions and packed weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from comparison.sampler import FLOATS, Array, Sample, Sampler, generates

f32 = np.float32
ACTIVATIONS = {
    "Relu": 0,
    "Sigmoid": 0,
    "Tanh": 0,
    "LeakyRelu": 1,
    "HardSigmoid": 2,
    "Clip": 2,
    "HardSwish": 0,
}
"""Fused activations, with their numbers of parameters."""


@generates("FusedMatMul", "TransposeMatMul", "FusedMatMulActivation")
def matmul(draw: Sampler, op_type: str) -> Sample:
    """Generate a product of transposed operands."""
    dtype = f32 if op_type != "FusedMatMul" else FLOATS[draw.pick(["float", "float", "double", "float16"])]
    rows, inner, columns = draw.size(), draw.size(), draw.size()
    batches = draw.shape(0, 2) if draw.maybe(0.6) else ()
    names = ["transA", "transB"]
    attributes: dict[str, Any] = draw.flags(*names) | draw.some(alpha=draw.pick([0.5, -2.0, 0.0]))
    if op_type != "TransposeMatMul" and len(batches) > 0 and draw.maybe(0.4):
        attributes |= draw.flags("transBatchA", "transBatchB")
    if op_type == "FusedMatMulActivation":
        attributes |= _activation(draw, named=True)
    shapes = [(*batches, rows, inner), (*batches, inner, columns)]
    operands = []
    for letter, shape in zip("AB", shapes, strict=True):
        if attributes.get(f"trans{letter}"):
            shape = (*shape[:-2], shape[-1], shape[-2])
        if attributes.get(f"transBatch{letter}"):
            shape = (shape[-2], *shape[:-2], shape[-1])
        operands.append(draw.floats(shape, dtype))
    if not any(attributes.get(f"transBatch{letter}") for letter in "AB"):
        if draw.maybe(0.1):
            operands[0] = draw.floats((inner,), dtype)
        if draw.maybe(0.1):
            operands[1] = draw.floats((inner,), dtype)
        elif draw.maybe(0.2):
            operands[1] = (
                operands[1].reshape(-1, *operands[1].shape[-2:])[0] if operands[1].size else operands[1]
            )
    return Sample(op_type, operands, [dtype], attributes)


def _activation(draw: Sampler, *, named: bool) -> dict[str, Any]:
    """Draw the attributes of a fused activation, with numbered or named parameters."""
    kind = draw.pick(list(ACTIVATIONS))
    values = [[0.3, 0.5], [0.1, 0.9]][draw.integer(0, 1)][: ACTIVATIONS[kind]]
    if not named:
        return {"activation": kind} | ({"activation_params": values} if values else {})
    names = ("alpha", "beta")
    return {"activation": kind} | {
        f"activation_{name}": value for name, value in zip(names, values, strict=False)
    }


@generates("FusedGemm")
def gemm(draw: Sampler, op_type: str) -> Sample:
    """Generate Gemm with an activation."""
    rows, inner, columns = draw.size(), draw.size(), draw.size()
    attributes: dict[str, Any] = draw.flags("transA", "transB") | draw.some(
        alpha=draw.pick([0.5, 2.0]), beta=draw.pick([0.5, 0.0])
    )
    kind = draw.pick(["Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", None])
    if kind:
        attributes["activation"] = kind
        attributes |= {"activation_alpha": 0.3} if kind in ("LeakyRelu", "HardSigmoid") else {}
        attributes |= {"activation_beta": 0.2} if kind == "HardSigmoid" else {}
    addend = draw.pick([(columns,), (rows, columns), (1, columns), (rows, 1), (), (1,)])
    inputs = [
        draw.floats((inner, rows) if attributes.get("transA") else (rows, inner)),
        draw.floats((columns, inner) if attributes.get("transB") else (inner, columns)),
        draw.floats(addend) if draw.maybe(0.7) else None,
    ]
    return Sample(op_type, inputs, [f32], attributes)


@generates("GemmFastGelu")
def gemm_gelu(draw: Sampler, op_type: str) -> Sample:
    """Generate a product with an activation."""
    dtype, inner, columns = FLOATS[draw.pick(["float", "float16"])], draw.size(), draw.size()
    data = draw.floats((draw.size(), draw.size(), inner), dtype)
    bias = draw.floats((columns,), dtype) if draw.maybe() else None
    return Sample(op_type, [data, draw.floats((inner, columns), dtype), bias], [dtype], {})


@generates("FusedConv", "NhwcConv", "NhwcFusedConv", "QLinearConv")
def convolution(draw: Sampler, op_type: str) -> Sample:
    """Generate a convolution over one or two spatial dimensions."""
    dimensions, group, batch = draw.pick([1, 2, 2]), draw.pick([1, 1, 2]), draw.size(1, 2)
    if op_type == "NhwcFusedConv":
        dimensions = 2
    channels, filters = group * draw.integer(1, 2), group * draw.integer(1, 2)
    kernel = [draw.integer(1, 3) for _ in range(dimensions)]
    sizes = [draw.integer(5, 7) for _ in range(dimensions)]
    last = op_type.startswith("Nhwc") or (op_type == "QLinearConv" and draw.maybe())
    attributes: dict[str, Any] = draw.some(kernel_shape=kernel, strides=[draw.integer(1, 2) for _ in kernel])
    attributes |= {"group": group} if group > 1 or draw.maybe() else {}
    match draw.pick(["pads", "none", "SAME_UPPER", "SAME_LOWER", "VALID"]):
        case "pads":
            attributes["pads"] = [draw.integer(0, 1) for _ in range(2 * dimensions)]
            attributes |= draw.some(dilations=[draw.integer(1, 2) for _ in kernel])
        case "none":
            attributes |= draw.some(dilations=[draw.integer(1, 2) for _ in kernel], auto_pad="NOTSET")
        case other:
            attributes["auto_pad"] = other
    shape = (batch, *sizes, channels) if last else (batch, channels, *sizes)
    weights = (filters, channels // group, *kernel)
    if op_type == "QLinearConv":
        return _quantized_convolution(
            draw, shape, weights, attributes | ({"channels_last": 1} if last else {})
        )
    inputs: list[Array | None] = [
        draw.floats(shape),
        draw.floats(weights),
        draw.floats((filters,)) if draw.maybe() else None,
    ]
    if "Fused" in op_type:
        attributes |= _activation(draw, named=False) if draw.maybe(0.8) else {}
        if draw.maybe(0.3):
            windows = [_windows(size, axis, kernel[axis], attributes) for axis, size in enumerate(sizes)]
            inputs.append(draw.floats((batch, *windows, filters) if last else (batch, filters, *windows)))
    return Sample(op_type, inputs, [f32], attributes)


def _windows(size: int, axis: int, kernel: int, attributes: dict[str, Any]) -> int:
    """Return the number of windows of a convolution along an axis."""
    stride = attributes.get("strides", [1] * (axis + 1))[axis]
    if attributes.get("auto_pad", "").startswith("SAME"):
        return int(-(-size // stride))
    pads = attributes.get("pads", ())
    padded = size + (pads[axis] + pads[axis + len(pads) // 2] if pads else 0)
    reach = (kernel - 1) * attributes.get("dilations", [1] * (axis + 1))[axis] + 1
    return int((padded - reach) // stride) + 1


def _quantized_convolution(draw: Sampler, shape: Any, weights: Any, attributes: dict[str, Any]) -> Sample:
    kind, other, filters = draw.pick([np.uint8, np.int8]), draw.pick([np.uint8, np.int8]), weights[0]
    other = np.int8 if kind is np.int8 else other
    by_filter = draw.maybe()
    sizes = (filters,) if by_filter else ()
    # Kernels require one zero point for all filters, which is 0 for int8.
    zero = 0 if other is np.int8 else draw.integer(0, 255)
    inputs: list[Array | None] = [
        draw.integers(shape, kind), draw.positive(()), draw.integers((), kind), draw.integers(weights, other),
        draw.positive(sizes), np.full(sizes, zero, other), draw.positive((), 0.1, 2), draw.integers((), kind),
        draw.integers((filters,), np.int32, -3000, 3000) if draw.maybe() else None,
    ]  # fmt: skip
    return Sample(
        "QLinearConv",
        inputs,
        [kind],
        attributes,
        frozenset({1, 2, 4, 5, 6, 7}) if draw.maybe() else frozenset(),
    )


@generates("MatMulNBits")
def packed_matmul(draw: Sampler, op_type: str) -> Sample:
    """Generate a product with weights of 2, 4 or 8 bits."""
    dtype, bits = FLOATS[draw.pick(["float", "float", "float16"])], draw.pick([4, 4, 8, 2])
    block, length, columns = draw.pick([16, 32, 64]), draw.pick([16, 32, 48, 64, 20, 33]), draw.integer(1, 5)
    blocks = -(-length // block)
    attributes: dict[str, Any] = {"K": length, "N": columns, "block_size": block}
    attributes |= {"bits": bits} if bits != 4 or draw.maybe() else {}
    attributes |= draw.some(accuracy_level=draw.pick([0, 1]), weight_prepacked=0)
    row = -(-blocks * bits // 8)
    zeros = draw.pick([None, "packed", "float"])
    order = (
        np.array([draw.integer(0, blocks - 1) for _ in range(length)], np.int32) if draw.maybe(0.2) else None
    )
    inputs: list[Array | None] = [
        draw.floats((*draw.shape(1, 2), length), dtype),
        draw.integers((columns, blocks, block * bits // 8), np.uint8),
        draw.positive(draw.pick([(columns, blocks), (columns * blocks,)]), dtype=dtype),
        None
        if zeros is None
        else draw.integers((columns, row), np.uint8)
        if zeros == "packed"
        else draw.normal((columns, blocks), draw.pick([dtype, np.float32, np.float16])),
        order,
        draw.floats((columns,), dtype) if draw.maybe(0.3) else None,
    ]
    return Sample(op_type, inputs, [dtype], attributes, frozenset({1, 2, 3}) if draw.maybe() else frozenset())


@generates("MatMulBnb4")
def bnb_matmul(draw: Sampler, op_type: str) -> Sample:
    """Generate a product with 4-bit floating-point weights."""
    block, length, columns = draw.pick([16, 32, 64]), draw.pick([16, 32, 48, 20]), draw.integer(1, 4)
    count = length * columns
    attributes: dict[str, Any] = {
        "K": length,
        "N": columns,
        "block_size": block,
        "quant_type": draw.integer(0, 1),
    }
    attributes |= draw.some(transB=1, training_mode=0)
    inputs = [
        draw.floats((*draw.shape(1, 2), length)),
        draw.integers(((count + 1) // 2,), np.uint8),
        draw.positive((-(-count // block),)),
    ]
    return Sample(op_type, inputs, [f32], attributes)


@generates("GatherBlockQuantized")
def packed_gather(draw: Sampler, op_type: str) -> Sample:
    """Generate a selection of rows of a packed table."""
    dtype, bits, block = (
        FLOATS[draw.pick(["float", "float16"])],
        draw.pick([4, 4, 8]),
        draw.pick([16, 32, 128]),
    )
    width, rows = draw.pick([16, 32, 48, 64]), draw.integer(1, 5)
    blocks, rank = -(-width // block), draw.pick([2, 2, 3])
    lead = (rows,) if rank == 2 else (rows, draw.integer(1, 3))
    attributes: dict[str, Any] = {
        **({"block_size": block} if block != 128 else {}),
        **({"quantize_axis": draw.pick([-1, rank - 1])} if rank == 3 or draw.maybe() else {}),
        **draw.some(gather_axis=0),
    }
    attributes |= {"bits": bits} if bits != 4 or draw.maybe() else {}
    row = -(-blocks * bits // 8)
    data = draw.integers((*lead, width * bits // 8), np.uint8)
    shape = draw.shape(0, 2)
    inputs: list[Array | None] = [
        data, draw.integers(shape, draw.pick([np.int32, np.int64]), 0, rows - 1),
        draw.positive((*lead, blocks), dtype=dtype),
        draw.integers((*lead, row), np.uint8) if draw.maybe() else None,
    ]  # fmt: skip
    return Sample(
        op_type, inputs, [dtype], attributes, frozenset({0, 2, 3}) if draw.maybe(0.7) else frozenset()
    )
