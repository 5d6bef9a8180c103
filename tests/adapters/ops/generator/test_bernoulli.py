"""Expansion of Bernoulli below opset 15, checked by the frequency of random samples."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.execution import build, op_types, run

from opshift import convert_version

ELEMENT_TYPES = {"bool": TensorProto.BOOL, "int32": TensorProto.INT32, "double": TensorProto.DOUBLE}


@pytest.mark.parametrize("type_name", ELEMENT_TYPES)
@pytest.mark.parametrize("seed", [{}, {"seed": 2.0}], ids=["no seed", "explicit seed"])
def test_samples_with_the_given_probability(seed: dict[str, float], type_name: str) -> None:
    feeds = {"p": np.repeat(np.array([0.0, 0.25, 1.0], np.float32), 4000).reshape(3, 4000)}
    node = helper.make_node("Bernoulli", ["p"], ["y"], name="node", dtype=ELEMENT_TYPES[type_name], **seed)
    result = convert_version(build([node], feeds, {"y": ELEMENT_TYPES[type_name]}, 15), 14)
    assert op_types(result) == ["RandomUniformLike", "Less", "Cast"]
    (samples,) = run(result, feeds)
    assert samples.dtype == helper.tensor_dtype_to_np_dtype(ELEMENT_TYPES[type_name])
    assert samples.astype(float).mean(1) == pytest.approx([0, 0.25, 1], abs=0.04)


def test_defaults_to_the_type_of_the_probability() -> None:
    feeds = {"p": np.array([0.0, 1.0], np.float32)}
    model = build([helper.make_node("Bernoulli", ["p"], ["y"])], feeds, ["y"], 15)
    assert run(convert_version(model, 7), feeds)[0].tolist() == [0.0, 1.0]
