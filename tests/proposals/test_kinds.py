"""Each kind of proposal, from the scaffold to the accepted operator in a copy of the definitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.execution import op_types, run
from support.proposals import replace_text
from support.workbench import (
    ADAPTERS,
    EXAMPLES,
    FLOAT,
    MAPPING,
    PRIMITIVE,
    Workbench,
    X,
    accept_cube,
    body,
    node,
    reference_text,
    texts,
)
from typer.testing import CliRunner

from opshift.cli.main import app
from opshift.proposals.check import check_proposal


def test_new_operator(bench: Workbench) -> None:
    path = bench.start("new-operator", "NextAfter")
    parameter = {"type": "T", "differentiation": "non_differentiable"}
    definition = {
        "shape": "broadcast",
        "before": {"refuse": "no operator reads the bits of a number"},
        "inputs": [{"name": "X", **parameter}, {"name": "Y", **parameter}],
        "outputs": [{"name": "Z", **parameter}],
        "type_constraints": {"T": ["tensor(float)", "tensor(double)"]},
        "descriptions": texts(
            inputs={"X": "The numbers to start from.", "Y": "The numbers to go towards."},
            outputs={"Z": "The neighbours of the numbers."},
        ),
    }
    examples = EXAMPLES.replace("inputs: [", "inputs: [{values: 2}, ")
    files = {"reference.py": reference_text("np.nextafter(X, Y)", "X, Y"), "examples.yaml": examples}
    accepted = bench.fill(path, definition, files, numpy="numpy.nextafter", primitive_reason=PRIMITIVE)
    assert str(accepted.id) == "ai.onnx.NextAfter:29"
    assert bench.registry.get_schema("NextAfter", 29).doc.startswith("It computes something")


def test_new_function(bench: Workbench) -> None:
    accepted = accept_cube(bench)
    older = bench.convert(node("Cube", "x"), 29, 17)
    assert accepted.body is not None
    np.testing.assert_allclose(run(older, {"x": X})[0], X**3, rtol=1e-6)


def test_definition_has_no_comments_of_the_scaffold(bench: Workbench) -> None:
    path = bench.start("new-function", "Copy")
    text = "A sentence about it for users."
    replace_text("operator.yaml", "shape: ''", "shape: same_as_first  # like Identity")(path)
    replace_text("operator.yaml", "''", f"'{text}'")(path)
    bench.fill(path, {}, {"reference.py": reference_text("X.copy()"), "examples.yaml": EXAMPLES})
    comments = [
        line for line in (bench.tree / "ai.onnx" / "Copy.yaml").read_text().splitlines() if "#" in line
    ]
    assert comments == [
        "# yaml-language-server: $schema=../schema.json",
        "shape: same_as_first  # like Identity",
    ]


def test_update(bench: Workbench) -> None:
    path = bench.start("update", "Cosh")
    definition = {
        "attributes": {"factor": {"type": "FLOAT", "default": 1.0}},
        "step": {
            "change": "The attribute factor multiplies the input; its default keeps the meaning.",
            "up": "compatible",
            "down": [{"drop_attribute": "factor"}],
        },
        "descriptions": {"attributes": {"factor": "The factor of the input before cosh."}},
    }
    examples = EXAMPLES + (
        "- {name: factor, inputs: [{values: [1, 2]}], attributes: {factor: 0.1}}\n"
        "- {name: older, version: 22, inputs: [{values: [1, 2]}]}\n"
    )
    files = {"reference.py": reference_text("np.cosh(X * X.dtype.type(factor))", "input, *, factor")}
    files["reference.py"] = files["reference.py"].replace("(input,", "(X,")
    accepted = bench.fill(path, definition, {**files, "examples.yaml": examples})
    assert str(accepted.id) == "ai.onnx.Cosh:29"
    assert op_types(bench.convert(node("Cosh", "x"), 22, 29)) == ["Cosh"]
    assert op_types(bench.convert(node("Cosh", "x"), 29, 22)) == ["Cosh"]


def test_body_with_operator_of_same_opset(bench: Workbench) -> None:
    accept_cube(bench)
    definition = {
        "shape": "same_as_first",
        **FLOAT,
        "body": body(29, "Cube X cube", "Cube cube Y"),
        "descriptions": texts(),
    }
    files = {
        "reference.py": reference_text("(X * X * X) ** 3"),
        "examples.yaml": EXAMPLES,
    }
    bench.fill(bench.start("new-function", "NinthPower"), definition, files)
    older = bench.convert(node("NinthPower", "x"), 29, 17)
    assert op_types(older) == ["Mul"] * 4
    np.testing.assert_allclose(run(older, {"x": X})[0], X**9, rtol=1e-5)


@pytest.mark.full
def test_deprecation_in_favour_of_new_operator(bench: Workbench) -> None:
    definition: dict[str, Any] = {
        "shape": "same_as_first",
        "body": body(18, "Abs X size", "CastLike one X unit", "Add size unit sum", "Div X sum Y"),
        "descriptions": texts(),
    }
    definition["body"]["nodes"].insert(
        0, {"op_type": "Constant", "outputs": ["one"], "attributes": {"value_float": 1.0}}
    )
    reference = reference_text("X / (X.dtype.type(1) + np.abs(X))")
    files = {"reference.py": reference, "examples.yaml": EXAMPLES}
    bench.fill(bench.start("new-function", "RationalSign"), definition, files)
    step = {
        "change": "RationalSign replaces the operator.",
        "up": [{"rename_op": "RationalSign"}],
        "down": "compatible",
    }
    retirement = {"replaced_by": "RationalSign", "mapping": MAPPING}
    path = bench.start("deprecation", "Softsign")
    accepted = bench.fill(path, {"step": step, "deprecation": retirement}, files, mapping=MAPPING)
    assert accepted.deprecated
    assert op_types(bench.convert(node("Softsign", "x"), 22, 29)) == ["RationalSign"]


REMOVE_XOR = f'''{ADAPTERS}@adapter("Xor", 7, 29)
def replace_with_two_nodes(node: Node, out: Rewriter) -> None:
    """Replace the node with Equal and Not."""
    out.emit("Not", [out.emit("Equal", node.inputs)], node.outputs)
'''


def test_removal_in_favour_of_several_operators(bench: Workbench) -> None:
    path = bench.start("removal", "Xor")
    removal = {
        "removed_in": 29,
        "replaced_by": ["Equal", "Not"],
        "mapping": "Not of Equal of the same inputs.",
        "up": "adapter",
    }
    inputs = "{type: bool, values: [true, false]}, {type: bool, values: [true, true]}"
    files = {
        "reference.py": "import numpy as np\n\n\ndef reference(A, B):\n    return np.logical_xor(A, B)\n",
        "examples.yaml": f"examples:\n- {{name: main, inputs: [{inputs}]}}\n",
        "adapters.py": REMOVE_XOR,
    }
    bench.fill(path, {"removal": removal}, files, mapping="Xor(A, B) is Not(Equal(A, B)).")
    findings = {each.rule for each in check_proposal(path, bench.registry).findings}
    assert "coverage.types" not in findings  # T1 is the type of the output only
    entry = "- **Xor** (removal): A proposal of a test. Use Equal and Not: Not of Equal"
    assert entry in (bench.tree / "CHANGELOG.md").read_text()
    newer = bench.convert(node("Xor", "x", "y"), 28, 29)
    assert op_types(newer) == ["Equal", "Not"]


KINDS = (
    test_new_operator,
    test_new_function,
    test_update,
    test_deprecation_in_favour_of_new_operator,
    test_removal_in_favour_of_several_operators,
)


@pytest.mark.full
def test_every_kind_in_one_tree_from_new_to_release(tmp_path: Path) -> None:
    """The tree is a copy outside of the project, as `opset copy` writes it."""
    bench = Workbench(tmp_path)
    _run_command("opset", "copy", str(bench.tree))
    for accept_kind in KINDS:
        accept_kind(bench)
    tree = ("--opsets", str(bench.tree))
    assert "5 new versions" in _run_command("opset", "release", *tree)
    listed = _run_command("list", "--changed", "28", "29", "--domain", "ai.onnx", *tree)
    names = ("NextAfter", "Cube", "Cosh", "RationalSign", "Softsign", "Xor")
    assert [name for name in names if name not in listed] == []
    assert (bench.start("update", "Cube") / "operator.yaml").read_text().count("since_version") == 2


def _run_command(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout
