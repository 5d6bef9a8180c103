"""RotaryEmbedding of com.microsoft computes the same as standard operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.com_microsoft import NodeCase, assert_replaced, case, model_of, without_microsoft
from support.forms import RANKED_FORMS

from opshift import ConversionRefused

HEADS, SIZE, LENGTH = 3, 8, 5


def _rotation(
    *, rank: int = 3, width: int = 0, offset: bool = False, element_type: Any = np.float32, **attributes: Any
) -> NodeCase:
    """Return a node; `width` is the number of rotated features, `offset` gives the first position only."""
    random = np.random.default_rng(rank)
    shape = (2, LENGTH, HEADS * SIZE) if rank == 3 else (2, HEADS, LENGTH, SIZE)
    angles = random.normal(size=(16, (width or SIZE) // 2))
    if width:
        attributes = {"rotary_embedding_dim": width, "num_heads": HEADS, **attributes}
    return case(
        "RotaryEmbedding",
        random.normal(size=shape).astype(element_type),
        np.array([3]) if offset else random.integers(0, 16, (2, LENGTH)),
        np.cos(angles).astype(element_type),
        np.sin(angles).astype(element_type),
        **attributes,
    )


ROTATIONS = {
    "packed heads": _rotation(),
    "separate heads": _rotation(rank=4),
    "first position": _rotation(offset=True),
    "separate heads, first position": _rotation(rank=4, offset=True),
    "neighbours": _rotation(interleaved=1),
    "part": _rotation(width=4),
    "part of separate heads": _rotation(rank=4, width=4, interleaved=1),
    "number of heads": _rotation(num_heads=HEADS),
    "unread scale": _rotation(scale=2.0),
}


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize("name", ROTATIONS)
def test_equals_the_kernel(name: str, form: str) -> None:
    given = ROTATIONS[name]
    if form == "symbolic" and name in ("packed heads", "first position", "neighbours", "unread scale"):
        given = given._replace(attributes={**given.attributes, "num_heads": HEADS})
    for opset in (11, 17, 23):
        assert_replaced(given, form, opset)


@pytest.mark.parametrize("offset", [False, True])
def test_equals_the_kernel_in_half_precision(offset: bool) -> None:
    assert_replaced(_rotation(offset=offset, element_type=np.float16), tolerance=5e-3)


def test_emits_one_node_where_the_target_has_the_operator() -> None:
    result = without_microsoft(model_of(ROTATIONS["separate heads"])[0], 23)
    assert [node.op_type for node in result.graph.node] == ["RotaryEmbedding"]


def test_refuses_packed_batches() -> None:
    with pytest.raises(ConversionRefused, match="is_packed_batching is 1"):
        without_microsoft(model_of(_rotation(is_packed_batching=1))[0], 23)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("offset", [False, True])
def test_computes_an_unknown_number_of_heads(interleaved: int, offset: bool) -> None:
    given = _rotation(interleaved=interleaved, offset=offset)
    for opset in (17, 23):
        assert_replaced(given, "symbolic", opset)
