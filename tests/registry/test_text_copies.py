"""Texts share no sentence and no long run of words with the documentation of ONNX."""

from __future__ import annotations

import pytest

from compare_texts import copies_in, copies_of, main
from opshift.registry.models import Operator
from opshift.registry.registry import default_registry

pytestmark = pytest.mark.every_case

OPERATORS = {f"{each.domain}.{each.name}": each for each in default_registry().operators()}


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_texts_of_an_operator_are_no_copies(operator: Operator) -> None:
    assert list(copies_in(operator)) == []


@pytest.mark.parametrize(
    ("text", "copies"),
    [
        pytest.param("The output values with the same shape as the input tensor.", 1, id="sentence"),
        pytest.param("THE output values: with the `same` shape as the input, tensor.", 1, id="other marks"),
        pytest.param("First, the output values with the same shape as the input; then more.", 1, id="run"),
        pytest.param("They have the same shape as the input tensor. It is any.", 0, id="short run"),
        pytest.param("Here `x = (x_resized + 0.5) / scale - 0.5, a * b + c * d - e` holds.", 0, id="formula"),
        pytest.param("The input tensor.", 0, id="short sentence"),
    ],
)
def test_finds_copies(text: str, copies: int) -> None:
    assert len(list(copies_of(text))) == copies


def test_command_prints_copies(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["Softmax", "LSTM"]) == 0
    assert capsys.readouterr().out.split() == ["2", "operators,", "0", "copies"]
