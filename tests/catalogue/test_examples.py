"""The examples of operators: each runs, and computes the recorded outputs."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from opshift.catalogue.examples import _examples, array_text, example_of, plain
from opshift.model.operator_ids import canonical_domain
from opshift.registry.registry import default_registry

EXAMPLES = _examples()
REGISTRY = default_registry()


def _outputs(script: str) -> tuple[dict[str, Any], str]:
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(script, "example", "exec"), names)  # the project's own examples
    return names, printed.getvalue()


@pytest.mark.parametrize("name", EXAMPLES)
def test_computes_the_recorded_outputs(name: str) -> None:
    example = EXAMPLES[name]
    names, printed = _outputs(example.script)
    assert printed
    onnx.checker.check_model(names["model"], full_check=True)
    found = ReferenceEvaluator(names["model"]).run(None, names["inputs"])
    assert str([plain(each) for each in found]) == str(list(example.outputs.values()))
    node = names["model"].graph.node[0]
    assert f"{canonical_domain(node.domain)}.{node.op_type}" == name
    assert node.op_type in example.node


def test_most_operators_of_onnx_have_an_example() -> None:
    newest = {each: each.versions[-1] for each in REGISTRY.operators("ai.onnx")}
    current = [each for each, version in newest.items() if not version.removal and not version.deprecated]
    assert sum(example_of(each) is not None for each in current) > 0.8 * len(current)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        ([1.0, -0.25], "[1, -0.25]"),
        ([[1, 2], [3, 4]], "[[1, 2],\n [3, 4]]"),
        ([[[1], [2]]], "[[[1],\n  [2]]]"),
        ([True, "a"], '[true, "a"]'),
    ],
)
def test_arrays_have_a_line_for_each_row(value: object, text: str) -> None:
    assert array_text(value) == text
