"""`print` shows a summary of each result, not all of its fields."""

from __future__ import annotations

from collections.abc import Callable

import onnx
import pytest
from onnx import parser

import opshift
from opshift.analysis.reach import reach
from opshift.batch.outcome import ModelError, ModelOutcome


def plain(node: str) -> onnx.ModelProto:
    return parser.parse_model(f"""
        <ir_version: 6, opset_import: ["" : 11]> g (float[2] x) => (float[2] y) {{ {node} }}
    """)


def failed_verification(original: onnx.ModelProto, converted: onnx.ModelProto) -> object:
    with pytest.raises(opshift.VerificationFailed) as caught:
        opshift.verify(original, converted)
    return caught.value.verification


LIMITED = parser.parse_model("""
    <ir_version: 6, opset_import: ["" : 13]>
    g (bfloat16[2] b, float[2] x) => (float[2] y, bfloat16[2] c) { y = Relu (x) c = Identity (b) }
""")
RELU, OTHER = plain("y = Relu (x)"), plain("y = Neg (x)")
PRINTED: dict[str, tuple[Callable[[], object], list[str]]] = {
    "plan": (
        lambda: opshift.plan_version(RELU, 6),
        ["ai.onnx 11 -> 6, IR version 6 -> 3; 0 nodes change, 0 are refused"],
    ),
    "runs": (
        lambda: opshift.runs(RELU, ["onnxruntime-1.20.1", "onnxruntime-1.21.1", "tract-0.23.9"]),
        ["onnxruntime 1.20.1 to 1.21.1: runs", "tract-0.23.9: runs"],
    ),
    "reach": (lambda: reach(RELU), ["ai.onnx 11: reachable opsets 1 to 28"]),
    "common opset": (
        lambda: opshift.common_opset([RELU, LIMITED]),
        ["ai.onnx: common opsets 13 to 28, IR version 14"],
    ),
    "outcome": (
        lambda: ModelOutcome("a.onnx", "b.onnx", "converted"),
        ["converted: a.onnx -> b.onnx"],
    ),
    "failed outcome": (
        lambda: ModelOutcome("a.onnx", "b.onnx", "failed", ModelError("InvalidModel", "is empty")),
        ["failed: a.onnx: is empty"],
    ),
    "limited reach": (
        lambda: reach(LIMITED),
        [
            "ai.onnx 13: reachable opsets 13 to 28",
            "opset 12: graph, node Identity -> c: ",
        ],
    ),
    "diagnosis": (
        lambda: opshift.diagnose(RELU),
        ["model: ai.onnx 11, valid 1 to 28", "IR version 6, fitting 6"],
    ),
    "diagnosis of an invalid node": (
        lambda: opshift.diagnose(plain("y = Clip <min = 0.0> (x)")),
        [
            "model: ai.onnx 11, valid 1 to 10",
            "IR version 6, fitting 6",
            "graph, node Clip -> y: ai.onnx.Clip:11 has no",
        ],
    ),
    "equal outputs": (lambda: opshift.verify(RELU, RELU), ["outputs agree: 6 samples in onnxruntime "]),
    "different outputs": (
        lambda: failed_verification(RELU, OTHER),
        ["outputs differ: 3 samples in onnxruntime ", "y: "],
    ),
    "fit": (
        lambda: opshift.fit(RELU, "onnxruntime-1.20.1").report,
        ["onnxruntime-1.20.1: ai.onnx 11, IR version 6", "nodes: 1 -> 1"],
    ),
    "comparison": (
        lambda: opshift.compare(RELU, OTHER),
        ["required increment: MAJOR", "MAJOR OPERATORS_CHANGED: "],
    ),
    "inferred values": (
        lambda: opshift.infer(
            plain("y = Identity (x) z = Constant <value_ints = [1, 2, 3, 4, 5, 6, 7, 8, 9]> ()")
        ),
        [
            "graph: x: tensor(float)[2]",
            "graph: y: tensor(float)[2]",
            "graph: z: tensor(int64)[9] = [1, 2, 3, 4, 5, 6, 7, 8, ...]",
        ],
    ),
}


@pytest.mark.parametrize(("result", "lines"), PRINTED.values(), ids=PRINTED)
def test_printed_result(result: Callable[[], object], lines: list[str]) -> None:
    printed = str(result()).splitlines()
    assert [text[: len(line)] for text, line in zip(printed, lines, strict=True)] == lines
