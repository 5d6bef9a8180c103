"""onnx.reference is trusted only with versions that it evaluates as they are meant."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from support.running import build

from opshift.converter.verification.reference import unimplemented
from opshift.registry.catalogue import default_registry


def one(op: str, opset: int, domain: str = "") -> onnx.ModelProto:
    node = helper.make_node(op, ["x"], ["y"], domain=domain)
    return build([node], {"x": np.zeros(2, np.float32)}, ["y"], {"": 17, domain: opset})


TRUSTED = {
    "the newest version": ("Softmax", 13, ""),
    "an older one of the same meaning": ("Relu", 7, ""),
    "one that only had a hint more": ("Relu", 1, ""),
    "one with an implementation of its own": ("Clip", 6, ""),
    "a function of its definition": ("HardSwish", 14, ""),
    "no operator of ours": ("Frob", 3, "com.acme"),
}
DOUBTED = {
    "Softmax over all that follows the axis": ("Softmax", 12, "", "ai.onnx.Softmax:11 as version 13"),
    "Add that broadcasts by an attribute": ("Add", 6, "", "ai.onnx.Add:6 as version 7"),
    "labels of fixed types": ("LabelEncoder", 1, "ai.onnx.ml", "ai.onnx.ml.LabelEncoder:1 as version 2"),
}


@pytest.mark.parametrize(("op", "opset", "domain"), TRUSTED.values(), ids=TRUSTED)
def test_trusted(op: str, opset: int, domain: str) -> None:
    assert list(unimplemented(one(op, opset, domain), default_registry())) == []


@pytest.mark.parametrize(("op", "opset", "domain", "reason"), DOUBTED.values(), ids=DOUBTED)
def test_doubted(op: str, opset: int, domain: str, reason: str) -> None:
    first = next(unimplemented(one(op, opset, domain), default_registry()))
    assert first == f"it evaluates {reason}, which means something else"


def test_a_function_of_the_model_goes_by_its_body() -> None:
    model = one("Softmax", 12, "")
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
    assert [reason.split()[2] for reason in unimplemented(model, default_registry())] == ["ai.onnx.Add:6"]
