"""What goes wrong with proposals is caught, each by the rule that says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.proposals import Edit, last, newest, proposal, said, text

from opshift.proposals.check import check_proposal
from opshift.proposals.findings import Finding
from opshift.proposals.folder import Folder
from opshift.proposals.signing import sign

OPERATOR, REFERENCE = "operator.yaml", "reference.py"
THROUGH_FLOAT = text(
    OPERATOR,
    "    - {op_type: Add, inputs: [X, root], outputs: [double]}",
    "    - {op_type: Cast, inputs: [root], outputs: [single], attributes: {to: 1}}\n"
    "    - {op_type: CastLike, inputs: [single, X], outputs: [rounded]}\n"
    "    - {op_type: Add, inputs: [X, rounded], outputs: [double]}",
)
ALL_TYPES = text(OPERATOR, "[tensor(float)]", "[all_float_types_ir4]")
IN_PLACE = text(OPERATOR, "alpha: {type: FLOAT, default: 1.0}", "alpha: {type: FLOAT, default: 2.0}")
NO_WAY_DOWN = newest(before=None)


def _errors(base: str, folder: Path, *edits: Edit) -> list[Finding]:
    return list(check_proposal(proposal(base, folder / base, *edits)).errors)


@pytest.mark.parametrize(
    ("base", "edits", "rules", "told"),
    [
        pytest.param(
            "function",
            (
                text(REFERENCE, "X + np.sqrt", "X - np.sqrt"),
                text(OPERATOR, "Add, inputs: [X, root]", "Sub, inputs: [X, root]"),
            ),
            {"reference.expected"},
            "",
            id="a wrong reference, with a body that agrees with it",
        ),
        pytest.param(
            "function",
            (ALL_TYPES, THROUGH_FLOAT),
            {"body.agrees", "steps.agree"},
            "(double)",
            id="a body that disagrees on one element type only",
        ),
        pytest.param(
            "function",
            (text(OPERATOR, "same_as_first", "scalar"),),
            {"shape.agrees"},
            "the rule infers",
            id="a wrong shape rule",
        ),
        pytest.param(
            "function", (NO_WAY_DOWN,), {"steps.down"}, "no downgrade", id="no reason for a missing way down"
        ),
        pytest.param(
            "function",
            (said(sign_offs=[{"name": "Ada Example", "date": "2026-01-31", "fingerprint": "0"}]),),
            {"sign-off.author"},
            "Ada Example",
            id="a sign-off by the author",
        ),
        pytest.param(
            "update", (IN_PLACE,), {"opset.published"}, "attributes", id="a default that is changed in place"
        ),
    ],
)
def test_each_error_is_that_of_its_rule(
    base: str, edits: tuple[Edit, ...], rules: set[str], told: str, tmp_path: Path
) -> None:
    found = _errors(base, tmp_path, *edits)
    assert {each.rule for each in found} == rules
    assert all(told in each.reason for each in found)


def test_a_changed_default_without_a_new_version_is_an_edit_in_place(tmp_path: Path) -> None:
    def only_edited(folder: Path) -> None:
        path = folder / OPERATOR
        path.write_text(path.read_text().partition("- since_version: 29")[0])

    found = _errors("update", tmp_path, only_edited, last(OPERATOR, "default: 1.0", "default: 2.0"))
    assert "opset.published" in {each.rule for each in found}


def test_an_edit_after_a_sign_off_makes_it_void(tmp_path: Path) -> None:
    path = proposal("function", tmp_path / "sq")
    for name in ("Grace", "Alan"):
        sign(Folder(path), name)
    assert check_proposal(path, gate="accept").errors == ()
    text(REFERENCE, "Squareplus in numpy", "Squareplus, in numpy")(path)
    found = check_proposal(path, gate="accept").findings
    assert sorted(each.rule for each in found if each.rule.startswith("sign-off")) == [
        "sign-off.count",
        "sign-off.void",
        "sign-off.void",
    ]


def test_a_finding_names_file_and_line(tmp_path: Path) -> None:
    errors = _errors("function", tmp_path, text(OPERATOR, "op_type: Sqrt", "op_type: Root"))
    (found,) = (each for each in errors if each.rule == "body.operators")
    line = (tmp_path / "function" / OPERATOR).read_text().splitlines()[found.place.line - 1]
    assert found.place.file.endswith(OPERATOR)
    assert "op_type: Root" in line
    assert found.remedy


@pytest.mark.parametrize(
    ("edit", "rule"),
    [
        (text(REFERENCE, "import numpy", "raise SystemExit(0)\nimport numpy"), "reference.loads"),
        (text(REFERENCE, "    width, half", "    raise SystemExit(0)\n    width, half"), "reference.runs"),
        (text(REFERENCE, "def reference(", "def reference(]"), "reference.loads"),
    ],
    ids=["a module that exits", "a function that exits", "a file that is no Python"],
)
def test_code_that_ends_the_program_is_a_finding(edit: Edit, rule: str, tmp_path: Path) -> None:
    assert rule in {each.rule for each in _errors("function", tmp_path, edit)}


@pytest.mark.parametrize("name", ["operator.yaml", "reference.py", "examples.yaml"])
def test_a_file_that_is_missing_is_a_finding(name: str, tmp_path: Path) -> None:
    assert _errors("function", tmp_path, lambda folder: (folder / name).unlink())


def test_without_running_nothing_is_run(tmp_path: Path) -> None:
    path = proposal(
        "function", tmp_path / "sq", text(REFERENCE, "import numpy", "raise ValueError\nimport numpy")
    )
    assert check_proposal(path, run=False).errors == ()
    assert {each.rule for each in check_proposal(path).errors} >= {"reference.loads"}


@pytest.mark.parametrize("name", ["squareplus", "elu_alpha", "global_max_pool"])
def test_the_worked_examples_are_in_order(name: str) -> None:
    root = Path(__file__).resolve().parents[2] / "proposals" / "examples"
    assert check_proposal(root / name).errors == ()


def test_nothing_of_a_proposal_stays_in_the_table_of_adapters(tmp_path: Path) -> None:
    from opshift.adapters.table import adapter_table

    before = dict(adapter_table())
    check_proposal(proposal("update", tmp_path / "elu"))
    assert dict(adapter_table()) == before


def test_without_numpy_it_is_said_what_to_install(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['numpy'] = None\n"
        "from opshift.cli.main import main\n"
        "sys.argv = ['opshift', 'proposal', 'explain']\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'opshift[verify]'" in done.stderr
