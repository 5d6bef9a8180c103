"""`opshift show`: operator names, signatures, and the history with the steps of the converter."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import pytest
from typer.testing import Result

from opshift.adapters.core.adapter_table import adapter_table
from opshift.catalogue.history import history_of
from opshift.catalogue.words import format_types, summarize_types
from opshift.model.operator_ids import OperatorId
from opshift.registry.models import Operator
from opshift.registry.registry import default_registry
from opshift.rewriting.version_graph import build_version_graph

pytestmark = pytest.mark.every_case

Run = Callable[..., Result]
REGISTRY = default_registry()


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        pytest.param(["Conv"], "ai.onnx.Conv:22", id="newest version"),
        pytest.param(["Conv", "--opset", "17"], "ai.onnx.Conv:11", id="opset"),
        pytest.param(["Softmax:11"], "ai.onnx.Softmax:11", id="version in the name"),
        pytest.param(["Softmax:12"], "ai.onnx.Softmax:11", id="opset between versions in the name"),
        pytest.param(["ai.onnx.Softmax:13"], "ai.onnx.Softmax:13", id="qualified name"),
        pytest.param(
            ["ai.onnx.ml.LabelEncoder"], "ai.onnx.ml.LabelEncoder:4", id="qualified name in ai.onnx.ml"
        ),
        pytest.param(["LabelEncoder", "-d", "ai.onnx.ml"], "ai.onnx.ml.LabelEncoder:4", id="domain option"),
        pytest.param(["LabelEncoder"], "ai.onnx.ml.LabelEncoder:4", id="name in one domain only"),
        pytest.param(
            ["LabelEncoder:2"], "ai.onnx.ml.LabelEncoder:2", id="name and version in one domain only"
        ),
    ],
)
def test_accepts_operator_name(run: Run, arguments: list[str], shown: str) -> None:
    result = run("show", *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[0] == shown
    assert json.loads(run("show", *arguments, "--format", "json").stdout)["operator"] == shown


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        pytest.param(["Cnov"], 2, "did you mean Conv?", id="misspelled name"),
        pytest.param(["Mish", "--opset", "10"], 1, "use opset 18 or newer", id="later operator"),
        pytest.param(["Conv", "--opset", "99"], 2, "there is no opset 99", id="unknown opset"),
        pytest.param(["com.acme.FastConv"], 2, "no definitions for domain 'com.acme'", id="unknown domain"),
    ],
)
def test_reports_unknown_operator(run: Run, arguments: list[str], code: int, message: str) -> None:
    result = run("show", *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in result.stderr


def test_shows_complete_definition(run: Run, acme: Path) -> None:
    result = run("show", "FastConv", "--opsets", "acme")
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines == [
        "com.acme.FastConv:3",
        "opsets 3 to 4, stable",
        "removed in opset 5, replaced by Conv: Conv takes the same input.",
        "",
        "A convolution, but fast.",
        "",
        "Inputs",
        "name type",
        "X T",
        "",
        "Outputs",
        "name type",
        "Y T",
        "",
        "Attributes",
        "name type default values",
        "speed FLOAT 0.1 at least 0",
        "",
        "Types",
        "name allowed types",
        "T tensor(float)",
        "",
        "History",
        "since",
        "2 change first version",
        "down to 1 refused: no equivalent operator exists",
        "3 change The mode was removed.",
        "up from 2 declared: drop_attribute mode",
        "down to 2 refused: the older version requires a mode",
        "removed in 5 refused: no operator of the set is equivalent",
    ]


@pytest.mark.parametrize(
    ("operator", "shown"),
    [
        ("com.microsoft.Gelu", "without com.microsoft declared: replaced by the nodes of its function body"),
        ("Softmax", "down to 11 adapter: "),
    ],
)
def test_history_names_the_target_of_conversions(run: Run, operator: str, shown: str) -> None:
    lines = [" ".join(line.split()) for line in run("show", operator).stdout.splitlines()]
    assert any(line.startswith(shown) for line in lines)
    assert not any("down to 0" in line for line in lines)


def test_shows_the_texts_of_the_version(run: Run) -> None:
    lines = [" ".join(line.split()) for line in run("show", "Softmax:12").stdout.splitlines()]
    softmax = default_registry().get_schema("Softmax", 12)
    assert f"input T {softmax.inputs[0].description}" in lines
    assert f"output T {softmax.outputs[0].description}" in lines
    assert f"axis INT 1 {softmax.attributes['axis'].description}" in lines
    assert f"T tensor(double, float, float16) {softmax.type_descriptions['T']}" in lines
    assert lines.count("name type description") == 2


def test_json_has_the_texts_of_the_version(run: Run) -> None:
    data = json.loads(run("show", "Softmax:12", "--format", "json").stdout)
    softmax = default_registry().get_schema("Softmax", 12)
    assert data["description"] == softmax.description
    assert data["inputs"][0]["description"] == softmax.inputs[0].description
    assert data["attributes"]["axis"]["description"] == softmax.attributes["axis"].description
    assert data["type_descriptions"] == softmax.type_descriptions


def test_older_version_has_own_texts(run: Run, acme: Path) -> None:
    result = run("show", "FastConv:2", "--opsets", "acme")
    assert "opset 2, stable" in result.stdout
    assert "A convolution, but fast." in result.stdout
    assert "warm, hot" in result.stdout


def test_prints_definition_as_json(run: Run, acme: Path) -> None:
    data = json.loads(run("show", "FastConv", "--opsets", "acme", "--format", "json").stdout)
    assert data["inputs"][0]["name"] == "X"
    assert data["type_constraints"] == {"T": ["tensor(float)"]}
    assert data["removal"]["removed_in"] == 5
    first, second = data["history"]
    assert (first["up"], first["down"]) == (None, None)
    assert second["up"] == {"how": "declared", "detail": "drop_attribute mode", "error": ""}
    assert second["differences"] == ["attribute removed: mode: warm -> nothing"]


@pytest.mark.parametrize(
    "operator", list(REGISTRY.operators()), ids=lambda each: f"{each.domain}.{each.name}"
)
def test_history_equals_version_graph(operator: Operator) -> None:
    graph = build_version_graph([operator], adapter_table())
    step_kinds = {pair: step.kind for pair, step in nx.get_edge_attributes(graph, "step").items()}
    equivalent_kinds = {"guarded": {"compatible", "derived"}, "compatible": {"compatible", "derived"}}
    for entry in history_of(operator):
        current, removal = entry.version.id, entry.version.removal
        before = entry.before.id if entry.before else current
        earlier = current._replace(since_version=current.since_version - 1)
        later = current._replace(since_version=removal.removed_in if removal else 0)
        for source, target, entry_step in (
            (before, current, entry.up),
            (current, before, entry.down),
            (current, earlier, entry.arriving),
            (current, later, entry.leaving),
        ):
            if entry_step is not None:
                kind = step_kinds[source, target]
                assert entry_step.how in equivalent_kinds.get(kind, {kind}), (source, target)


@pytest.mark.parametrize("name", ["Resize", "Loop", "Clip:6", "ai.onnx.ml.TreeEnsembleRegressor", "Upsample"])
def test_shows_any_definition(run: Run, name: str) -> None:
    assert run("show", name).exit_code == 0
    assert json.loads(run("show", name, "--format", "json").stdout)["history"]


@pytest.mark.parametrize(
    ("types", "text"),
    [
        pytest.param(["tensor(int8)"], "tensor(int8)", id="one type"),
        pytest.param(["tensor(int8)", "tensor(bool)"], "tensor(bool, int8)", id="two tensors"),
        pytest.param(
            ["seq(tensor(bool))", "seq(tensor(int8))"], "seq(tensor(bool, int8))", id="sequences of tensors"
        ),
        pytest.param(
            ["tensor(bool)", "seq(tensor(bool))"], "seq(tensor(bool)), tensor(bool)", id="tensor and sequence"
        ),
        pytest.param(["map(string, int64)"], "map(string, int64)", id="map"),
        pytest.param(["seq(map(int64, float))"], "seq(map(int64, float))", id="sequence of maps"),
    ],
)
def test_abbreviates_types(types: list[str], text: str) -> None:
    assert format_types(types) == text


def test_counts_many_types_and_names_their_set() -> None:
    sets = REGISTRY.types
    assert summarize_types(("tensor(float)",), sets) == "tensor(float)"
    many = summarize_types(sets.expand("all_tensor_types"), sets)
    assert many.startswith("15 types, all_tensor_types: tensor(bool, complex128,")
    assert summarize_types(sets.expand("all_tensor_types")[1:], sets).startswith("14 types: tensor(")


@pytest.mark.parametrize(
    ("operator", "lines"),
    [
        pytest.param(
            "Mish:18",
            [
                '<domain: "ai.onnx", opset_import: ["" : 1]>',
                "Mish (X) => (Y) {",
                "  softplus = Softplus (X)",
                "  gate = Tanh (softplus)",
            ],
            id="fixed",
        ),
        pytest.param(
            "LeakyRelu:16",
            [
                '<domain: "ai.onnx", opset_import: ["" : 16]>',
                "LeakyRelu <alpha: float = 0.01> (X) => (Y) {",
                "  alpha_number = Constant <value_float: float = @alpha> ()",
            ],
            id="attribute reference",
        ),
        pytest.param(
            "Softmax:13",
            [
                "The body depends on the node. With the default attributes and `float input`:",
                '<domain: "ai.onnx", opset_import: ["" : 13]>',
                "Softmax (input) => (output) {",
            ],
            id="built",
        ),
        pytest.param(
            "DepthToSpace:28",
            [
                "The body depends on the node. For `output = DepthToSpace <blocksize = 2, "
                'mode = "DCR"> (input)` with `float[1, 8, 2, 3] input`:',
                '<domain: "ai.onnx", opset_import: ["" : 28]>',
            ],
            id="example",
        ),
        pytest.param(
            "SequenceMap",
            [
                "The body depends on the node: call `function_body(node, input_types)` of its schema "
                "in Python.",
            ],
            id="required attribute",
        ),
    ],
)
def test_prints_function_bodies(run: Run, operator: str, lines: list[str]) -> None:
    shown = run("show", operator).stdout.splitlines()
    start = shown.index("Function body") + 1
    assert shown[start : start + len(lines)] == lines
    assert json.loads(run("show", operator, "--format", "json").stdout)["has_function"] is True


def test_operators_that_are_not_functions_have_no_body(run: Run) -> None:
    assert "Function body" not in run("show", "Add").stdout
    assert json.loads(run("show", "Add", "--format", "json").stdout)["has_function"] is False


@pytest.mark.parametrize(
    "name", ["Softmax:11", "Clip:13", "Upsample:10", "Mish", "ATen", "ai.onnx.ml.SVMRegressor"]
)
def test_json_equals_to_dict(run: Run, name: str) -> None:
    data = json.loads(run("show", name, "--format", "json").stdout)
    version = OperatorId.parse(data["operator"])
    assert data.pop("history")
    operator = REGISTRY.operator(version.op_type, version.domain)
    assert operator is not None
    (shown,) = [each for each in operator.versions if each.id == version]
    assert data == json.loads(json.dumps(shown.to_dict()))


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        ("Upsample:10", "deprecated, replaced by Resize"),
        ("Scatter:11", "deprecated, replaced by ScatterElements"),
        ("Resize:10", ""),
    ],
)
def test_names_the_replacement_of_deprecated_operators(run: Run, shown: str, text: str) -> None:
    stdout = run("show", shown).stdout
    assert ("deprecated" in stdout) is bool(text)
    assert text in stdout


@pytest.mark.parametrize(
    ("shown", "expected"),
    [("TopK:1", ["k <= size(X, axis)"]), ("TopK:24", ["K <= size(X, axis)", "K >= 0"]), ("Relu", [])],
)
def test_lists_requirements_of_the_version(run: Run, shown: str, expected: list[str]) -> None:
    lines = run("show", shown).stdout.splitlines()
    start = lines.index("Requirements") + 1 if "Requirements" in lines else len(lines)
    found = lines[start : lines.index("", start)] if start < len(lines) else []
    assert [each for each in found if each.lower().startswith("k ")] == expected
    assert bool(found) is bool(expected)


def test_imports_only_the_adapters_of_the_operator() -> None:
    code = """
import sys
from opshift.cli.main import main
sys.argv = ["opshift", "show", "Softmax"]
try:
    main()
finally:
    print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    imported = done.stdout.splitlines()[-1].split()
    assert "opshift.adapters.ops.math.activations" in imported
    assert "opshift.adapters.ops.tensor.resize" not in imported
