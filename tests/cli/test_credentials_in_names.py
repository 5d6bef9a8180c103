"""URLs with credentials in names of models: every document stays valid, and has no credential."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from markdown_it import MarkdownIt
from onnx import parser
from support.sarif import read_run
from typer.testing import Result

Run = Callable[..., Result]

SECRETS = ("sekret", "0123456789ab")
URL = "http://bob:sekret@h/m?token=0123456789ab"
NAMES = {
    "quote": f'{{"url": "{URL}", "x": 1}}',
    "quote and slash": f'"{URL}"/',
    "quote after a password": 'http://bob:sekret"@h',
    "apostrophe": f"it's {URL}",
    "backslash": f"{URL}\\",
    "backquote": f"{URL}` and {URL}",
    "tag": f"<a href='{URL}'>{URL}</a>",
}
MODEL = '<ir_version: 9, opset_import: ["": 20]> g (float[4] x) => (float[4] y) { y = StringSplit (x) }'


@pytest.fixture(params=[*NAMES.values()], ids=[*NAMES])
def model(request: pytest.FixtureRequest, folder: Path) -> str:
    """Write `zoo/m.onnx`, whose node opset 13 refuses and has a URL with credentials in its name."""
    proto = parser.parse_model(MODEL)
    proto.graph.node[0].name = proto.graph.name = request.param
    (folder / "zoo").mkdir()
    onnx.save(proto, folder / "zoo" / "m.onnx")
    return "zoo/m.onnx"


FORMS: dict[str, Callable[[str], object]] = {
    "json": lambda text: list(map(json.loads, text.splitlines())),
    "sarif": read_run,
    "gitlab": json.loads,
    "github": str,
    "text": str,
}


@pytest.mark.parametrize("form", FORMS)
def test_output_is_valid(run: Run, model: str, form: str) -> None:
    result = run("plan", "zoo", "-t", "13", "--format", form)
    assert result.exit_code == 1
    assert FORMS[form](result.stdout)
    assert not [each for each in SECRETS if each in result.output]


def test_document_of_one_model_is_valid(run: Run, model: str) -> None:
    text = run("plan", model, "-t", "13", "--format", "json").stdout
    assert len(json.loads(text)["refusals"]) == 1
    assert not [each for each in SECRETS if each in text]


def test_second_run_repeats_the_results_in_a_ledger(run: Run, model: str) -> None:
    texts = [run("plan", "zoo", "-t", "13", "--ledger", "gate.jsonl", "--quiet").stdout for _ in range(2)]
    outcomes = [run("convert", "zoo", "--out", "out", "-t", "13", "--format", "json") for _ in range(2)]
    assert texts[0] == texts[1]
    assert [json.loads(each.stdout.splitlines()[0])["from_ledger"] for each in outcomes] == [False, True]
    for ledger in ("gate.jsonl", "out/opshift-ledger.jsonl"):
        text = Path(ledger).read_text("utf-8")
        assert all(map(json.loads, text.splitlines()))
        assert not [each for each in SECRETS if each in text]


REPORTS = {
    ".json": lambda text: json.loads(text)["refusals"][0]["place"],
    ".html": lambda text: text.partition("<td>graph, ")[2].partition("</td>")[0],
    ".md": lambda text: (
        MarkdownIt().enable("table").render(text).partition("<td>graph, ")[2].partition("</td>")[0]
    ),
}


@pytest.mark.parametrize("suffix", REPORTS)
def test_report_is_valid(run: Run, model: str, suffix: str) -> None:
    run("plan", model, "-t", "13", "--report", f"report{suffix}")
    text = Path(f"report{suffix}").read_text("utf-8")
    place = REPORTS[suffix](text)
    assert "***" in place
    assert "<em>" not in place
    assert not [each for each in SECRETS if each in text]


@pytest.mark.parametrize("suffix", REPORTS)
def test_report_of_differences_is_valid(run: Run, model: str, suffix: str) -> None:
    changed = onnx.load(model)
    changed.graph.node[0].op_type = "Relu"
    onnx.save(changed, "changed.onnx")
    run("diff-model", model, "changed.onnx", "--report", f"report{suffix}")
    text = Path(f"report{suffix}").read_text("utf-8")
    assert "***" in text
    assert not [each for each in SECRETS if each in text]


def test_summary_of_a_job_has_no_credentials(run: Run, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    run("plan", model, "-t", "13", "--format", "github")
    text = Path("summary.md").read_text("utf-8")
    assert r"\*\*\*" in text
    assert not [each for each in SECRETS if each in text]
