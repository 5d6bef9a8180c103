"""Bernoulli before 15: what is drawn is random, but not how often."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.running import build, op_types, run

from opshift import convert_version

KINDS = {"bool": TensorProto.BOOL, "int32": TensorProto.INT32, "double": TensorProto.DOUBLE}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [{}, {"seed": 2.0}], ids=["any seed", "seed stated"])
def test_as_often_as_the_probability_says(seed: dict[str, float], kind: str) -> None:
    feeds = {"p": np.repeat(np.array([0.0, 0.25, 1.0], np.float32), 4000).reshape(3, 4000)}
    node = helper.make_node("Bernoulli", ["p"], ["y"], name="node", dtype=KINDS[kind], **seed)
    result = convert_version(build([node], feeds, {"y": KINDS[kind]}, 15), 14)
    assert op_types(result) == ["RandomUniformLike", "Less", "Cast"]
    (drawn,) = run(result, feeds)
    assert drawn.dtype == helper.tensor_dtype_to_np_dtype(KINDS[kind])
    assert drawn.astype(float).mean(1) == pytest.approx([0, 0.25, 1], abs=0.04)


def test_the_type_is_that_of_the_probability() -> None:
    feeds = {"p": np.array([0.0, 1.0], np.float32)}
    model = build([helper.make_node("Bernoulli", ["p"], ["y"])], feeds, ["y"], 15)
    assert run(convert_version(model, 7), feeds)[0].tolist() == [0.0, 1.0]
