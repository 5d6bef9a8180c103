"""For which opsets a node is legal: as the definitions in force there have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.ir_models import node
from support.running import Array, build

from opshift.converter.doctor.diagnose import diagnose
from opshift.converter.doctor.diagnosis import NodeLegality, ranges

FLOATS = np.ones((2, 3), np.float32)
WHOLE = np.ones((2, 3), np.int64)
NEWEST = 28


def legality(made: onnx.NodeProto, feeds: Mapping[str, Array], opset: int = 13) -> NodeLegality:
    outputs = {name: TensorProto.FLOAT for name in made.output if name}
    model = build([made], feeds, outputs, opset)
    for value in model.graph.output:
        value.ClearField("type")
    (found,) = diagnose(model).nodes
    return found


ROWS: list[tuple[str, onnx.NodeProto, Sequence[Array], list[tuple[int, int]]]] = [
    ("an operator from its first opset on", node("Gelu", ["a"], ["y"]), [FLOATS], [(20, NEWEST)]),
    ("an operator until it changed", node("Upsample", ["a"], ["y"], scales=[1.0, 2.0]), [FLOATS], [(7, 8)]),
    ("one until it is deprecated", node("Scatter", ["a", "b", "a"], ["y"]), [FLOATS, WHOLE], [(9, 10)]),
    ("one deprecated after models had it", helper.make_node(
        "GroupNormalization", ["a", "b", "b"], ["y"], num_groups=1), [FLOATS, FLOATS], [(18, NEWEST)]),
    ("an attribute that became an input", node("Squeeze", ["a"], ["y"], axes=[0]), [FLOATS], [(1, 12)]),
    ("an input that was an attribute", node("Clip", ["a", "b"], ["y"]), [FLOATS, FLOATS], [(11, NEWEST)]),
    ("an input left out", node("Clip", ["a", "", "b"], ["y"]), [FLOATS, FLOATS], [(11, NEWEST)]),
    ("an attribute that is required", node("Cast", ["a"], ["y"]), [FLOATS], []),
    ("an attribute of another type", node("LpPool", ["a"], ["y"], kernel_shape=[1], p=2), [FLOATS],
     [(2, NEWEST)]),
    ("a value that is new", node("ScatterND", ["a", "b", "a"], ["y"], reduction="max"), [FLOATS, WHOLE],
     [(18, NEWEST)]),
    ("a value that was given up", node("GridSample", ["a", "b"], ["y"], mode="bilinear"), [FLOATS, FLOATS],
     [(16, 19)]),
    ("a type that is new", node("Relu", ["a"], ["y"]), [WHOLE], [(14, NEWEST)]),
    ("a type of the second input", node("Pow", ["a", "b"], ["y"]), [FLOATS, WHOLE], [(12, NEWEST)]),
    ("more outputs than there were", node("Dropout", ["a"], ["y", "m"]), [FLOATS], [(1, NEWEST)]),
    ("too many inputs", node("Relu", ["a", "b"], ["y"]), [FLOATS, FLOATS], []),
    ("an unknown operator", node("Rilu", ["a"], ["y"]), [FLOATS], []),
    ("a tool's own attribute", node("Relu", ["a"], ["y"], __mark=1), [FLOATS], [(1, NEWEST)]),
    ("integers of a Constant", node("Constant", [], ["y"], value=helper.make_tensor("v", 7, [1], [1])), [],
     [(1, NEWEST)]),
]  # fmt: skip


@pytest.mark.parametrize(("made", "given", "opsets"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_it_is_legal_at(made: onnx.NodeProto, given: Sequence[Array], opsets: list[tuple[int, int]]) -> None:
    found = legality(made, dict(zip("ab", given, strict=False)))
    assert list(found.opsets) == opsets
    is_legal_here = any(low <= 13 <= high for low, high in opsets)
    assert bool(found.reason) != is_legal_here


REASONS: list[tuple[str, onnx.NodeProto, int, str]] = [
    ("not there yet", node("Gelu", ["a"], ["y"]), 13, "Gelu does not exist in opset 13 of ai.onnx"),
    ("deprecated", node("Upsample", ["a", "a"], ["y"]), 10, "Upsample is deprecated in opset 10 of ai.onnx"),
    ("an attribute", node("Squeeze", ["a"], ["y"], axes=[0]), 13, "Squeeze:13 has no attribute 'axes'"),
    ("a count", node("Clip", ["a", "a"], ["y"]), 9, "has 2 inputs"),
    ("a count that names leave open", node("Clip", ["a", "", ""], ["y"]), 9, "the node has 3 values where"),
    ("an input", node("Clip", ["", "a"], ["y"]), 13, "'input' is omitted, but ai.onnx.Clip:13 requires it"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("made", "opset", "reason"), [row[1:] for row in REASONS], ids=[row[0] for row in REASONS]
)
def test_it_says_why_not(made: onnx.NodeProto, opset: int, reason: str) -> None:
    assert reason in legality(made, {"a": FLOATS}, opset).reason


@pytest.mark.parametrize(
    ("opsets", "found"),
    [
        ([], ()),
        ([5], ((5, 5),)),
        ([3, 1, 2], ((1, 3),)),
        ([1, 2, 7, 9, 10], ((1, 2), (7, 7), (9, 10))),
    ],
    ids=["none", "one", "a row", "several rows"],
)
def test_opsets_are_told_as_ranges(opsets: list[int], found: Any) -> None:
    assert ranges(opsets) == found
