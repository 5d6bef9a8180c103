"""The examples of operators: each runs, and computes the recorded outputs."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import onnx
import pytest

from opshift.catalogue.examples import SESSIONS, _read_examples, array_text, example_of, plain
from opshift.model.operator_ids import canonical_domain
from opshift.registry.registry import default_registry
from opshift.registry.yaml_files import load_yaml

ROOT = Path(__file__).parents[2]

EXAMPLES = _read_examples()
REGISTRY = default_registry()


def _outputs(script: str) -> tuple[dict[str, Any], str]:
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(script, "example", "exec"), names)  # the project's own examples
    return names, printed.getvalue()


def _flat(value: Any) -> list[Any]:
    return [each for part in value for each in _flat(part)] if isinstance(value, list) else [value]


@pytest.mark.parametrize("name", EXAMPLES)
def test_computes_the_recorded_outputs(name: str) -> None:
    example = EXAMPLES[name]
    names, printed = _outputs(example.script)
    assert printed
    onnx.checker.check_model(names["model"], full_check=True)
    found = plain(eval(SESSIONS[example.computed_by][1], names).run(None, names["inputs"]))
    expected = list(example.outputs.values())
    assert array_text(found).count("[") == array_text(expected).count("[")
    for one, other in zip(_flat(found), _flat(expected), strict=True):
        # kernels of other processors round differently
        assert one == (pytest.approx(other, 1e-3, 1e-4, nan_ok=True) if isinstance(other, float) else other)
    node = names["model"].graph.node[0]
    assert f"{canonical_domain(node.domain)}.{node.op_type}" == name
    assert node.op_type in example.node


@pytest.mark.parametrize(
    ("domain", "share"), [("ai.onnx", 0.93), ("ai.onnx.ml", 0.8), ("com.microsoft", 0.45)]
)
def test_operators_have_an_example(domain: str, share: float) -> None:
    newest = {each: each.versions[-1] for each in REGISTRY.operators(domain)}
    current = [each for each, version in newest.items() if not version.removal and not version.deprecated]
    assert sum(example_of(each) is not None for each in current) >= share * len(current)


def test_every_node_is_an_example() -> None:
    nodes = load_yaml(ROOT / "tools" / "example_nodes.yaml")
    assert nodes.keys() <= EXAMPLES.keys()
    assert all(list(EXAMPLES[name].inputs) == list(each["inputs"]) for name, each in nodes.items())


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
