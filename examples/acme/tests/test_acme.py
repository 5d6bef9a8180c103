"""Tests of the conversions and shape rules of com.acme."""

import numpy as np
import pytest

import acme_operators.references as references
from opshift.testing import assert_step_preserves_outputs


def test_scale_2_reads_the_factor_from_an_input() -> None:
    """The attribute becomes a constant input."""
    found = assert_step_preserves_outputs("Scale", 1, 2, domain="com.acme")
    assert not found.refused


def test_scale_1_needs_a_constant_factor() -> None:
    """A constant input becomes the attribute, and a computed factor is refused."""
    found = assert_step_preserves_outputs("Scale", 2, 1, domain="com.acme", shapes={"factor": ()})
    assert found.compared == ("Scale(X: float, factor: float = constant)",)
    assert found.refused == {"Scale(X: float, factor: float)": "the factor ('factor') is not a constant"}


@pytest.mark.parametrize("opset", [9, 13, 17])
def test_opset_1_expresses_thin_by_slice(opset: int) -> None:
    """The shape rule is compared with the outputs, too."""
    found = assert_step_preserves_outputs("Thin", 2, 1, domain="com.acme", onnx_opset=opset)
    assert not found.refused


def test_thin_keeps_the_first_row() -> None:
    """The reference is an ordinary function."""
    assert references.thin(np.arange(5), stride=2).tolist() == [0, 2, 4]
