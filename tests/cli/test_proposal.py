"""`opshift proposal`: output and exit codes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.proposals import proposal, replace_text
from support.released import released_definitions
from typer.testing import Result

Run = Callable[..., Result]


@pytest.fixture(autouse=True, scope="module")
def _released() -> Iterator[None]:
    with released_definitions():
        yield


@pytest.fixture
def broken(folder: Path) -> Path:
    return proposal(
        "function", folder / "sq", replace_text("operator.yaml", "value_float: 0.5", "value_float: 0.25")
    )


def test_findings_have_file_and_line(run: Run, broken: Path) -> None:
    result = run("proposal", "check", "sq")
    assert result.exit_code == 1
    lines = (broken / "operator.yaml").read_text("utf-8").splitlines()
    assert (
        f"sq/operator.yaml:{lines.index('  body:') + 1}: error body.agrees: default: Y (float)"
        in result.stdout
    )
    assert "help: correct the body or the reference" in result.stdout


def test_prints_findings_as_json(run: Run, broken: Path) -> None:
    report = json.loads(run("proposal", "check", "sq", "--format", "json").stdout)
    assert report["counts"]["error"] == len(report["findings"]) > 0
    assert set(report["findings"][0]) == {"rule", "level", "file", "line", "reason", "remedy"}


def test_prints_findings_as_annotations(run: Run, broken: Path) -> None:
    lines = run("proposal", "check", "sq", "--format", "github").stdout.splitlines()
    assert lines
    assert all(line.startswith("::error file=sq/") for line in lines)
    assert any("title=body.agrees::" in line for line in lines)


def test_accepts_valid_proposal(run: Run, folder: Path) -> None:
    proposal("function", folder / "sq")
    result = run("proposal", "check", "sq")
    sign = "Two reviewers sign it off with `opshift proposal sign sq --name NAME`."
    assert (result.exit_code, result.stdout) == (0, f"valid: no findings\n{sign}\n")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("new", "x", "--kind", "idea", "--name", "X"), 2, "unknown kind of proposal"),
        (("new", "x", "--kind", "update", "--name", "Nothing"), 2, "has no operator 'Nothing'"),
        (("new", "x", "--kind", "new-operator", "--name", "../../evil"), 2, "is not a valid name"),
        (("new", "x", "--kind", "new-operator", "--name", "X", "-d", "a/../b"), 2, "is not a valid name"),
        (("check", "nowhere"), 2, "folder does not exist"),
        (("check", "sq", "--opsets", "nowhere"), 2, "nowhere: does not exist"),
        (("status", "sq", "--opsets", "sq"), 2, "sq: contains no operator definitions"),
        (("new", "x", "--kind", "update", "--name", "Elu", "--opsets", "no"), 2, "no: does not exist"),
        (("sign", "sq", "--name", "Ada Example"), 2, "is the author"),
        (("explain", "no.rule"), 2, "unknown rule"),
        (("render", "sq", "--out", "page.pdf"), 2, "unsupported suffix"),
        (("accept", "sq", "--opsets", "own"), 2, "own: does not exist"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_reports_invalid_arguments(
    arguments: tuple[str, ...], code: int, message: str, run: Run, folder: Path
) -> None:
    proposal("function", folder / "sq")
    result = run("proposal", *arguments)
    assert result.exit_code == code
    assert message in result.output


def test_explains_rule(run: Run) -> None:
    explanation = run("proposal", "explain", "body.agrees").stdout
    assert "A function has two definitions" in explanation
    assert "Adding New Operator" in explanation


def test_status_runs_no_code(run: Run, folder: Path) -> None:
    proposal(
        "function",
        folder / "sq",
        replace_text("reference.py", "import numpy", "raise ValueError\nimport numpy"),
    )
    result = run("proposal", "status", "sq")
    assert result.exit_code == 0
    assert "0 of 2: none" in result.stdout


def test_signs_off_with_key(run: Run, folder: Path) -> None:
    proposal("function", folder / "sq")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "key"], check=True)
    (folder / "own").mkdir()
    (folder / "own" / "keys").write_text(f"grace@example.com {Path('key.pub').read_text()}")
    (folder / "own" / "reviewers.yaml").write_text(
        "allowed_signers: keys\nreviewers: [{name: Grace, identity: grace@example.com}]\n"
    )
    arguments = ("proposal", "sign", "sq", "--name", "Grace", "--opsets", "own")
    assert "has no signature" in run(*arguments).output
    assert run(*arguments, "--key", "key").exit_code == 0
    assert "1 of 2: Grace" in run("proposal", "status", "sq", "--opsets", "own").stdout


def test_prints_refusal_as_json(run: Run, broken: Path) -> None:
    own = broken.parent / "own"
    own.mkdir()
    (own / "reviewers.yaml").write_text("reviewers: [{name: Grace}]")
    result = run("proposal", "accept", "sq", "--opsets", "own", "--format", "json")
    assert result.exit_code == 1
    assert {"body.agrees", "sign-off.count"} <= {
        each["rule"] for each in json.loads(result.stdout)["findings"]
    }
    assert [each.name for each in own.iterdir()] == ["reviewers.yaml"]


def test_refuses_to_sign_content_that_fails_the_check(run: Run, broken: Path) -> None:
    before = (broken / "proposal.yaml").read_text("utf-8")
    result = run("proposal", "sign", "sq", "--name", "Grace")
    assert result.exit_code == 2
    assert "the check of the content finds" in result.stderr
    assert (broken / "proposal.yaml").read_text("utf-8") == before


def test_trusts_reviewers_of_a_revision(run: Run, folder: Path) -> None:
    proposal("function", folder / "sq")
    tree = folder / "tree"
    tree.mkdir()
    (tree / "reviewers.yaml").write_text("reviewers: [{name: Grace}]\n")
    for command in ("init", "add .", "-c user.name=A -c user.email=a@x commit -m all"):
        subprocess.run(["git", "-C", str(tree), *command.split()], check=True, capture_output=True)
    (tree / "reviewers.yaml").write_text("reviewers: [{name: Mallory}]\n")
    options = ("--opsets", "tree", "--trust", "HEAD")
    assert run("proposal", "sign", "sq", "--name", "Mallory", *options).exit_code == 2
    assert run("proposal", "sign", "sq", "--name", "Grace", *options).exit_code == 0
    status = run("proposal", "status", "sq", *options)
    assert "reviewers.yaml or its keys differ from the trusted copy" in status.stdout
    assert "1 of 2: Grace" in status.stdout
    assert run("proposal", "status", "sq", "--opsets", "tree", "--trust", "nowhere").exit_code == 2
