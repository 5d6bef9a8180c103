"""Comparison of the outputs of a case with a model of its node."""

from __future__ import annotations

import numpy as np
import pytest

from opshift.proposals.content.models import Example
from opshift.proposals.evidence.cases import Arrays, Case
from opshift.proposals.evidence.node_models import node_model
from opshift.proposals.evidence.outcomes import inferred_shapes, run_and_compare
from opshift.proposals.evidence.run import Reference, References
from opshift.registry.registry import default_registry


@pytest.mark.parametrize("wrong", ["", "Y_h", "Y_c"])
def test_names_the_output_that_differs_after_an_omitted_one(wrong: str) -> None:
    registry = default_registry()
    version = registry.get_schema("LSTM", 14)
    sizes = (1, 1, 2), (1, 4, 2), (1, 4, 1)
    inputs = tuple(np.zeros(size, np.float32) for size in sizes)
    case = Case(Example(name="zeros", attributes={"hidden_size": 1}), 0, version, inputs)
    # gates of 0 keep the initial state of 0
    outputs: Arrays = (None, *(np.full((1, 1, 1), name == wrong, np.float32) for name in ("Y_h", "Y_c")))
    references = References(registry, Reference(registry.get_schema("Relu", 14), np.abs))
    found = run_and_compare(case, outputs, node_model(case, outputs, 14), references)
    assert (found.verdict, found.reason.partition(" ")[0]) == ("differs" if wrong else "agrees", wrong)


def test_an_omitted_input_has_its_default_in_shape_rules() -> None:
    version = default_registry().get_schema("DFT", 20)
    inputs = (np.zeros((1, 5, 1), np.float32), None, np.array(1))
    case = Case(Example(name="omitted dft_length"), 0, version, inputs)
    assert inferred_shapes(case, 1) == [(1, 5, 2)]
