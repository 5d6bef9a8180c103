"""Every rule has a proposal that breaks it, and one that keeps it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

import pytest
from support.proposals import NO_BODY, Edit, cut, last, newest, proposal, renamed, said, text, whole

from opshift.converter.legality.findings import Level
from opshift.proposals.check import Checked, check_proposal
from opshift.proposals.fingerprint import fingerprint
from opshift.proposals.folder import Folder
from opshift.proposals.rules.table import rule_table
from opshift.proposals.trees import tree_registry


class Broken(NamedTuple):
    """A rule, a proposal that keeps it, and the edits that break it."""

    rule: str
    base: str
    edits: tuple[Edit, ...]
    keeps: str = ""
    """Another base that keeps the rule, if the edited one does not."""


UNRUNNABLE = newest(
    body={
        "opset_imports": {"ai.onnx": 9},
        "nodes": [{"op_type": "ATen", "inputs": ["X"], "outputs": ["Y"]}],
    }
)
"""A body of an experimental operator, which no runtime has and newer opsets lack."""


def _signed(*names: str, of: str = "") -> Edit:
    def edit(folder: Path) -> None:
        content = of or fingerprint(Folder(folder))
        said(sign_offs=[{"name": each, "date": "2020-01-31", "fingerprint": content} for each in names])(
            folder
        )

    return edit


IN_FLOAT_ONLY = newest(
    body={
        "opset_imports": {"ai.onnx": 12},
        "nodes": [{"op_type": "Softmax", "inputs": ["X"], "outputs": ["Y"]}],
    },
    type_constraints={"T": ["tensor(float)", "tensor(bfloat16)"]},
)
"""A body that onnxruntime takes in float and nothing in bfloat16: onnx.reference has a later Softmax."""
OPERATOR, EXAMPLES, REFERENCE, ADAPTERS = "operator.yaml", "examples.yaml", "reference.py", "adapters.py"
FLAT = "examples:\n- name: flat\n  inputs:\n  - {values: [[1, 2]]}\n"
CASES = (
    Broken("proposal.format", "function", (text("proposal.yaml", "kind: new-function", "kind: novelty"),)),
    Broken("proposal.motivation", "function", (said(motivation="It is nice."),)),
    Broken("proposal.model", "function", (said(model="ResNet"),)),
    Broken("proposal.frameworks", "function", (said(frameworks=[]),)),
    Broken(
        "proposal.differences", "function", (said(frameworks=[{"name": "JAX", "link": "https://jax.dev"}]),)
    ),
    Broken("proposal.formula", "function", (said(formula=""),)),
    Broken("proposal.source", "function", (said(source="a paper"),)),
    Broken("proposal.alternatives", "function", (said(alternatives=""),)),
    Broken("proposal.certificate", "function", (said(certificate="Bob <bob@example.com>"),)),
    Broken("proposal.numpy", "function", (said(numpy="numpy.squareplus"),)),
    Broken("proposal.primitive", "function", (said(kind="new-operator"), NO_BODY)),
    Broken(
        "proposal.near", "function", (renamed("Softpluss"), said(alternatives="None that we could think of."))
    ),
    Broken("proposal.kind", "function", (said(kind="new-operator"),)),
    Broken("proposal.open", "function", (said(state="withdrawn"),)),
    Broken("operator.format", "function", (text(OPERATOR, "shape:", "shapes:"),)),
    Broken("operator.name", "function", (renamed("square_plus"),)),
    Broken("operator.domain", "function", (renamed("Squareplus", "Acme"),)),
    Broken("operator.taken", "function", (renamed("Softplus"),)),
    Broken("operator.description", "update", (newest(description="Elu."),)),
    Broken("operator.attributes", "function", (text(OPERATOR, "{name: X,", "{name: axis,"),)),
    Broken("operator.shape", "function", (text(OPERATOR, "same_as_first", "same_as_last"),)),
    Broken(
        "operator.differentiation", "function", (last(OPERATOR, ", differentiation: differentiable", ""),)
    ),
    Broken(
        "operator.determinism",
        "function",
        (text(OPERATOR, "before: body", "before: body\n  determinism: unknown"),),
    ),
    Broken(
        "naming.attribute",
        "function",
        (text(OPERATOR, "    b: {type", "    Bend: {type: INT}\n    b: {type"),),
    ),
    Broken("naming.parameter", "function", (text(OPERATOR, "{name: X,", "{name: inputData,"),)),
    Broken("naming.bias", "function", (text(OPERATOR, "{name: X,", "{name: bias,"),)),
    Broken(
        "naming.axis", "function", (text(OPERATOR, "    b: {type", "    axes: {type: INT}\n    b: {type"),)
    ),
    Broken("types.used", "function", (text(OPERATOR, "    T: [", "    U: [tensor(int8)]\n    T: ["),)),
    Broken("types.known", "function", (text(OPERATOR, "tensor(float)", "tensor(real)"),)),
    Broken(
        "types.repeated", "function", (text(OPERATOR, "[tensor(float)]", "[tensor(float), tensor(float)]"),)
    ),
    Broken("opset.released", "function", (text(OPERATOR, "since_version: 29", "since_version: 28"),)),
    Broken("opset.next", "function", (text(OPERATOR, "since_version: 29", "since_version: 30"),)),
    Broken(
        "opset.published",
        "update",
        (text(OPERATOR, "alpha: {type: FLOAT, default: 1.0}", "alpha: {type: FLOAT, default: 2.0}"),),
    ),
    Broken("opset.version", "update", (cut(OPERATOR, "- since_version: 29"),)),
    Broken("preview.version", "function", (renamed("Squareplus", "ai.onnx.preview"),)),
    Broken("body.names", "function", (text(OPERATOR, "inputs: [bent]", "inputs: [bend]"),)),
    Broken("body.operators", "function", (text(OPERATOR, "op_type: Sqrt", "op_type: Root"),)),
    Broken("body.attributes", "function", (text(OPERATOR, "value_float: 0.5", "value_float: half"),)),
    Broken("body.opset", "function", (text(OPERATOR, "{ai.onnx: 18}", "{ai.onnx: 29}"),)),
    Broken("body.agrees", "function", (text(OPERATOR, "value_float: 0.5", "value_float: 0.25"),)),
    Broken("body.runs", "function", (UNRUNNABLE,)),
    Broken("body.types", "function", (IN_FLOAT_ONLY,)),
    Broken("body.opsets", "function", (UNRUNNABLE,)),
    Broken("steps.change", "update", (newest(step={"up": "adapter", "down": "adapter"}),)),
    Broken(
        "steps.up", "update", (text(OPERATOR, "    up: adapter", "    up: {refuse: nobody needs it anyway}"),)
    ),
    Broken("steps.down", "update", (text(OPERATOR, "    down: adapter\n", ""),)),
    Broken(
        "steps.adapters", "update", (text(ADAPTERS, '@adapter("Elu", 22, 29)', "raise ValueError('broken')"),)
    ),
    Broken("steps.sound", "update", (text(OPERATOR, "    up: adapter", "    up: compatible"),)),
    Broken("steps.agree", "update", (text(ADAPTERS, "out.constant(alpha, ", "out.constant(2 * alpha, "),)),
    Broken("steps.tested", "deprecation", (whole(EXAMPLES, FLAT),)),
    Broken("steps.class", "update", (), keeps="function"),
    Broken(
        "leaving.replacement",
        "deprecation",
        (text(OPERATOR, "replaced_by: ReduceMax", "replaced_by: ReduceAll"),),
    ),
    Broken("leaving.mapping", "removal", (said(mapping=""),)),
    Broken(
        "leaving.way", "removal", (text(OPERATOR, "up: adapter", "up: {refuse: nobody needs it anyway}"),)
    ),
    Broken("promotion.source", "promotion", (said(promotes="ai.onnx.preview.Nothing:1"),)),
    Broken("examples.format", "function", (text(EXAMPLES, "inputs:", "input:"),)),
    Broken("examples.present", "function", (whole(EXAMPLES, "examples: []\n"),)),
    Broken("examples.legal", "function", (text(EXAMPLES, "{b: 9.0}", "{c: 9.0}"),)),
    Broken("reference.loads", "function", (text(REFERENCE, "def reference", "def other"),)),
    Broken("reference.runs", "function", (text(REFERENCE, "    width, half", "    X[9]\n    width, half"),)),
    Broken("reference.expected", "function", (text(REFERENCE, "X + np.sqrt", "X - np.sqrt"),)),
    Broken("reference.types", "function", (text(REFERENCE, "half, X.dtype", "half, np.float64"),)),
    Broken("reference.numpy", "function", (said(numpy="numpy.tanh"),)),
    Broken("shape.agrees", "function", (text(OPERATOR, "same_as_first", "shape"),)),
    Broken("shape.rank", "function", (text(OPERATOR, "same_as_first", "same_as_second"),)),
    Broken(
        "coverage.outputs",
        "function",
        (
            last(
                OPERATOR,
                "  attributes:\n    b",
                "  - {name: Z, type: T, option: optional}\n  attributes:\n    b",
            ),
        ),
    ),
    Broken("coverage.attributes", "function", (text(EXAMPLES, "  attributes: {b:", "  # {b:"),)),
    Broken("coverage.inputs", "update", (cut(EXAMPLES, "- name: one alpha"),)),
    Broken(
        "coverage.types", "function", (text(OPERATOR, "[tensor(float)]", "[tensor(float), tensor(string)]"),)
    ),
    Broken("coverage.corners", "function", (cut(EXAMPLES, "- name: not finite"),)),
    Broken("sign-off.author", "function", (_signed("ADA  Example"),)),
    Broken("sign-off.void", "function", (_signed("Grace", of="0" * 32),)),
    Broken("sign-off.twice", "function", (_signed("Grace", "Alan", "grace"),)),
    Broken(
        "preview.approval", "function", (renamed("Squareplus", "ai.onnx.preview"), _signed("Grace", "Alan"))
    ),
    Broken("sign-off.count", "function", (_signed("Grace"),)),
)
ELSEWHERE = {"leaving.function", "types.ir"}
"""Rules that need a tree of their own; their tests are below."""


def _checked(base: str, *edits: Edit) -> Checked:
    return check_proposal(proposal(base, Path(mkdtemp()) / base, *edits), gate="accept")


@cache
def _clean(base: str) -> Checked:
    return _checked(base, _signed("Grace", "Alan"))


def _rules(checked: Checked) -> set[str]:
    return {each.rule for each in checked.findings}


def test_every_rule_has_its_case() -> None:
    assert {case.rule for case in CASES} | ELSEWHERE == set(rule_table())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_the_rule_finds_what_breaks_it_and_nothing_else(case: Broken) -> None:
    checked = _checked(case.base, *case.edits)
    assert case.rule in _rules(checked)
    assert case.rule not in _rules(_clean(case.keeps or case.base))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_finding_has_a_sentence_a_place_and_a_remedy(case: Broken) -> None:
    rule = rule_table()[case.rule]
    assert rule.title
    assert rule.source
    assert rule.remedy


@pytest.mark.parametrize("base", ["function", "update", "deprecation", "removal", "promotion"])
def test_a_proposal_in_order_has_no_errors(base: str) -> None:
    assert _clean(base).errors == ()


def _acme(folder: Path, replacement: str) -> Checked:
    """The removal of a function of com.acme, in favour of another operator."""
    own = folder / "acme" / "com.acme"
    own.mkdir(parents=True)
    for name, kind in (("Twice", BODY), ("Double", BODY), ("Plain", "")):
        (own / f"{name}.yaml").write_text(f"{ACME.format(name=name)}{kind}", "utf-8")
    removal = f"  removal: {{removed_in: 2, replaced_by: {replacement}, up: [rename_op: Double]}}\n"
    definition = (own / "Twice.yaml").read_text("utf-8") + removal
    path = proposal("removal", folder / "gone", whole(OPERATOR, definition))
    said(operator={"domain": "com.acme", "name": "Twice"})(path)
    return check_proposal(path, tree_registry(folder / "acme"), run=False)


ACME = """\
domain: com.acme
name: {name}
description: It doubles every element of its input.
shape: same_as_first
versions:
- since_version: 1
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
def test_a_function_is_removed_for_a_function_only(replacement: str, is_broken: bool, tmp_path: Path) -> None:
    assert ("leaving.function" in _rules(_acme(tmp_path, replacement))) is is_broken


@pytest.mark.parametrize(("element", "is_broken"), [("float8e4m3fn", True), ("bfloat16", False)])
def test_types_are_those_of_the_newest_release(element: str, is_broken: bool, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "ai.onnx").mkdir(parents=True)
    (tree / "ai.onnx" / "Plain.yaml").write_text(ACME.format(name="Plain").replace("com.acme", "ai.onnx"))
    (tree / "releases.yaml").write_text('onnx:\n  "1.12": {ir_version: 8, opsets: {ai.onnx: 17}}\n')
    path = proposal("function", tmp_path / "sq", text(OPERATOR, "tensor(float)", f"tensor({element})"))
    assert ("types.ir" in _rules(check_proposal(path, tree_registry(tree), run=False))) is is_broken


def test_infos_are_no_obstacle() -> None:
    assert {each.level for each in _clean("update").findings} <= {Level.INFO, Level.WARNING}
