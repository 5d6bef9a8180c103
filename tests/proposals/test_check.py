"""Errors in proposals, and the rules that report them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.proposals import (
    Edit,
    proposal,
    replace_last,
    replace_text,
    set_answers,
    set_newest_version,
    worked_example,
)

from opshift.proposals.check import check_proposal
from opshift.proposals.content.findings import ProposalFinding
from opshift.proposals.content.folder import ProposalFolder
from opshift.proposals.content.sign_off import sign

OPERATOR, REFERENCE = "operator.yaml", "reference.py"
BODY_IN_FLOAT = replace_text(
    OPERATOR,
    "    - {op_type: Add, inputs: [X, root], outputs: [double]}",
    "    - {op_type: Cast, inputs: [root], outputs: [single], attributes: {to: 1}}\n"
    "    - {op_type: CastLike, inputs: [single, X], outputs: [rounded]}\n"
    "    - {op_type: Add, inputs: [X, rounded], outputs: [double]}",
)
ALL_FLOAT_TYPES = replace_text(OPERATOR, "[tensor(float)]", "[all_float_types_ir4]")
CHANGED_DEFAULT = replace_text(
    OPERATOR, "alpha: {type: FLOAT, default: 1.0}", "alpha: {type: FLOAT, default: 2.0}"
)
NO_DOWNGRADE = set_newest_version(before=None)


def _errors(base: str, folder: Path, *edits: Edit) -> list[ProposalFinding]:
    return list(check_proposal(proposal(base, folder / base, *edits)).errors)


@pytest.mark.parametrize(
    ("base", "edits", "rules", "excerpt"),
    [
        pytest.param(
            "function",
            (
                replace_text(REFERENCE, "X + np.sqrt", "X - np.sqrt"),
                replace_text(OPERATOR, "Add, inputs: [X, root]", "Sub, inputs: [X, root]"),
            ),
            {"reference.expected"},
            "",
            id="wrong reference and equally wrong body",
        ),
        pytest.param(
            "function",
            (ALL_FLOAT_TYPES, BODY_IN_FLOAT),
            {"body.agrees"},
            "(double)",
            id="wrong body for one element type",
        ),
        pytest.param(
            "function",
            (replace_text(OPERATOR, "same_as_first", "scalar"),),
            {"shape.agrees"},
            "the rule infers",
            id="wrong shape rule",
        ),
        pytest.param(
            "function",
            (NO_DOWNGRADE,),
            {"steps.down"},
            "no downgrade",
            id="no reason for a missing downgrade",
        ),
        pytest.param(
            "function",
            (set_answers(sign_offs=[{"name": "Ada Example", "date": "2026-01-31", "fingerprint": "0"}]),),
            {"sign-off.author"},
            "Ada Example",
            id="sign-off by the author",
        ),
        pytest.param(
            "update",
            (CHANGED_DEFAULT,),
            {"opset.published"},
            "attributes",
            id="changed default of a published version",
        ),
    ],
)
def test_error_belongs_to_its_rule(
    base: str, edits: tuple[Edit, ...], rules: set[str], excerpt: str, tmp_path: Path
) -> None:
    findings = _errors(base, tmp_path, *edits)
    assert {each.rule for each in findings} == rules
    assert all(excerpt in each.reason for each in findings)


def test_changed_default_requires_new_version(tmp_path: Path) -> None:
    def remove_new_version(folder: Path) -> None:
        path = folder / OPERATOR
        path.write_text(path.read_text().partition("- since_version: 29")[0])

    findings = _errors(
        "update", tmp_path, remove_new_version, replace_last(OPERATOR, "default: 1.0", "default: 2.0")
    )
    assert "opset.published" in {each.rule for each in findings}


def test_edit_invalidates_sign_offs(tmp_path: Path) -> None:
    path = proposal("function", tmp_path / "sq")
    for name in ("Grace", "Alan"):
        sign(ProposalFolder(path), name)
    assert check_proposal(path, gate="accept").errors == ()
    replace_text(REFERENCE, "Squareplus in numpy", "Squareplus, in numpy")(path)
    findings = check_proposal(path, gate="accept").findings
    assert sorted(each.rule for each in findings if each.rule.startswith("sign-off")) == [
        "sign-off.count",
        "sign-off.void",
        "sign-off.void",
    ]


def test_finding_has_file_and_line(tmp_path: Path) -> None:
    errors = _errors("function", tmp_path, replace_text(OPERATOR, "op_type: Sqrt", "op_type: Root"))
    (finding,) = (each for each in errors if each.rule == "body.operators")
    line = (tmp_path / "function" / OPERATOR).read_text().splitlines()[finding.place.line - 1]
    assert finding.place.file.endswith(OPERATOR)
    assert "op_type: Root" in line
    assert finding.remedy


@pytest.mark.parametrize(
    ("edit", "rule"),
    [
        (replace_text(REFERENCE, "import numpy", "raise SystemExit(0)\nimport numpy"), "reference.loads"),
        (
            replace_text(REFERENCE, "    width, half", "    raise SystemExit(0)\n    width, half"),
            "reference.runs",
        ),
        (replace_text(REFERENCE, "def reference(", "def reference(]"), "reference.loads"),
    ],
    ids=["module exits", "function exits", "invalid Python"],
)
def test_reports_code_that_exits(edit: Edit, rule: str, tmp_path: Path) -> None:
    assert rule in {each.rule for each in _errors("function", tmp_path, edit)}


@pytest.mark.parametrize("name", ["operator.yaml", "reference.py", "examples.yaml"])
def test_reports_missing_file(name: str, tmp_path: Path) -> None:
    assert _errors("function", tmp_path, lambda folder: (folder / name).unlink())


def test_runs_no_code_if_disabled(tmp_path: Path) -> None:
    path = proposal(
        "function", tmp_path / "sq", replace_text(REFERENCE, "import numpy", "raise ValueError\nimport numpy")
    )
    assert check_proposal(path, run=False).errors == ()
    assert {each.rule for each in check_proposal(path).errors} >= {"reference.loads"}


@pytest.mark.parametrize("name", ["squareplus", "elu_alpha", "global_max_pool"])
def test_worked_examples_are_valid(name: str, tmp_path: Path) -> None:
    assert check_proposal(worked_example(name, tmp_path / name)).errors == ()


def test_adapter_table_is_unchanged_after_check(tmp_path: Path) -> None:
    from opshift.adapters.core.adapter_table import adapter_table

    before = dict(adapter_table())
    check_proposal(proposal("update", tmp_path / "elu"))
    assert dict(adapter_table()) == before


def test_error_without_numpy_has_remedy(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['numpy'] = None\n"
        "from opshift.cli.main import main\n"
        "sys.argv = ['opshift', 'proposal', 'explain']\n"
        "main()"
    )
    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert completed.returncode == 2
    assert "pip install 'opshift[verify]'" in completed.stderr


def test_reference_gets_attributes_as_models_store_them(tmp_path: Path) -> None:
    """float32 has no 0.1, which matters in double: the body gets the rounded number, too."""
    rounded = "assert b == float(np.float32(b)), b"
    edits = (
        replace_text(OPERATOR, "[tensor(float)]", "[tensor(float), tensor(double)]"),
        replace_text("examples.yaml", "{b: 9.0}", "{b: 0.1}"),
        replace_text(REFERENCE, "    width, half", f"    {rounded}\n    width, half"),
    )
    assert _errors("function", tmp_path, *edits) == []


def test_refuses_body_that_contains_the_operator(tmp_path: Path) -> None:
    edits = (
        replace_text(OPERATOR, "{ai.onnx: 18}", "{ai.onnx: 29}"),
        replace_text(OPERATOR, "op_type: Sqrt", "op_type: Squareplus"),
    )
    (found,) = _errors("function", tmp_path, *edits)
    assert (found.rule, found.reason) == ("body.opset", "expanding the body leads to Squareplus again")


def test_refuses_attribute_beyond_float32(tmp_path: Path) -> None:
    (found,) = _errors("function", tmp_path, replace_text("examples.yaml", "{b: 9.0}", "{b: 1.0e+39}"))
    assert (found.rule, found.reason) == (
        "examples.legal",
        "wide bend: 'b': 1e+39 is out of range for float32",
    )


@pytest.mark.parametrize(
    ("base", "edit", "texts"),
    [
        pytest.param(
            "function",
            set_answers(motivation="Nice."),
            ["`motivation` has 5 characters, fewer than 20"],
            id="answer",
        ),
        pytest.param(
            "removal", set_answers(mapping="See above."), ["`mapping` has 10 characters"], id="mapping"
        ),
        pytest.param(
            "function",
            replace_text(OPERATOR, "same_as_first", "same_as_frist"),
            ["did you mean same_as_first"],
            id="shape rule",
        ),
        pytest.param("function", set_answers(numpy="numpy.sqrtt"), ["did you mean sqrt"], id="numpy"),
        pytest.param(
            "function",
            replace_text(OPERATOR, "value_float: 0.5", "value_flaot: 0.5"),
            ["did you mean value_float"],
            id="attribute of a body node",
        ),
        pytest.param(
            "update", replace_text(OPERATOR, "op_type: Mul", "op_type: Mull"), ["did you mean Mul"], id="body"
        ),
        pytest.param(
            "function",
            replace_text("examples.yaml", "- {values: 1.5}", "- {type: flaot, values: 1.5}"),
            ["did you mean float"],
            id="type of an example",
        ),
        pytest.param(
            "deprecation",
            replace_text(OPERATOR, "replaced_by: ReduceMax", "replaced_by: ReduceMaks"),
            ["did you mean ReduceMax"],
            id="replacement",
        ),
    ],
)
def test_finding_states_length_or_similar_name(
    base: str, edit: Edit, texts: list[str], tmp_path: Path
) -> None:
    found = check_proposal(proposal(base, tmp_path / base, edit)).findings
    messages = [f"{each.reason} ({each.remedy})" for each in found]
    assert [text for text in texts if not any(text in each for each in messages)] == []
