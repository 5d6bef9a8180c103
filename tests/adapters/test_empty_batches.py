"""Emitted nodes accept a batch that is empty at run time, if the other dimensions are declared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from support.execution import build, run

from opshift import convert_version

CASES: list[Any] = [
    pytest.param(
        "GridSample", 16, {"x": (0, 2, 3, 4), "grid": (0, 5, 6, 2)}, {}, [(0, 2, 5, 6)], id="GridSample"
    ),
    pytest.param(
        "SoftmaxCrossEntropyLoss",
        12,
        {"x": (0, 5, 3), "labels": (0, 3)},
        {"reduction": "none"},
        [(0, 3)],
        id="SoftmaxCrossEntropyLoss",
    ),
    pytest.param(
        "Attention",
        23,
        {"q": (0, 3, 8), "k": (0, 4, 8), "v": (0, 4, 8)},
        {"q_num_heads": 2, "kv_num_heads": 2},
        [(0, 3, 8)],
        id="Attention",
    ),
    pytest.param(
        "LinearAttention",
        27,
        {"q": (0, 3, 8), "k": (0, 3, 8), "v": (0, 3, 8)},
        {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "linear"},
        [(0, 3, 8), (0, 2, 4, 4)],
        id="LinearAttention",
    ),
    *(
        pytest.param(
            "RotaryEmbedding",
            23,
            {"x": shape, "cos": (0, 3, half), "sin": (0, 3, half)},
            {"num_heads": 2, "interleaved": interleaved, "rotary_embedding_dim": 2 * half if half < 2 else 0},
            [shape],
            id=f"RotaryEmbedding of rank {len(shape)}, interleaved={interleaved}, half={half}",
        )
        for shape in ((0, 3, 8), (0, 2, 3, 4))
        for interleaved in (0, 1)
        for half in (1, 2)
    ),
]


@pytest.mark.parametrize("is_symbolic", [False, True])
@pytest.mark.parametrize(("op_type", "opset", "shapes", "attributes", "results"), CASES)
def test_accepts_empty_batch(
    op_type: str,
    opset: int,
    shapes: dict[str, tuple[int, ...]],
    attributes: dict[str, Any],
    results: list[tuple[int, ...]],
    is_symbolic: bool,
) -> None:
    feeds = {
        name: np.zeros(shape, np.int64 if name == "labels" else np.float32) for name, shape in shapes.items()
    }
    outputs = [f"y{index}" for index in range(len(results))]
    node = helper.make_node(op_type, list(feeds), outputs, **attributes)
    model = build([node], feeds, outputs, opset)
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        dims[0].dim_param = "batch"
        for axis, dim in enumerate(dims):
            if is_symbolic and axis and op_type == "GridSample":
                dim.dim_param = f"{value.name}{axis}"
    for target in sorted({9, min(13, opset - 1), opset - 1}):
        found = run(convert_version(model, target), feeds)
        assert [each.shape for each in found] == results
