"""An omitted input with an empty name counts as absent in shape rules."""

from __future__ import annotations

import onnx
import pytest

from opshift import infer

HEADER = '<ir_version: 10, opset_import: ["": 24, "com.microsoft": 1]> g '
CASES = {
    "past keys of Attention": (
        "(float[2,4,3,8] q, float[2,2,5,8] k, int64[2] n)",
        'y, p, v, z = Attention (q, k, k, "", "", "", n)',
        (2, 4, 3, 5),
    ),
    "past keys of MultiHeadAttention": (
        "(float[2,3,16] q, float[2,5,16] k, int32[1] n)",
        'y, z = com.microsoft.MultiHeadAttention <num_heads = 2> (q, k, k, "", "", "", "", "", n)',
        (2, 2, 5, 8),
    ),
    "length of DFT": (
        "(float[2,6,1] x) <int64 axis = {1}>",
        'z = DFT <onesided = 1> (x, "", axis)',
        (2, 4, 2),
    ),
    "axis of DFT": ("(float[2,6,1] x)", 'z = DFT <onesided = 1> (x, "", "")', (2, 4, 2)),
    "window of STFT": (
        "(float[2,9,1] x) <int64 step = {3}>",
        'z = STFT (x, step, "", "")',
        (2, 1, 5, 2),
    ),
    "output shape of MaxUnpool": (
        "(float[1,1,2,2] x, int64[1,1,2,2] i)",
        'z = MaxUnpool <kernel_shape = [2,2], strides = [2,2]> (x, i, "")',
        (1, 1, 4, 4),
    ),
    "axes of Slice": (
        "(float[5,6] x) <int64[1] s = {1}, int64[1] e = {5}, int64[1] t = {2}>",
        'z = Slice (x, s, e, "", t)',
        (2, 6),
    ),
    "axes of ReduceSum": ("(float[5,6] x)", 'z = ReduceSum (x, "")', (1, 1)),
    "axes of Squeeze": ("(float[1,6] x)", 'z = Squeeze (x, "")', (6,)),
}  # fmt: skip


@pytest.mark.parametrize(("inputs", "node", "expected"), CASES.values(), ids=CASES)
def test_infers_shapes(inputs: str, node: str, expected: tuple[int, ...]) -> None:
    declared, _, constants = inputs.partition(" <")
    text = f"{HEADER}{declared} => (float z) {f'<{constants}' if constants else ''} {{ {node} }}"
    model = onnx.parser.parse_model(text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert infer(model).values["z"].shape == expected
