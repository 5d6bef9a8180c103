"""Violations of a single node outside of a model."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import helper

import opshift

CASES: dict[str, tuple[Any, int, dict[str, Any], set[str]]] = {
    "valid": (helper.make_node("Softmax", ["x"], ["y"], axis=1), 13, {"x": ("float", (2, 3))}, set()),
    "without facts": (helper.make_node("Softmax", ["x"], ["y"], axis=1), 13, {}, set()),
    "unknown operator": (helper.make_node("Softmix", ["x"], ["y"]), 13, {}, {"node.operator"}),
    "type": (
        helper.make_node("Softmax", ["x"], ["y"]), 13, {"x": ("int64", (2,))}, {"type.input", "type.output"}
    ),
    "attribute": (helper.make_node("Relu", ["x"], ["y"], alpha=1.0), 13, {}, {"node.attribute-known"}),
    "inputs": (helper.make_node("Relu", ["x", "z"], ["y"]), 13, {}, {"node.input-count"}),
    "axis": (
        helper.make_node("Softmax", ["x"], ["y"], axis=5), 13, {"x": ("float", (2, 3))}, {"node.axis"}
    ),
}  # fmt: skip


@pytest.mark.parametrize(("node", "opset", "inputs", "expected"), CASES.values(), ids=CASES)
def test_finds_violations(node: Any, opset: int, inputs: dict[str, Any], expected: set[str]) -> None:
    assert {each.rule for each in opshift.validate_node(node, opset, inputs)} == expected


def test_opset_is_that_of_the_domain() -> None:
    node = helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml")
    assert opshift.validate_node(node, 1) == ()
    with pytest.raises(opshift.ResolveError):
        opshift.validate_node(node, 99)
