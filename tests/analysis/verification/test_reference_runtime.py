"""Operator versions that onnx.reference evaluates correctly, and versions that it does not."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from support.execution import build

from opshift.analysis.verification.reference_runtime import unsupported_operators
from opshift.registry.registry import default_registry


def single_node_model(op: str, opset: int, domain: str = "") -> onnx.ModelProto:
    node = helper.make_node(op, ["x"], ["y"], domain=domain)
    return build([node], {"x": np.zeros(2, np.float32)}, ["y"], {"": 17, domain: opset})


ACCEPTED = {
    "newest version": ("Softmax", 13, ""),
    "older version with the same meaning": ("Relu", 7, ""),
    "older version with an additional hint": ("Relu", 1, ""),
    "version with a separate implementation": ("Clip", 6, ""),
    "operator defined as a function": ("HardSwish", 14, ""),
    "operator of an unknown domain": ("Frob", 3, "com.acme"),
}
REFUSED = {
    "Softmax over all dimensions after the axis": ("Softmax", 12, "", "ai.onnx.Softmax:11 as version 13"),
    "Add with legacy broadcasting": ("Add", 6, "", "ai.onnx.Add:6 as version 7"),
    "LabelEncoder with fixed types": (
        "LabelEncoder",
        1,
        "ai.onnx.ml",
        "ai.onnx.ml.LabelEncoder:1 as version 2",
    ),
}


@pytest.mark.parametrize(("op", "opset", "domain"), ACCEPTED.values(), ids=ACCEPTED)
def test_accepts_version(op: str, opset: int, domain: str) -> None:
    assert list(unsupported_operators(single_node_model(op, opset, domain), default_registry())) == []


@pytest.mark.parametrize(("op", "opset", "domain", "reason"), REFUSED.values(), ids=REFUSED)
def test_refuses_version_with_different_meaning(op: str, opset: int, domain: str, reason: str) -> None:
    first = next(unsupported_operators(single_node_model(op, opset, domain), default_registry()))
    assert first == f"it evaluates {reason}, which computes different results"


def test_checks_body_of_model_function() -> None:
    model = single_node_model("Softmax", 12, "")
    model.functions.append(
        helper.make_function(
            "",
            "Softmax",
            ["x"],
            ["y"],
            [helper.make_node("Add", ["x", "x"], ["y"])],
            [helper.make_opsetid("", 6)],
        )
    )
    assert [reason.split()[2] for reason in unsupported_operators(model, default_registry())] == [
        "ai.onnx.Add:6"
    ]
