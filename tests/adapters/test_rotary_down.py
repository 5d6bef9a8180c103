"""RotaryEmbedding before 23."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.dynamic import symbolic
from support.running import Array, build

from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
BATCH, HEADS, TOKENS, SIZE = 2, 3, 4, 8
NUMBERS = np.random.default_rng(1)


def _random(*shape: int) -> Array:
    return NUMBERS.standard_normal(shape).astype(np.float32)


def _case(
    width: int = SIZE, *, packed: bool = False, positions: bool = True, **attributes: Any
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    shape = (BATCH, TOKENS, HEADS * SIZE) if packed else (BATCH, HEADS, TOKENS, SIZE)
    angles = (10, width // 2) if positions else (BATCH, TOKENS, width // 2)
    feeds = {"x": _random(*shape), "cos": _random(*angles), "sin": _random(*angles)}
    if positions:
        feeds["at"] = NUMBERS.integers(0, 10, (BATCH, TOKENS))
    if packed:
        attributes["num_heads"] = HEADS
    node = helper.make_node("RotaryEmbedding", list(feeds), ["y"], name="node", **attributes)
    return build([node], feeds, ["y"], 23, ir_version=10), feeds


CASES = [
    pytest.param(_case(), id="heads apart"),
    pytest.param(_case(packed=True), id="heads packed"),
    pytest.param(_case(interleaved=1), id="partners next to each other"),
    pytest.param(_case(packed=True, interleaved=1), id="heads packed, partners next to each other"),
    pytest.param(_case(4, rotary_embedding_dim=4), id="a part is turned"),
    pytest.param(_case(4, packed=True, rotary_embedding_dim=4, interleaved=1), id="a part, interleaved"),
    pytest.param(_case(rotary_embedding_dim=SIZE, positions=False), id="an angle for each token"),
    pytest.param(_case(4, packed=True, rotary_embedding_dim=4, positions=False), id="a part, for each token"),
]


@pytest.mark.parametrize("case", CASES)
def test_pairs_are_turned(case: tuple[onnx.ModelProto, dict[str, Array]], converted: Converted) -> None:
    model, feeds = case
    for target in (7, 15, 22):
        converted(model, target, feeds)
    unknown = onnx.ModelProto()
    unknown.CopyFrom(model)
    for target in (10, 22):
        converted(symbolic(unknown), target, feeds)


def test_packed_heads_have_to_be_counted(refusal: Callable[..., Refusal]) -> None:
    model, _ = _case(packed=True)
    del model.graph.node[0].attribute[:]
    assert refusal(model, 22).reason == "num_heads is missing, but 3-D data requires it"
