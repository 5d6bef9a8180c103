"""Arithmetic before opset 7, where shapes are equal unless `broadcast` is set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from support.execution import Array

Combine = Callable[..., Any]


def align(second: Array, first: Array, broadcast: int, axis: int | None) -> Array:
    """Reshape the second operand: one element, or consecutive dimensions of the first operand from `axis`."""
    if not broadcast:
        assert first.shape == second.shape, "shapes differ without broadcast"
        return second
    if second.size == 1:
        return second.reshape(())
    start = first.ndim - second.ndim if axis is None else axis % first.ndim
    assert second.shape == first.shape[start : start + second.ndim], "dimensions of the operands do not match"
    return second.reshape(second.shape + (1,) * (first.ndim - start - second.ndim))


def binary(combine: Combine) -> Combine:
    def run(a: Array, b: Array, broadcast: int = 0, axis: int | None = None, **_: Any) -> Array:
        assert a.dtype == b.dtype
        return np.asarray(combine(a, align(b, a, broadcast, axis)))

    return run


def variadic(combine: Combine) -> Combine:
    def run(*inputs: Array, consumed_inputs: Any = None) -> Array:
        assert len({each.shape for each in inputs}) == 1
        return np.asarray(combine(inputs))

    return run


def unary(function: Combine) -> Combine:
    def run(x: Array, consumed_inputs: Any = None, **attributes: Any) -> Array:
        return np.asarray(function(x, **attributes)).astype(x.dtype)

    return run


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def divide(a: Array, b: Array) -> Array:
    """Divide; integers are truncated toward zero."""
    return np.asarray(np.trunc(a / b).astype(a.dtype) if a.dtype.kind in "iu" else a / b)


def clip(x: Array, min: Any = None, max: Any = None) -> Array:  # noqa: A002  # names of the operator's attributes
    return x if min is None and max is None else np.clip(x, min, max)


def prelu(x: Array, slope: Array, **_: Any) -> Array:
    """Apply one slope to all elements, or one to each channel."""
    assert slope.size == 1 or slope.shape == x.shape[1:2]
    return np.where(x < 0, x * per_channel(slope, x.ndim if slope.size > 1 else 1), x)


def per_channel(values: Array, rank: int) -> Array:
    """Reshape values of channels to broadcast with a tensor of the given rank."""
    return values.reshape((-1,) + (1,) * (rank - 2))


def gemm(a: Array, b: Array, c: Array, *, alpha: Any, beta: Any, broadcast: int, **transposes: int) -> Array:
    product = (a.T if transposes["transA"] else a) @ (b.T if transposes["transB"] else b)
    assert broadcast or c.shape == product.shape
    return np.asarray(alpha * product + beta * np.broadcast_to(c, product.shape)).astype(a.dtype)


def batch_normalization(
    x: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: Any,
    is_test: int,
    spatial: int,
    **_: Any,
) -> Array:
    assert is_test, "training mode also outputs statistics"
    shape = (-1,) + (1,) * (x.ndim - 2) if spatial else x.shape[1:]
    scale, bias, mean, variance = (each.reshape(shape) for each in (scale, bias, mean, variance))
    return np.asarray((x - mean) / np.sqrt(variance + epsilon) * scale + bias)


def instance_normalization(x: Array, scale: Array, bias: Array, *, epsilon: Any, **_: Any) -> Array:
    axes = tuple(range(2, x.ndim))
    centred = x - x.mean(axes, keepdims=True)
    normalized = centred / np.sqrt((centred**2).mean(axes, keepdims=True) + epsilon)
    return np.asarray(normalized * per_channel(scale, x.ndim) + per_channel(bias, x.ndim))


def dropout(x: Array, *, is_test: int, **_: Any) -> Array:
    assert is_test, "training mode is random"
    return x


def multinomial(x: Array, *, sample_size: int, **_: Any) -> Array:
    """Return the only class with a nonzero probability."""
    best = x.argmax(1)
    assert (np.exp(x).sum(1) == np.exp(x.max(1))).all(), "the result is random"
    return np.repeat(best[:, None], sample_size, 1).astype(np.int32)
