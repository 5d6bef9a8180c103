"""What identifies an operator, as text and back."""

import pytest

from opshift.registry.errors import OpshiftError
from opshift.registry.names import OperatorId, canonical_domain

SPELLINGS = {
    "a domain of ONNX": ("ai.onnx.Softmax:13", OperatorId("ai.onnx", "Softmax", 13), "ai.onnx.Softmax:13"),
    "a longer domain": ("ai.onnx.ml.Scaler:1", OperatorId("ai.onnx.ml", "Scaler", 1), "ai.onnx.ml.Scaler:1"),
    "a domain of one's own": ("com.acme.Blur:3", OperatorId("com.acme", "Blur", 3), "com.acme.Blur:3"),
    "a domain of one word": ("acme.Blur:3", OperatorId("acme", "Blur", 3), "acme.Blur:3"),
    "no domain is the default one": (
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
def test_an_operator_is_read(text: str, parsed: OperatorId, printed: str) -> None:
    assert OperatorId.parse(text) == parsed
    assert str(parsed) == printed


@pytest.mark.parametrize("parsed", [row[1] for row in SPELLINGS.values()], ids=SPELLINGS)
def test_what_is_printed_is_read_back(parsed: OperatorId) -> None:
    assert OperatorId.parse(str(parsed)) == parsed


NO_OPERATORS = {
    "nothing": "",
    "no version": "ai.onnx.Softmax",
    "an empty version": "Softmax:",
    "a version that is no number": "Softmax:new",
    "a negative version": "Softmax:-1",
    "a version with a point": "Softmax:1.3",
    "no name": ":13",
    "a domain without a name": "ai.onnx.:13",
}


@pytest.mark.parametrize("text", NO_OPERATORS.values(), ids=NO_OPERATORS)
def test_what_is_no_operator_is_refused(text: str) -> None:
    with pytest.raises(OpshiftError) as caught:
        OperatorId.parse(text)
    assert caught.value.reason == f"{text!r} is not an operator version"
    assert caught.value.remedy == "write it as ai.onnx.Softmax:13"


@pytest.mark.parametrize(
    ("domain", "canonical"),
    [("", "ai.onnx"), ("ai.onnx", "ai.onnx"), ("ai.onnx.ml", "ai.onnx.ml"), ("x", "x")],
)
def test_the_empty_domain_is_the_default_one(domain: str, canonical: str) -> None:
    assert canonical_domain(domain) == canonical
