"""Operator ids are parsed from text and printed; calls have the identity of their function."""

import pytest

from opshift.model.errors import OpshiftError
from opshift.model.messages import FunctionProto, NodeProto
from opshift.model.node import Node
from opshift.model.operator_ids import (
    LocalFunction,
    OperatorId,
    called_function,
    canonical_domain,
    function_id,
    function_label,
)

SPELLINGS = {
    "a domain of ONNX": ("ai.onnx.Softmax:13", OperatorId("ai.onnx", "Softmax", 13), "ai.onnx.Softmax:13"),
    "a longer domain": ("ai.onnx.ml.Scaler:1", OperatorId("ai.onnx.ml", "Scaler", 1), "ai.onnx.ml.Scaler:1"),
    "a custom domain": ("com.acme.Blur:3", OperatorId("com.acme", "Blur", 3), "com.acme.Blur:3"),
    "a domain of one word": ("acme.Blur:3", OperatorId("acme", "Blur", 3), "acme.Blur:3"),
    "the default domain is omitted": (
        "Softmax:13",
        OperatorId("ai.onnx", "Softmax", 13),
        "ai.onnx.Softmax:13",
    ),
    "a packed version": (
        "Blur:281483566645593",
        OperatorId("ai.onnx", "Blur", 0x1000200000159),
        "ai.onnx.Blur:281483566645593",
    ),
}


@pytest.mark.parametrize(("text", "parsed", "printed"), SPELLINGS.values(), ids=SPELLINGS)
def test_parses_and_prints_an_operator_id(text: str, parsed: OperatorId, printed: str) -> None:
    assert OperatorId.parse(text) == parsed
    assert str(parsed) == printed


@pytest.mark.parametrize("parsed", [row[1] for row in SPELLINGS.values()], ids=SPELLINGS)
def test_parses_its_own_output(parsed: OperatorId) -> None:
    assert OperatorId.parse(str(parsed)) == parsed


INVALID = {
    "an empty text": "",
    "no version": "ai.onnx.Softmax",
    "an empty version": "Softmax:",
    "a version that is not a number": "Softmax:new",
    "a negative version": "Softmax:-1",
    "a version with a decimal point": "Softmax:1.3",
    "no name": ":13",
    "a domain without a name": "ai.onnx.:13",
}


@pytest.mark.parametrize("text", INVALID.values(), ids=INVALID)
def test_refuses_text_that_is_not_an_operator_id(text: str) -> None:
    with pytest.raises(OpshiftError) as caught:
        OperatorId.parse(text)
    assert caught.value.reason == f"{text!r} is not an operator version"
    assert caught.value.remedy == "write it as ai.onnx.Softmax:13"


@pytest.mark.parametrize(
    ("domain", "canonical"),
    [("", "ai.onnx"), ("ai.onnx", "ai.onnx"), ("ai.onnx.ml", "ai.onnx.ml"), ("x", "x")],
)
def test_the_empty_domain_means_the_default_domain(domain: str, canonical: str) -> None:
    assert canonical_domain(domain) == canonical


def test_call_and_function_have_the_same_identity() -> None:
    function = FunctionProto(domain="", name="Blur", overload="wide")
    call = NodeProto(domain="ai.onnx", op_type="Blur", overload="wide")
    assert function_id(function) == called_function(call) == LocalFunction("ai.onnx", "Blur", "wide")
    assert function_label(function) == "ai.onnx.Blur:wide"


def test_emitted_node_has_no_overload() -> None:
    assert str(called_function(Node("Blur", (), (), {}, "acme"))) == "acme.Blur"
