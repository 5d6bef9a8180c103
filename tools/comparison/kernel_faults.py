"""Nodes for which a kernel of onnxruntime 1.31.1 deviates from the definition, or standard operators fail."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from comparison.sampler import Sample

MAX_WEIGHT = 1e6
"""Weight above which the error of the standard Sigmoid, about 1e-8, exceeds the tolerance."""


SPARE_LEVELS = 148.4
"""Levels of a result, divided by the number of elements, above which QLinearSoftmax exceeds float: e**5."""


class KernelFault(NamedTuple):
    """Nodes of some operators, and a description of the fault of their kernel."""

    op_types: frozenset[str]
    reason: str
    applies: Callable[[Sample], bool]


def _kernel_fault(op_types: str, reason: str, applies: Callable[[Sample], bool]) -> KernelFault:
    return KernelFault(frozenset(op_types.split()), reason, applies)


def _inner_size_is_zero(sample: Sample) -> bool:
    first = sample.inputs[0]
    return first is not None and first.size == 0


def _softmax_overflows(sample: Sample) -> bool:
    data, attributes = sample.inputs[0], sample.attributes
    assert data is not None
    axis = attributes.get("axis", -1) % data.ndim
    sizes = data.shape[axis:] if attributes["opset"] < 13 else data.shape[axis : axis + 1]
    scale = sample.inputs[3]
    assert scale is not None
    return bool(np.floor(np.float32(1) / scale) >= SPARE_LEVELS * np.prod(sizes))


def _skips_pixels(sample: Sample) -> bool:
    kernel = sample.attributes["kernel_shape"]
    strides = sample.attributes.get("strides", [1] * len(kernel))
    is_same = sample.attributes.get("auto_pad", "").startswith("SAME")
    return is_same and any(stride > size for size, stride in zip(kernel, strides, strict=True))


def _is_half(sample: Sample) -> bool:
    return sample.inputs[0] is not None and sample.inputs[0].dtype == np.float16


def _is_half_not_finite(sample: Sample) -> bool:
    data = sample.inputs[0]
    return data is not None and data.dtype == np.float16 and not np.isfinite(data).all()


def _enlarges_sigmoid(sample: Sample) -> bool:
    """Return whether weights are so large that a nearly zero Sigmoid affects the result."""
    has_sigmoid = sample.attributes.get("activation_type", "relu") in ("silu", "swiglu")
    weights = (each for each in sample.inputs[2:] if each is not None and each.dtype.kind == "f")
    return has_sigmoid and any(np.abs(each).max(initial=0) > MAX_WEIGHT for each in weights)


def _relu_of_nan(sample: Sample) -> bool:
    is_relu = sample.attributes.get("activation_type", "relu") == "relu"
    return is_relu and not all(np.isfinite(each).all() for each in sample.inputs if each is not None)


def _has_ties(sample: Sample) -> bool:
    scores = sample.inputs[1]
    assert scores is not None
    rows = scores.reshape(-1, scores.shape[-1])
    return any(not np.isfinite(row).all() or len(set(row.tolist())) < len(row) for row in rows)


def _quantizes_data(sample: Sample) -> bool:
    attributes = sample.attributes
    return attributes.get("expert_weight_bits") == 8 and attributes.get("block_size", 0) > 0


def _has_mean_of_infinity(sample: Sample) -> bool:
    """Return whether the mean is an output, and a summand of the normalized data is infinite."""
    summands = (0, 1, 4) if sample.op_type == "SkipLayerNormalization" else (0,)
    arrays = [sample.inputs[position] for position in summands if position < len(sample.inputs)]
    has_mean = len(sample.outputs) > 1 and sample.outputs[1] is not None
    return has_mean and any(np.isinf(each).any() for each in arrays if each is not None)


def _has_hidden_or_float32_not_finite(sample: Sample) -> bool:
    """Return whether infinity or NaN is in an input of float32, or in a value of padding."""
    data, value, lengths = (sample.inputs[position] for position in (0, 2, 5))
    assert data is not None
    assert lengths is not None
    if data.dtype == np.float32:
        return not all(np.isfinite(each).all() for each in sample.inputs if each is not None)
    tokens = data if value is None else value
    is_padding = np.arange(tokens.shape[1]) > lengths[:, None]
    return not np.isfinite(tokens[is_padding]).all()


def _has_nan(sample: Sample) -> bool:
    data = sample.inputs[0]
    return data is not None and bool(np.isnan(data).any())


def _overflows_beside_infinity(sample: Sample) -> bool:
    """Return whether operands of float32 have infinite elements, and finite ones with an infinite product."""
    operands = [each for each in sample.inputs[:2] if each is not None and each.dtype == np.float32]
    largest = [float(np.abs(each[np.isfinite(each)]).max(initial=0)) for each in operands]
    has_infinity = any(bool(np.isinf(each).any()) for each in operands)
    return len(operands) == 2 and has_infinity and math.prod(largest) > float(np.finfo(np.float32).max)


def _is_empty(sample: Sample) -> bool:
    return any(each is not None and each.size == 0 for each in sample.inputs)


PRODUCTS = (
    "FusedMatMul TransposeMatMul FusedGemm QGemm DynamicQuantizeMatMul MatMulIntegerToFloat MatMulInteger16"
)

KERNEL_FAULTS = (
    _kernel_fault("MoE", "The kernel of float16 ignores the data.", _is_half),
    _kernel_fault("MoE QMoE", "The choice among equal or infinite scores of the router is open.", _has_ties),
    _kernel_fault(
        "QMoE", "The kernel quantizes the data if there are blocks of 8-bit weights.", _quantizes_data
    ),
    _kernel_fault(
        "LayerNormalization SkipLayerNormalization",
        "The kernel writes NaN as the mean of data with infinite numbers of one sign.",
        _has_mean_of_infinity,
    ),
    _kernel_fault(
        "LayerNormalization SkipLayerNormalization",
        "The standard kernel keeps the last dimension of the statistics of empty data.",
        _is_empty,
    ),
    _kernel_fault(
        "GroupQueryAttention",
        "The kernel skips some hidden values that are not finite, and writes 0 for float32 scores of NaN.",
        _has_hidden_or_float32_not_finite,
    ),
    _kernel_fault("MoE QMoE", "Relu of NaN is 0 in the kernel.", _relu_of_nan),
    _kernel_fault(
        "MoE QMoE", "The standard kernel of Sigmoid writes 0 for small numbers.", _enlarges_sigmoid
    ),
    _kernel_fault(
        "QuantizeLinear",
        "The standard kernel writes 0 for infinity in float16, and the result for NaN is open.",
        _is_half_not_finite,
    ),
    _kernel_fault("Unique", "The standard kernel treats NaN as equal to other elements.", _has_nan),
    _kernel_fault(
        PRODUCTS,
        "The kernel does not write the result of products over a dimension of 0.",
        _inner_size_is_zero,
    ),
    _kernel_fault(
        # A fused multiply-add instruction does not round the product.
        "FusedMatMul TransposeMatMul FusedGemm",
        "Sums of infinity and products that exceed float32 are infinite or NaN, as the order decides.",
        _overflows_beside_infinity,
    ),
    _kernel_fault(
        "QLinearSoftmax",
        "The kernel exceeds float if `floor(1 / y_scale)` is at least 148 times the number of elements.",
        _softmax_overflows,
    ),
    _kernel_fault(
        "QLinearAveragePool NhwcMaxPool",
        "The standard kernel refuses `auto_pad` with SAME if a stride exceeds the window.",
        _skips_pixels,
    ),
)
"""All known faults; docs/conversions.md lists their reasons."""


def fault_of(sample: Sample) -> KernelFault | None:
    """Return the known fault of the kernel for a sample, or `None`."""
    return next(
        (each for each in KERNEL_FAULTS if sample.op_type in each.op_types and each.applies(sample)), None
    )
