"""Opset ranges in which a node is legal, and the reason why it is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.execution import Array, build
from support.ir_models import node

from opshift import default_registry
from opshift.analysis.doctor.diagnose import diagnose
from opshift.analysis.doctor.diagnosis import NodeValidity, opset_ranges

FLOATS = np.ones((2, 3), np.float32)
INTEGERS = np.ones((2, 3), np.int64)
NEWEST = default_registry().newest_opset()


def diagnose_node(tested: onnx.NodeProto, feeds: Mapping[str, Array], opset: int = 13) -> NodeValidity:
    outputs = {name: TensorProto.FLOAT for name in tested.output if name}
    model = build([tested], feeds, outputs, opset)
    for value in model.graph.output:
        value.ClearField("type")
    (legality,) = diagnose(model).nodes
    return legality


LEGAL_CASES: list[tuple[str, onnx.NodeProto, Sequence[Array], list[tuple[int, int]]]] = [
    ("operator since its first opset", node("Gelu", ["a"], ["y"]), [FLOATS], [(20, NEWEST)]),
    ("operator before new inputs", node("Upsample", ["a"], ["y"], scales=[1.0, 2.0]), [FLOATS], [(7, 8)]),
    ("operator before deprecation", node("Scatter", ["a", "b", "a"], ["y"]), [FLOATS, INTEGERS], [(9, 10)]),
    ("version deprecated after its release", helper.make_node(
        "GroupNormalization", ["a", "b", "b"], ["y"], num_groups=1), [FLOATS, FLOATS], [(18, NEWEST)]),
    ("attribute before it became an input", node("Squeeze", ["a"], ["y"], axes=[0]), [FLOATS], [(1, 12)]),
    ("input that was an attribute", node("Clip", ["a", "b"], ["y"]), [FLOATS, FLOATS], [(11, NEWEST)]),
    ("omitted optional input", node("Clip", ["a", "", "b"], ["y"]), [FLOATS, FLOATS], [(11, NEWEST)]),
    ("missing required attribute", node("Cast", ["a"], ["y"]), [FLOATS], []),
    ("attribute with a changed type", node("LpPool", ["a"], ["y"], kernel_shape=[1], p=2), [FLOATS],
     [(2, NEWEST)]),
    ("added attribute value", node("ScatterND", ["a", "b", "a"], ["y"], reduction="max"), [FLOATS, INTEGERS],
     [(18, NEWEST)]),
    ("removed attribute value", node("GridSample", ["a", "b"], ["y"], mode="bilinear"), [FLOATS, FLOATS],
     [(16, 19)]),
    ("added element type", node("Relu", ["a"], ["y"]), [INTEGERS], [(14, NEWEST)]),
    ("element type of the second input", node("Pow", ["a", "b"], ["y"]), [FLOATS, INTEGERS], [(12, NEWEST)]),
    ("optional output", node("Dropout", ["a"], ["y", "m"]), [FLOATS], [(1, NEWEST)]),
    ("too many inputs", node("Relu", ["a", "b"], ["y"]), [FLOATS, FLOATS], []),
    ("unknown operator", node("Rilu", ["a"], ["y"]), [FLOATS], []),
    ("operator that onnxruntime executes earlier", node("LayerNormalization", ["a", "b"], ["y"]),
     [FLOATS, FLOATS], [(17, NEWEST)]),
    ("operator that no opset defines", node("SimplifiedRelu", ["a"], ["y"]), [FLOATS], []),
    ("private attribute", node("Relu", ["a"], ["y"], __mark=1), [FLOATS], [(1, NEWEST)]),
    ("integer Constant", node("Constant", [], ["y"], value=helper.make_tensor("v", 7, [1], [1])), [],
     [(1, NEWEST)]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("tested", "inputs", "opsets"), [row[1:] for row in LEGAL_CASES], ids=[row[0] for row in LEGAL_CASES]
)
def test_finds_legal_opsets(
    tested: onnx.NodeProto, inputs: Sequence[Array], opsets: list[tuple[int, int]]
) -> None:
    legality = diagnose_node(tested, dict(zip("ab", inputs, strict=False)))
    assert list(legality.opsets) == opsets
    is_legal_here = any(low <= 13 <= high for low, high in opsets)
    assert bool(legality.reason) != is_legal_here


REASON_CASES: list[tuple[str, onnx.NodeProto, int, str]] = [
    ("operator added later", node("Gelu", ["a"], ["y"]), 13, "Gelu does not exist in opset 13 of ai.onnx"),
    ("operator that onnxruntime executes", node("LayerNormalization", ["a", "a"], ["y"]), 13,
     "LayerNormalization does not exist in opset 13 of ai.onnx, only com.microsoft defines it"),
    ("deprecated", node("Upsample", ["a", "a"], ["y"]), 10, "Upsample is deprecated in opset 10 of ai.onnx"),
    ("unknown attribute", node("Squeeze", ["a"], ["y"], axes=[0]), 13, "Squeeze:13 has no attribute 'axes'"),
    ("too many inputs", node("Clip", ["a", "a"], ["y"]), 9, "has 2 inputs"),
    ("too many values, some omitted", node("Clip", ["a", "", ""], ["y"]), 9, "the node has 3 inputs; "),
    ("omitted required input", node("Clip", ["", "a"], ["y"]), 13,
     "'input' is omitted, but ai.onnx.Clip:13 requires it"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("tested", "opset", "reason"), [row[1:] for row in REASON_CASES], ids=[row[0] for row in REASON_CASES]
)
def test_gives_reason(tested: onnx.NodeProto, opset: int, reason: str) -> None:
    assert reason in diagnose_node(tested, {"a": FLOATS}, opset).reason


@pytest.mark.parametrize(
    ("opsets", "expected"),
    [
        ([], ()),
        ([5], ((5, 5),)),
        ([3, 1, 2], ((1, 3),)),
        ([1, 2, 7, 9, 10], ((1, 2), (7, 7), (9, 10))),
    ],
    ids=["none", "one opset", "one range", "several ranges"],
)
def test_merges_opsets_into_ranges(opsets: list[int], expected: Any) -> None:
    assert opset_ranges(opsets) == expected
