"""Page about a plan or a conversion."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import onnx
import onnx.parser
import pytest
from support.planted import install_wrong_clip

import opshift
from opshift import Report, VerificationFailed, write_report
from opshift.analysis.pages.conversion_page import conversion_page


def model(name: str = "first") -> onnx.ModelProto:
    parsed: onnx.ModelProto = onnx.parser.parse_model("""
    <ir_version: 4, opset_import: ["": 10]>
    example (float[N, 4] x) => (float[N, 4] y) {
        a = Clip <min = 0.0, max = 0.5> (x)
        b = Relu (a)
        y = Softmax <axis = 0> (b)
    }
    """)
    parsed.graph.node[0].name = name
    return parsed


def refused(name: str = "first") -> Report:
    new = model(name)
    new.opset_import[0].version = 11
    new.graph.node[0].CopyFrom(onnx.helper.make_node("Det", ["x"], ["a"], name))
    return Report.of(opshift.plan_version(new, 10))


def sections(page: str) -> list[str]:
    return [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]


def test_page_of_conversion_has_versions_changes_and_steps() -> None:
    page = conversion_page(opshift.convert(model(), 13).report, "old -> new").markdown
    assert page.startswith("# old -> new\n")
    assert sections(page) == ["Versions", "Changes", "Steps", "Changed nodes"]
    for excerpt in (
        "Changed nodes: 2. Kept nodes: 1. No node is refused.",
        "* [Changed nodes](#changed-nodes)",
        "| ai.onnx | 10 | 13 |",
        "| IR version | 4 | 7 |",
        "| 1 | `ai.onnx.Clip:6` | 1 | `ai.onnx.Clip:13` | 8 |",
        "| `ai.onnx.Clip:6 -> 11` | `min` and `max` change",
        "| graph, node 'first' | `ai.onnx.Clip:6` | 1 |",
    ):
        assert excerpt in page


def test_page_of_refused_plan_has_reasons_and_remedies() -> None:
    report = refused()
    page = conversion_page(report).markdown
    assert "**Refused.** Nodes and features that cannot be converted: 1." in page
    assert sections(page)[:2] == ["Refusals", "Versions"]
    assert "What to do: pass --allow approximate" in page
    assert "| graph, node 'first' | `ai.onnx.Det:11` |" in page
    (group,) = report.refusal_groups()
    assert f"### {group.title} (`{group.code}`)" in page


def test_page_shows_allowances_repairs_and_kept_operators() -> None:
    new = model()
    new.opset_import[0].version = 11
    new.graph.node[0].CopyFrom(onnx.helper.make_node("Det", ["x"], ["a"]))
    nodes = [*new.graph.node]
    del new.graph.node[:]
    new.graph.node.extend(reversed(nodes))
    page = conversion_page(opshift.convert(new, 10, allow="approximate").report).markdown
    assert {"Allowed", "Notes"} <= set(sections(page))
    assert "| 1 | approximate | " in page


def test_page_of_verification_has_outputs_and_runtimes() -> None:
    converted = opshift.convert(model(), 13)
    verification = opshift.verify(model(), converted.model)
    page = conversion_page(converted.report, verification=verification).markdown
    assert "**The outputs agree.**" in page
    assert "| `y` | float\\[2, 4\\] | 36 |" in page
    assert f"Samples: {verification.samples}, run with onnxruntime" in page
    further = f"Further samples with infinities and NaN: {verification.nonfinite}."
    assert (further in page) == bool(verification.nonfinite)


def test_page_of_verification_names_branches_that_are_not_compared() -> None:
    converted = opshift.convert(model(), 13)
    unreached = ("graph, node choice, else_branch",)
    verification = replace(opshift.verify(model(), converted.model), unreached=unreached)
    page = conversion_page(converted.report, verification=verification).markdown
    assert "* graph, node choice, else_branch: never executed, so not compared" in page


def test_page_of_failed_verification_names_the_first_node(monkeypatch: pytest.MonkeyPatch) -> None:
    install_wrong_clip(monkeypatch)
    converted = opshift.convert(model(), 13)
    with pytest.raises(VerificationFailed) as caught:
        opshift.verify(model(), converted.model)
    page = conversion_page(
        converted.report, verification=caught.value.verification, location=caught.value.location
    ).markdown
    assert "**The outputs of the converted model differ.**" in page
    assert "First node with a different value: graph, node 'first' (ai.onnx.Clip:6)" in page


def test_names_have_no_effect() -> None:
    hostile = "</td><script>alert(1)</script>|`](javascript:x)\x1b[31m"
    for report in (refused(hostile), opshift.convert(model(hostile), 13).report):
        page = conversion_page(report, hostile)
        assert all(line.isprintable() for line in page.markdown.split("\n"))
        assert "<script" not in page.html()
        assert 'href="javascript' not in page.html()


def test_every_link_of_the_page_has_a_section() -> None:
    page = conversion_page(refused()).html()
    for name in ("versions", "refusals", "changed-nodes"):
        assert (f'href="#{name}"' in page) == (f'<h2 id="{name}">' in page)
    assert '<h2 id="refusals">' in page


@pytest.mark.parametrize("suffix", [".html", ".md", ".json"])
def test_writes_report_of_conversion(suffix: str, tmp_path: Path) -> None:
    converted = opshift.convert(model(), 13)
    path = tmp_path / f"report{suffix}"
    write_report(converted.report, path, verification=opshift.verify(model(), converted.model))
    text = path.read_text()
    if suffix == ".json":
        data = json.loads(text)
        assert data.pop("verification")["equal"] is True
        assert data == json.loads(json.dumps(converted.report.as_dict()))
    else:
        assert "The outputs agree." in text
