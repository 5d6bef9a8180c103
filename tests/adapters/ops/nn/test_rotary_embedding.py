"""Downgrades of RotaryEmbedding below opset 23."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.dynamic import with_symbolic_dims
from support.execution import Array, build, op_types

BATCH, HEADS, TOKENS, HEAD_SIZE = 2, 3, 4, 8
RANDOM = np.random.default_rng(1)


def _random(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def _case(
    rotary_size: int = HEAD_SIZE, *, packed: bool = False, positions: bool = True, **attributes: Any
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    shape = (BATCH, TOKENS, HEADS * HEAD_SIZE) if packed else (BATCH, HEADS, TOKENS, HEAD_SIZE)
    cache_shape = (10, rotary_size // 2) if positions else (BATCH, TOKENS, rotary_size // 2)
    feeds = {"x": _random(*shape), "cos": _random(*cache_shape), "sin": _random(*cache_shape)}
    if positions:
        feeds["at"] = RANDOM.integers(0, 10, (BATCH, TOKENS))
    if packed:
        attributes["num_heads"] = HEADS
    node = helper.make_node("RotaryEmbedding", list(feeds), ["y"], name="node", **attributes)
    return build([node], feeds, ["y"], 23, ir_version=10), feeds


CASES = [
    pytest.param(_case(), id="4-D data"),
    pytest.param(_case(packed=True), id="3-D data"),
    pytest.param(_case(interleaved=1), id="interleaved"),
    pytest.param(_case(packed=True, interleaved=1), id="3-D data, interleaved"),
    pytest.param(_case(4, rotary_embedding_dim=4), id="partial rotation"),
    pytest.param(
        _case(4, packed=True, rotary_embedding_dim=4, interleaved=1),
        id="partial rotation of 3-D data, interleaved",
    ),
    pytest.param(_case(rotary_embedding_dim=HEAD_SIZE, positions=False), id="angles per token"),
    pytest.param(
        _case(4, packed=True, rotary_embedding_dim=4, positions=False),
        id="partial rotation of 3-D data, angles per token",
    ),
]


@pytest.mark.parametrize("case", CASES)
def test_expands_rotary_embedding(case: tuple[onnx.ModelProto, dict[str, Array]]) -> None:
    model, feeds = case
    for target in (7, 15, 22):
        convert_and_check(model, target, feeds)
    symbolic_model = onnx.ModelProto()
    symbolic_model.CopyFrom(model)
    for target in (10, 22):
        convert_and_check(with_symbolic_dims(symbolic_model), target, feeds)


def test_one_cache_is_read_once() -> None:
    model, feeds = _case()
    model.graph.node[0].input[2] = "cos"
    converted = convert_and_check(model, 22, feeds)
    assert [each.op_type for each in converted.graph.node].count("Unsqueeze") == 1


def test_refuses_3d_data_without_num_heads() -> None:
    model, _ = _case(packed=True)
    del model.graph.node[0].attribute[:]
    assert refusal_of(model, 22).reason == "num_heads is missing, but 3-D data requires it"


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize(("rotary_size", "attributes"), [(7, {}), (3, {"rotary_embedding_dim": 3})])
def test_refuses_odd_numbers_of_rotated_elements(
    rotary_size: int, attributes: dict[str, int], interleaved: int
) -> None:
    feeds = {"x": _random(BATCH, HEADS, TOKENS, 7)}
    feeds |= {name: _random(BATCH, TOKENS, rotary_size // 2) for name in ("cos", "sin")}
    node = helper.make_node("RotaryEmbedding", list(feeds), ["y"], interleaved=interleaved, **attributes)
    refusal = refusal_of(build([node], feeds, ["y"], 23, ir_version=10), 22)
    assert refusal.code == "node.invalid"
    assert (
        refusal.reason
        == f"{rotary_size} elements of each head are rotated in pairs, but {rotary_size} is odd"
    )


@pytest.mark.parametrize("packed", [False, True])
def test_splits_heads_into_halves(packed: bool) -> None:
    model, feeds = _case(packed=packed)
    types = op_types(convert_and_check(model, 22, feeds))
    assert types.count("Split") == 1
    assert types.count("Gather") == 2  # the angles at the positions
