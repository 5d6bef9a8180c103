"""One mistake results in one finding, which names its cause."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.proposals import (
    Edit,
    proposal,
    rename_operator,
    replace_text,
    set_answers,
    set_newest_version,
    truncate,
    write_content,
)

from opshift.proposals.check import check_proposal
from opshift.proposals.content.findings import ProposalFinding

OPERATOR, EXAMPLES, REFERENCE, ADAPTERS = "operator.yaml", "examples.yaml", "reference.py", "adapters.py"


def _new_findings(base: str, folder: Path, edit: Edit) -> list[ProposalFinding]:
    """Return the findings that an edit of a valid proposal causes."""
    known = {each.rule for each in check_proposal(proposal(base, folder / "valid")).findings}
    found = check_proposal(proposal(base, folder / "broken", edit)).findings
    return [each for each in found if each.rule not in known]


@pytest.mark.some_cases(8)
@pytest.mark.parametrize(
    ("base", "edit", "rule"),
    [
        pytest.param(
            "function", replace_text(OPERATOR, "{ai.onnx: 18}", "{ai.onnx: 30}"), "body.opset", id="opset"
        ),
        pytest.param(
            "function",
            replace_text(OPERATOR, "op_type: CastLike", "op_type: Like"),
            "body.operators",
            id="nodes",
        ),
        pytest.param("function", set_answers(numpy="numpy.squareplus"), "proposal.numpy", id="numpy name"),
        pytest.param("function", rename_operator("Softplus"), "operator.taken", id="name in use"),
        pytest.param(
            "function", replace_text(OPERATOR, "tensor(float)", "tensor(real)"), "operator.format", id="type"
        ),
        pytest.param(
            "function", replace_text(OPERATOR, "{name: X,", "{name: Z,"), "operator.format", id="input name"
        ),
        pytest.param(
            "function",
            replace_text(OPERATOR, "outputs: [square]", "outputs: [squared]"),
            "body.names",
            id="value in the body",
        ),
        pytest.param(
            "function",
            replace_text(OPERATOR, "op_type: Sqrt", "op_type: Root"),
            "body.operators",
            id="body node",
        ),
        pytest.param(
            "function",
            replace_text(OPERATOR, "value_float: 0.5", "value_real: 0.5"),
            "body.attributes",
            id="attribute in the body",
        ),
        pytest.param(
            "function",
            replace_text(OPERATOR, "value_float: 0.5", "value_float: 0.25"),
            "body.agrees",
            id="body",
        ),
        pytest.param("function", set_newest_version(before=None), "steps.down", id="no downgrade"),
        pytest.param(
            "function", replace_text(REFERENCE, "def ", "def _"), "reference.loads", id="no reference"
        ),
        pytest.param(
            "function", replace_text(REFERENCE, "np.sqrt", "np.root"), "reference.runs", id="reference raises"
        ),
        pytest.param(
            "function",
            replace_text(REFERENCE, "return np", "np"),
            "reference.runs",
            id="reference without return",
        ),
        pytest.param(
            "function",
            replace_text(EXAMPLES, "b: 9.0", "b: -9.0"),
            "examples.legal",
            id="value that the definition does not allow",
        ),
        pytest.param(
            "function", replace_text(REFERENCE, "+ width", "- width"), "reference.expected", id="reference"
        ),
        pytest.param(
            "function",
            replace_text(REFERENCE, "half, X.dtype", "half, np.float64"),
            "reference.types",
            id="type of the reference",
        ),
        pytest.param(
            "function",
            replace_text(REFERENCE, "half, X.dtype)", "half, X.dtype).ravel()"),
            "reference.expected",
            id="shape of the reference",
        ),
        pytest.param(
            "function", replace_text(OPERATOR, "same_as_first", "scalar"), "shape.agrees", id="shape rule"
        ),
        pytest.param(
            "function", write_content(EXAMPLES, "examples: []"), "examples.present", id="no examples"
        ),
        pytest.param(
            "update", truncate(OPERATOR, "- since_version: 29"), "opset.version", id="no new version"
        ),
        pytest.param(
            "update",
            replace_text(OPERATOR, "shape: same_as_first", "shape: scalar"),
            "opset.published",
            id="shape",
        ),
        pytest.param(
            "update",
            replace_text(ADAPTERS, "import adapter\n", "import adapters\n"),
            "steps.adapters",
            id="adapters",
        ),
        pytest.param(
            "update",
            replace_text(ADAPTERS, "out.constant(alpha, ", "out.constant(2 * alpha, "),
            "steps.agree",
            id="adapter",
        ),
        pytest.param(
            "update",
            replace_text(
                ADAPTERS, "    constant = out.constant(alpha, ", "    constant = out.constants(alpha, "
            ),
            "steps.agree",
            id="adapter raises for one example",
        ),
        pytest.param(
            "update",
            replace_text(ADAPTERS, "node.inputs[0], constant], attributes={}", "node.inputs[0], constant]"),
            "steps.agree",
            id="adapter emits an invalid node for one example",
        ),
        pytest.param(
            "removal",
            replace_text(OPERATOR, "up: adapter", "up: {refuse: not decided yet}"),
            "leaving.way",
            id="no upgrade",
        ),
    ],
)
def test_one_mistake_has_one_finding(base: str, edit: Edit, rule: str, tmp_path: Path) -> None:
    assert [each.rule for each in _new_findings(base, tmp_path, edit)] == [rule]


def test_finding_names_other_cases(tmp_path: Path) -> None:
    (found,) = _new_findings("function", tmp_path, replace_text(REFERENCE, "np.sqrt", "np.root"))
    assert found.reason.startswith("default: the reference raises AttributeError")
    assert "(and 5 more cases: without a bend, wide bend, scalar, ...)" in found.reason
