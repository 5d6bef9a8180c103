"""Nodes of com.microsoft that differ from their definition, but are allowed by a release of onnxruntime."""

from __future__ import annotations

import onnx
import pytest

import opshift

MODEL = """
<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
g (float[2, 3] x, float[2, 3] y, float[2, 3] z, float[3] w,
   uint8[2, 3, 4] b, int32[6] n) => (float[2, M] o) {{
    o = com.microsoft.{node}
}}
"""
BITS = "K = 3, N = 2, bits = 4, block_size = 16"


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("node", "rules"),
    [
        pytest.param("GatedAdd (x, y, z)", [], id="as defined"),
        pytest.param("GatedAdd (x, y, z, x)", ["node.release 1.32.0"], id="input of a later release"),
        pytest.param("GatedAdd (x, y, z, x, x)", ["node.input-count"], id="unknown input"),
        pytest.param("GatedAdd (x)", ["node.input-count"], id="fewer inputs than any release"),
        pytest.param(
            "MoE <k = 1, swiglu_limit_after_activation = 1> (x, y, z, w, z)",
            ["node.release 1.32.0"],
            id="attribute of a later release",
        ),
        pytest.param("MoE <k = 1> (x, y, z, w)", ["node.release 1.17.3"], id="inputs of an older release"),
        pytest.param(
            "MoE <k = 1, swiglu_limit = 1.0> (x, y, z, w)",
            ["node.input-count"],
            id="inputs of an older release and an attribute that it lacks",
        ),
        pytest.param("FastGelu <foo = 1> (x)", ["node.attribute-known"], id="unknown attribute"),
        pytest.param("FastGelu <__foo = 1> (x)", [], id="private attribute"),
        pytest.param(f"MatMulNBits <{BITS}> (x, b, w, n)", [], id="type of older releases"),
        pytest.param(
            f"MatMulNBits <{BITS}> (x, b, b, n)", ["type.input", "type.variable"], id="unknown type"
        ),
    ],
)
def test_node_that_a_release_allows_is_no_error(node: str, rules: list[str]) -> None:
    findings = opshift.check(onnx.parser.parse_model(MODEL.format(node=node)))
    releases = {each.rule: each.reason.partition("'onnxruntime-")[2].rstrip("'") for each in findings}
    assert [f"{rule} {release}".strip() for rule, release in releases.items()] == rules
