"""Attention, QAttention and MultiHeadAttention of com.microsoft compute the same as standard operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.com_microsoft import NodeCase, assert_replaced, case, model_of, without_microsoft
from support.execution import Array, assert_equal, run, run_reference
from support.forms import RANKED_FORMS

from opshift import ConversionRefused

f = np.float32
BATCH, LENGTH, HEADS, SIZE = 2, 3, 4, 8
LOWEST = float(np.finfo(f).min)


def _floats(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(f)


def _mask(kind: str, total: int) -> Array | None:
    """Return a mask: lengths, ends and starts, lengths and offsets, or 1 and 0 for keys."""
    random = np.random.default_rng(total)
    if not kind:
        return None
    if kind == "lengths":
        return np.array([total, total - 2], np.int32)
    if kind == "ends and starts":
        return np.array([total, total - 1, 1, 0], np.int32)
    if kind == "lengths and offsets":
        return np.array([total, total - 2, 0, 2, 5, 0, 3, 6], np.int32)
    shape = (BATCH, total) if kind == "keys" else (BATCH, LENGTH, total)
    return random.integers(0, 2, shape).astype(np.int32)


def _multi_head(
    *,
    keys: int = 5,
    value_size: int = SIZE,
    bias: bool = False,
    mask: str = "",
    added: tuple[int, ...] = (),
    past: int = 0,
    split: bool = False,
    outputs: int = 1,
    **attributes: Any,
) -> NodeCase:
    total, width = past + keys, HEADS * SIZE
    layout = (BATCH, HEADS, keys) if split else (BATCH, keys)
    packing = 1 if split else HEADS
    outputs = max(outputs, 3) if past else outputs
    return case(
        "MultiHeadAttention",
        _floats(BATCH, LENGTH, width),
        _floats(*layout, packing * SIZE),
        _floats(*layout, packing * value_size),
        _floats(2 * width + HEADS * value_size) if bias else None,
        _mask(mask, total),
        _floats(*added, LENGTH, total) if added else None,
        _floats(BATCH, HEADS, past, SIZE) if past else None,
        _floats(BATCH, HEADS, past, value_size) if past else None,
        outputs=[f] * outputs,
        num_heads=HEADS,
        **attributes,
    )


def _self_attention(
    *,
    sizes: list[int] | None = None,
    mask: str = "",
    past: int = 0,
    added: tuple[int, ...] = (),
    outputs: int = 1,
    **attributes: Any,
) -> NodeCase:
    """Return a node Attention, which always has a bias: the kernel crashes without one."""
    total = sum(sizes or [12, 12, 12])
    if sizes:
        attributes["qkv_hidden_sizes"] = sizes
    return case(
        "Attention",
        _floats(BATCH, LENGTH, 12),
        _floats(12, total),
        _floats(total),
        _mask(mask, past + LENGTH),
        _floats(2, BATCH, HEADS, past, 3) if past else None,
        _floats(*added, LENGTH, past + LENGTH) if added else None,
        outputs=[f] * (2 if past else outputs),
        num_heads=HEADS,
        **attributes,
    )


def _quantized(
    *,
    mask: str = "",
    past: int = 0,
    kind: Any = np.uint8,
    by_column: bool = False,
    zeros: bool = True,
    **attributes: Any,
) -> NodeCase:
    random = np.random.default_rng(past)
    scales = random.uniform(0.01, 0.02, 36 if by_column else 1).astype(f)
    weight_zeros = random.integers(0, 100, 36 if by_column else ()).astype(kind)
    return case(
        "QAttention",
        random.integers(0, 256, (BATCH, LENGTH, 12)).astype(np.uint8),
        random.integers(0, 100, (12, 36)).astype(kind),
        _floats(36),
        np.array(0.02, f),
        scales,
        _mask(mask, past + LENGTH),
        np.array(120, np.uint8) if zeros else None,
        weight_zeros if zeros else None,
        _floats(2, BATCH, HEADS, past, 3) if past else None,
        outputs=[f, f] if past else [f],
        num_heads=HEADS,
        **attributes,
    )


CASES = {
    "heads": _multi_head(),
    "other value size": _multi_head(value_size=6),
    "bias": _multi_head(bias=True, value_size=6),
    "separate heads": _multi_head(split=True),
    "separate heads, bias": _multi_head(split=True, bias=True),
    "separate heads, caches": _multi_head(split=True, outputs=3),
    "lengths": _multi_head(mask="lengths"),
    "lengths and offsets": _multi_head(mask="lengths and offsets"),
    "mask of keys": _multi_head(mask="keys"),
    "mask of queries and keys": _multi_head(mask="queries and keys"),
    "added": _multi_head(added=(2, 4)),
    "added to all heads": _multi_head(added=(2, 1)),
    "added to all": _multi_head(added=(1, 1), mask="keys"),
    "past": _multi_head(past=2),
    "past, bias, mask": _multi_head(past=2, bias=True, mask="keys"),
    "causal": _multi_head(keys=LENGTH, unidirectional=1),
    "causal past": _multi_head(keys=LENGTH, past=2, unidirectional=1),
    "causal, more keys": _multi_head(unidirectional=1),
    "causal, fewer keys": _multi_head(keys=2, unidirectional=1, past=1),
    "causal mask": _multi_head(keys=LENGTH, mask="keys", unidirectional=1),
    "scores": _multi_head(outputs=4, mask="keys", added=(1, 4)),
    "scale": _multi_head(scale=0.3),
    "low filter value": _multi_head(mask="keys", mask_filter_value=LOWEST),
    "high filter value": _multi_head(mask="keys", mask_filter_value=-3.0),
    "projection": _self_attention(),
    "projection sizes": _self_attention(sizes=[8, 8, 16]),
    "projection lengths": _self_attention(mask="lengths"),
    "projection ends and starts": _self_attention(mask="ends and starts"),
    "projection lengths and offsets": _self_attention(mask="lengths and offsets"),
    "projection mask": _self_attention(mask="keys"),
    "projection mask of queries": _self_attention(mask="queries and keys"),
    "projection past": _self_attention(past=2, mask="keys"),
    "projection present": _self_attention(outputs=2),
    "projection causal": _self_attention(past=2, unidirectional=1),
    "projection causal lengths": _self_attention(mask="lengths", unidirectional=1),
    "projection added": _self_attention(added=(1, 4), mask="keys"),
    "projection scale": _self_attention(scale=0.2, mask="keys", mask_filter_value=-5.0),
    "quantized": _quantized(),
    "quantized lengths and offsets": _quantized(mask="lengths and offsets"),
    "quantized mask": _quantized(mask="keys"),
    "quantized signed weights": _quantized(kind=np.int8),
    "quantized by column": _quantized(by_column=True),
    "quantized without zero points": _quantized(zeros=False),
    "quantized causal past": _quantized(past=2, mask="keys", unidirectional=1),
}  # fmt: skip


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize("name", CASES)
def test_equals_the_kernel(name: str, form: str) -> None:
    given = CASES[name]
    if form == "symbolic" and given.op_type == "QAttention":
        pytest.skip("onnxruntime requires known shapes of quantized weights")
    # onnxruntime infers no types for the caches of a node in a function.
    expected = run(*model_of(given))
    assert_replaced(given, form, expected=expected, tolerance=5e-5)


@pytest.mark.parametrize("opset", [11, 13, 21, 25])
@pytest.mark.parametrize("name", ["past, bias, mask", "projection causal", "quantized causal past"])
def test_equals_the_kernel_at_other_opsets(name: str, opset: int) -> None:
    assert_replaced(CASES[name], opset=opset, tolerance=5e-5)


def _interleaved(*parts: Array) -> Array:
    """Return the inputs packed as (batch, sequence, heads, parts, head size)."""
    return np.stack([part.reshape(*part.shape[:2], HEADS, SIZE) for part in parts], axis=3)


@pytest.mark.parametrize("count", [2, 3])
def test_packed_inputs_equal_separate_ones(count: int) -> None:
    """The CPU kernel reads separate inputs only."""
    separate = _multi_head(keys=LENGTH)
    parts = [np.asarray(each) for each in separate.inputs[:3]]
    packed = _interleaved(*parts[3 - count :])
    inputs = [packed] if count == 3 else [parts[0], packed]
    model, feeds = model_of(separate)
    assert_replaced(separate._replace(inputs=inputs), expected=run(model, feeds))


def test_square_mask_equals_its_part() -> None:
    """The CPU kernel reads no masks of rank 4; others take rows of the queries and columns of the keys."""
    part = _self_attention(mask="queries and keys", past=2)
    mask = np.zeros((BATCH, 1, 9, 9), np.int32)
    mask[:, 0, 2 : 2 + LENGTH, : 2 + LENGTH] = np.asarray(part.inputs[3])
    model, feeds = model_of(part)
    square = part._replace(inputs=[*part.inputs[:3], mask, *part.inputs[4:]])
    assert_replaced(square, expected=run(model, feeds))


def test_projection_without_bias_equals_one_of_zeros() -> None:
    zeros = _self_attention()._replace(inputs=[*_self_attention().inputs[:2], np.zeros(36, f)])
    model, feeds = model_of(zeros)
    assert_replaced(zeros._replace(inputs=zeros.inputs[:2]), expected=run(model, feeds))


def test_an_empty_past_needs_no_present() -> None:
    given = _multi_head()
    empty = np.zeros((BATCH, HEADS, 0, SIZE), f)
    inputs = [*given.inputs, *[None] * (6 - len(given.inputs))][:6]
    assert_replaced(given._replace(inputs=[*inputs, empty, empty]))


def test_float16_represents_the_projection_but_not_its_integers() -> None:
    """The sum of integers is 4 * 255 * 255. onnxruntime computes float16 in float: run onnx.reference."""
    half = np.float16
    sizes = {"data": (1, 2, 4), "weight": (4, 12)}
    data, weight = (np.full(size, 255, np.uint8) for size in sizes.values())
    scale, bias = np.array(0.002, half), np.zeros(12, half)
    given = case("QAttention", data, weight, bias, scale, scale, outputs=[half], num_heads=2)
    model, feeds = model_of(given)
    assert_equal(run_reference(without_microsoft(model, 17), feeds), run(model, feeds), 1e-2)


LENGTHS = np.array([2], np.int32)
REFUSED = {
    "input past_sequence_length is not supported": case(
        "MultiHeadAttention", *_multi_head(past=2).inputs, LENGTHS, outputs=[f] * 3, num_heads=HEADS
    ),
    "the layout of a bias": case(
        "MultiHeadAttention", _floats(2, 3, 4, 3, 8), None, None, _floats(96), num_heads=HEADS
    ),
    "do_rotary is set": _self_attention(do_rotary=1),
    "past_present_share_buffer is set": _self_attention(past=2, past_present_share_buffer=1),
    "past is given without the output present;": _self_attention(past=2)._replace(outputs=[f]),
    "past is given without the output present_key;": _multi_head(past=2)._replace(outputs=[f]),
    "kernels then ignore past .add present_key.": _multi_head(past=2)._replace(outputs=[f, None, f]),
    "past is given without the output present_value;": _multi_head(past=2)._replace(outputs=[f, f]),
    "keys and values of equal sizes": _self_attention(sizes=[8, 8, 16], outputs=2),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refuses_what_kernels_define_differently(reason: str) -> None:
    with pytest.raises(ConversionRefused, match=reason):
        without_microsoft(model_of(REFUSED[reason])[0], 17)
