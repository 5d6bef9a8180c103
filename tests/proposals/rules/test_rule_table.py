"""Each rule has a proposal that breaks it and a proposal that follows it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from support.proposals import (
    NO_BODY,
    Edit,
    describe_parameters,
    proposal,
    rename_operator,
    replace_last,
    replace_text,
    set_answers,
    set_newest_version,
    truncate,
    write_content,
)

from opshift.checker.findings import Level
from opshift.proposals.check import CheckResult, check_proposal
from opshift.proposals.content.folder import ProposalFolder, fingerprint
from opshift.proposals.content.staged_registry import registry_of_tree
from opshift.proposals.rules.rule_table import rule_table

pytestmark = pytest.mark.every_case


class BrokenProposal(NamedTuple):
    """A rule, a proposal that follows it, and the edits that break it."""

    rule: str
    base: str
    edits: tuple[Edit, ...]
    valid_base: str = ""
    """Base that follows the rule, if `base` without edits does not."""


UNRUNNABLE_BODY = set_newest_version(
    body={
        "opset_imports": {"ai.onnx": 9},
        "nodes": [{"op_type": "ATen", "inputs": ["X"], "outputs": ["Y"]}],
    }
)
"""Body with an experimental operator, which no runtime supports and newer opsets do not have."""


def _signed(*names: str, of: str = "") -> Edit:
    def edit(folder: Path) -> None:
        content = of or fingerprint(ProposalFolder(folder))
        set_answers(
            sign_offs=[{"name": each, "date": "2020-01-31", "fingerprint": content} for each in names]
        )(folder)

    return edit


FLOAT_ONLY_BODY = set_newest_version(
    body={
        "opset_imports": {"ai.onnx": 12},
        "nodes": [{"op_type": "Softmax", "inputs": ["X"], "outputs": ["Y"]}],
    },
    type_constraints={"T": ["tensor(float)", "tensor(bfloat16)"]},
)
"""Body that onnxruntime runs in float only; onnx.reference implements a later Softmax."""
OPERATOR, EXAMPLES, REFERENCE, ADAPTERS = "operator.yaml", "examples.yaml", "reference.py", "adapters.py"
FLAT = "examples:\n- name: flat\n  inputs:\n  - {values: [[1, 2]]}\n"
CASES = (
    BrokenProposal(
        "proposal.format", "function", (replace_text("proposal.yaml", "kind: new-function", "kind: novelty"),)
    ),
    BrokenProposal("proposal.motivation", "function", (set_answers(motivation="It is nice."),)),
    BrokenProposal("proposal.model", "function", (set_answers(model="ResNet"),)),
    BrokenProposal("proposal.frameworks", "function", (set_answers(frameworks=[]),)),
    BrokenProposal(
        "proposal.differences",
        "function",
        (set_answers(frameworks=[{"name": "JAX", "link": "https://jax.dev"}]),),
    ),
    BrokenProposal("proposal.formula", "function", (set_answers(formula=""),)),
    BrokenProposal("proposal.source", "function", (set_answers(source="a paper"),)),
    BrokenProposal("proposal.alternatives", "function", (set_answers(alternatives=""),)),
    BrokenProposal("proposal.certificate", "function", (set_answers(certificate="Bob <bob@example.com>"),)),
    BrokenProposal("proposal.numpy", "function", (set_answers(numpy="numpy.squareplus"),)),
    BrokenProposal("proposal.primitive", "function", (set_answers(kind="new-operator"), NO_BODY)),
    BrokenProposal(
        "proposal.near",
        "function",
        (rename_operator("Softpluss"), set_answers(alternatives="None that we could think of.")),
    ),
    BrokenProposal("proposal.kind", "function", (set_answers(kind="new-operator"),)),
    BrokenProposal("proposal.open", "function", (set_answers(state="withdrawn"),)),
    BrokenProposal("operator.format", "function", (replace_text(OPERATOR, "shape:", "shapes:"),)),
    BrokenProposal("operator.name", "function", (rename_operator("square_plus"),)),
    BrokenProposal("operator.domain", "function", (rename_operator("Squareplus", "Acme"),)),
    BrokenProposal("operator.taken", "function", (rename_operator("Softplus"),)),
    BrokenProposal(
        "operator.description", "update", (set_newest_version(descriptions={"operator": "Elu."}),)
    ),
    BrokenProposal(
        "operator.attributes",
        "function",
        (replace_text(OPERATOR, "{name: X,", "{name: axis,"), describe_parameters),
    ),
    BrokenProposal("operator.shape", "function", (replace_text(OPERATOR, "same_as_first", "same_as_last"),)),
    BrokenProposal(
        "operator.differentiation",
        "function",
        (replace_last(OPERATOR, ", differentiation: differentiable", ""),),
    ),
    BrokenProposal(
        "operator.determinism",
        "function",
        (replace_text(OPERATOR, "before: body", "before: body\n  determinism: unknown"),),
    ),
    BrokenProposal(
        "naming.attribute",
        "function",
        (replace_text(OPERATOR, "    b: {type", "    Bend: {type: INT}\n    b: {type"), describe_parameters),
    ),
    BrokenProposal(
        "naming.parameter",
        "function",
        (replace_text(OPERATOR, "{name: X,", "{name: inputData,"), describe_parameters),
    ),
    BrokenProposal(
        "naming.bias", "function", (replace_text(OPERATOR, "{name: X,", "{name: bias,"), describe_parameters)
    ),
    BrokenProposal(
        "naming.axis",
        "function",
        (replace_text(OPERATOR, "    b: {type", "    axes: {type: INT}\n    b: {type"), describe_parameters),
    ),
    BrokenProposal(
        "types.used",
        "function",
        (replace_text(OPERATOR, "    T: [", "    U: [tensor(int8)]\n    T: ["), describe_parameters),
    ),
    BrokenProposal(
        "types.repeated",
        "function",
        (replace_text(OPERATOR, "[tensor(float)]", "[tensor(float), tensor(float)]"),),
    ),
    BrokenProposal(
        "opset.released", "function", (replace_text(OPERATOR, "since_version: 29", "since_version: 28"),)
    ),
    BrokenProposal(
        "opset.next", "function", (replace_text(OPERATOR, "since_version: 29", "since_version: 30"),)
    ),
    BrokenProposal(
        "opset.published",
        "update",
        (replace_text(OPERATOR, "alpha: {type: FLOAT, default: 1.0}", "alpha: {type: FLOAT, default: 2.0}"),),
    ),
    BrokenProposal("opset.version", "update", (truncate(OPERATOR, "- since_version: 29"),)),
    BrokenProposal("preview.version", "function", (rename_operator("Squareplus", "ai.onnx.preview"),)),
    BrokenProposal("body.names", "function", (replace_text(OPERATOR, "inputs: [bent]", "inputs: [bend]"),)),
    BrokenProposal("body.operators", "function", (replace_text(OPERATOR, "op_type: Sqrt", "op_type: Root"),)),
    BrokenProposal(
        "body.attributes", "function", (replace_text(OPERATOR, "value_float: 0.5", "value_float: half"),)
    ),
    BrokenProposal("body.opset", "function", (replace_text(OPERATOR, "{ai.onnx: 18}", "{ai.onnx: 30}"),)),
    BrokenProposal(
        "body.agrees", "function", (replace_text(OPERATOR, "value_float: 0.5", "value_float: 0.25"),)
    ),
    BrokenProposal("body.runs", "function", (UNRUNNABLE_BODY,)),
    BrokenProposal("body.types", "function", (FLOAT_ONLY_BODY,)),
    BrokenProposal("body.opsets", "function", (UNRUNNABLE_BODY,)),
    BrokenProposal(
        "steps.change", "update", (set_newest_version(step={"up": "adapter", "down": "adapter"}),)
    ),
    BrokenProposal(
        "steps.up",
        "update",
        (replace_text(OPERATOR, "    up: adapter", "    up: {refuse: the upgrade is not needed}"),),
    ),
    BrokenProposal("steps.down", "update", (replace_text(OPERATOR, "    down: adapter\n", ""),)),
    BrokenProposal(
        "steps.adapters",
        "update",
        (replace_text(ADAPTERS, '@adapter("Elu", 22, 29)', "raise ValueError('broken')"),),
    ),
    BrokenProposal(
        "steps.sound", "update", (replace_text(OPERATOR, "    up: adapter", "    up: compatible"),)
    ),
    BrokenProposal(
        "steps.agree", "update", (replace_text(ADAPTERS, "out.constant(alpha, ", "out.constant(2 * alpha, "),)
    ),
    BrokenProposal("steps.tested", "deprecation", (write_content(EXAMPLES, FLAT),)),
    BrokenProposal("steps.class", "update", (), valid_base="function"),
    BrokenProposal(
        "leaving.replacement",
        "deprecation",
        (replace_text(OPERATOR, "replaced_by: ReduceMax", "replaced_by: ReduceAll"),),
    ),
    BrokenProposal("leaving.mapping", "removal", (set_answers(mapping=""),)),
    BrokenProposal(
        "leaving.way",
        "removal",
        (replace_text(OPERATOR, "up: adapter", "up: {refuse: the upgrade is not needed}"),),
    ),
    BrokenProposal("promotion.source", "promotion", (set_answers(promotes="ai.onnx.preview.Nothing:1"),)),
    BrokenProposal("examples.format", "function", (replace_text(EXAMPLES, "inputs:", "input:"),)),
    BrokenProposal("examples.present", "function", (write_content(EXAMPLES, "examples: []\n"),)),
    BrokenProposal("examples.legal", "function", (replace_text(EXAMPLES, "{b: 9.0}", "{c: 9.0}"),)),
    BrokenProposal("reference.loads", "function", (replace_text(REFERENCE, "def reference", "def other"),)),
    BrokenProposal(
        "reference.runs",
        "function",
        (replace_text(REFERENCE, "    width, half", "    X[9]\n    width, half"),),
    ),
    BrokenProposal(
        "reference.expected", "function", (replace_text(REFERENCE, "X + np.sqrt", "X - np.sqrt"),)
    ),
    BrokenProposal(
        "reference.types", "function", (replace_text(REFERENCE, "half, X.dtype", "half, np.float64"),)
    ),
    BrokenProposal("reference.numpy", "function", (set_answers(numpy="numpy.tanh"),)),
    BrokenProposal("shape.format", "function", (write_content("shapes.py", "raise ValueError"),)),
    BrokenProposal("shape.agrees", "function", (replace_text(OPERATOR, "same_as_first", "shape"),)),
    BrokenProposal("shape.rank", "function", (replace_text(OPERATOR, "same_as_first", "same_as_second"),)),
    BrokenProposal(
        "coverage.outputs",
        "function",
        (
            replace_last(
                OPERATOR,
                "  attributes:\n    b",
                "  - {name: Z, type: T, option: optional}\n  attributes:\n    b",
            ),
            describe_parameters,
        ),
    ),
    BrokenProposal(
        "coverage.attributes", "function", (replace_text(EXAMPLES, "  attributes: {b:", "  # {b:"),)
    ),
    BrokenProposal("coverage.inputs", "update", (truncate(EXAMPLES, "- name: one alpha"),)),
    BrokenProposal(
        "coverage.types",
        "function",
        (replace_text(OPERATOR, "[tensor(float)]", "[tensor(float), tensor(string)]"),),
    ),
    BrokenProposal("coverage.corners", "function", (truncate(EXAMPLES, "- name: not finite"),)),
    BrokenProposal("sign-off.author", "function", (_signed("ADA  Example"),)),
    BrokenProposal("sign-off.void", "function", (_signed("Grace", of="0" * 32),)),
    BrokenProposal("sign-off.twice", "function", (_signed("Grace", "Alan", "grace"),)),
    BrokenProposal(
        "preview.approval",
        "function",
        (rename_operator("Squareplus", "ai.onnx.preview"), _signed("Grace", "Alan")),
    ),
    BrokenProposal("sign-off.count", "function", (_signed("Grace"),)),
)
TESTED_SEPARATELY = {
    "leaving.function",
    "sign-off.reviewer",
    "sign-off.signature",
    "sign-off.trust",
    "types.ir",
}
"""Rules that need a custom tree; separate tests cover them."""


def _check(base: str, *edits: Edit) -> CheckResult:
    with TemporaryDirectory() as folder:
        return check_proposal(proposal(base, Path(folder) / base, *edits), gate="accept")


@cache
def _check_unedited(base: str) -> CheckResult:
    return _check(base, _signed("Grace", "Alan"))


def _rule_ids(checked: CheckResult) -> set[str]:
    return {each.rule for each in checked.findings}


def test_every_rule_has_a_case() -> None:
    assert {case.rule for case in CASES} | TESTED_SEPARATELY == set(rule_table())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_rule_finds_only_broken_proposal(case: BrokenProposal) -> None:
    checked = _check(case.base, *case.edits)
    assert case.rule in _rule_ids(checked)
    assert case.rule not in _rule_ids(_check_unedited(case.valid_base or case.base))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_rule_has_title_source_and_remedy(case: BrokenProposal) -> None:
    rule = rule_table()[case.rule]
    assert rule.title
    assert rule.source
    assert rule.remedy


@pytest.mark.parametrize("base", ["function", "update", "deprecation", "removal", "promotion"])
def test_valid_proposal_has_no_errors(base: str) -> None:
    assert _check_unedited(base).errors == ()


def _check_removal(folder: Path, replacement: str) -> CheckResult:
    """Check the removal of a function of com.acme with the given replacement."""
    own = folder / "acme" / "com.acme"
    own.mkdir(parents=True)
    for name, kind in (("Twice", BODY), ("Double", BODY), ("Plain", "")):
        (own / f"{name}.yaml").write_text(f"{ACME.format(name=name)}{kind}", "utf-8")
    removal = f"  removal: {{removed_in: 2, replaced_by: {replacement}, up: [rename_op: Double]}}\n"
    definition = (own / "Twice.yaml").read_text("utf-8") + removal
    path = proposal("removal", folder / "gone", write_content(OPERATOR, definition))
    set_answers(operator={"domain": "com.acme", "name": "Twice"})(path)
    return check_proposal(path, registry_of_tree(folder / "acme"), run=False)


ACME = """\
domain: com.acme
name: {name}
shape: same_as_first
versions:
- since_version: 1
  descriptions: {{operator: It doubles every element of its input.}}
  inputs: [{{name: X, type: T}}]
  outputs: [{{name: Y, type: T}}]
  type_constraints: {{T: [tensor(float)]}}
"""
BODY = """\
  body:
    opset_imports: {ai.onnx: 18}
    nodes:
    - {op_type: Add, inputs: [X, X], outputs: [Y]}
"""


@pytest.mark.parametrize(("replacement", "is_broken"), [("Plain", True), ("Double", False)])
def test_replacement_of_function_must_be_function(replacement: str, is_broken: bool, tmp_path: Path) -> None:
    assert ("leaving.function" in _rule_ids(_check_removal(tmp_path, replacement))) is is_broken


@pytest.mark.parametrize(("element", "is_broken"), [("float8e4m3fn", True), ("bfloat16", False)])
def test_types_must_exist_in_newest_release(element: str, is_broken: bool, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "ai.onnx").mkdir(parents=True)
    (tree / "ai.onnx" / "Plain.yaml").write_text(ACME.format(name="Plain").replace("com.acme", "ai.onnx"))
    (tree / "releases.yaml").write_text('onnx:\n  "1.12": {ir_version: 8, opsets: {ai.onnx: 17}}\n')
    path = proposal(
        "function", tmp_path / "sq", replace_text(OPERATOR, "tensor(float)", f"tensor({element})")
    )
    assert ("types.ir" in _rule_ids(check_proposal(path, registry_of_tree(tree), run=False))) is is_broken


def test_valid_proposal_may_have_warnings() -> None:
    assert {each.level for each in _check_unedited("update").findings} <= {Level.INFO, Level.WARNING}


@pytest.mark.parametrize(
    ("rule", "name", "edit"),
    [
        (
            "proposal.format",
            "proposal.yaml",
            replace_text("proposal.yaml", "kind: new-function", "kind: novelty"),
        ),
        ("operator.format", OPERATOR, replace_text(OPERATOR, "shape:", "shapes:")),
        ("examples.format", EXAMPLES, replace_text(EXAMPLES, "inputs:", "input:")),
    ],
)
def test_invalid_file_breaks_only_its_format_rule(rule: str, name: str, edit: Edit) -> None:
    errors = [each for each in _check("function", edit).errors if each.rule.endswith(".format")]
    assert [each.rule for each in errors] == [rule]
    assert Path(errors[0].place.file).name == name
    assert errors[0].place.line > 0
