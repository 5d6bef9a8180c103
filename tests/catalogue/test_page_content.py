"""Content of the pages about operators, opsets and runtimes."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from markdown_it import MarkdownIt

from opshift.catalogue.history import history_of
from opshift.catalogue.kernels import (
    OpsetShare,
    RuntimeCell,
    State,
    kernel_types,
    operator_support,
    opset_shares,
    runtime_rows,
)
from opshift.catalogue.views import comparison_groups
from opshift.catalogue.words import METHOD_LABELS, change_subject
from opshift.model.plain_data import json_values
from opshift.model.types import short_type
from opshift.registry.changes.classify import classify
from opshift.registry.record import to_plain_data
from opshift.registry.registry import default_registry
from opshift.registry.requirements import requirements_of
from opshift.registry.runtimes.files import get_runtime, runtime_files

if TYPE_CHECKING:
    from support.site_pages import Page

pytestmark = pytest.mark.full  # the site of all definitions takes seconds to build

REGISTRY = default_registry()
MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
VERSIONS = REGISTRY.get_all_schemas_with_history()


def test_all_pairs_of_versions_are_compared(files: Mapping[str, str]) -> None:
    for operator in REGISTRY.operators():
        for old, new in combinations(operator.versions, 2):
            path = f"operators/{operator.domain}/{operator.name}/{old.since_version}-{new.since_version}"
            changes = json_values({"changes": [each.as_dict() for each in classify(old, new)]})
            assert json.loads(files[f"{path}.json"]).items() >= changes.items()
            groups = comparison_groups(classify(old, new))
            assert files[f"{path}.html"].count('class="badge') == len(groups)
            changed = {
                (line.about, subject) for group in groups for line in group.lines for subject in line.subjects
            }
            assert changed == {
                (change_subject(each.change.kind), each.subject) for each in classify(old, new)
            }


def test_operators_list_the_kernels_of_runtimes(files: Mapping[str, str]) -> None:
    table = files["operators/ai.onnx/Gelu/index.html"].partition('<h2 id="runtimes">')[2].partition("<h2")[0]
    rows = [each for each in table.split("<tr")[2:] if "onnxruntime-1." in each]
    runtime = get_runtime("onnxruntime-1.20.1")
    types = kernel_types(runtime.operators["ai.onnx.Gelu"][0])
    assert any('class="state partial">1/4' in each and f"<p>Types: {types}</p>" in each for each in rows)
    assert all("<p>Source: kernel registry of onnxruntime-1." in each for each in rows)
    assert sum('class="older"' in each for each in rows) == len(rows) - 1
    assert len(rows) < len(runtime_files())  # releases with the same kernels share a row


@pytest.mark.parametrize(
    ("name", "opset", "state"),
    [
        ("Conv", 1, State.PARTIAL),
        ("Gelu", 20, State.PARTIAL),
        ("Not", 1, State.FULL),
        ("Mish", 18, State.BODY),
        ("ImageDecoder", 20, State.MISSING),
        ("Attention", 25, State.NEWER),
    ],
)
def test_cells_show_the_state_of_a_version(name: str, opset: int, state: State) -> None:
    cell = RuntimeCell.of(REGISTRY.get_schema(name, opset), get_runtime("onnxruntime-1.20.1"))
    assert cell.state is state
    assert cell.supported == (state in (State.FULL, State.PARTIAL, State.BODY))
    assert bool(cell.kernels) == (state in (State.FULL, State.PARTIAL))


@pytest.mark.parametrize(
    ("version", "runtime", "accepted"),
    [
        ("ai.onnx.Gelu:20", "onnxruntime-1.20.1", "float"),
        ("ai.onnx.Where:16", "onnxruntime-1.32.0", "bool double float int32 int64 int8 string uint32 uint8"),
        ("ai.onnx.DynamicQuantizeLinear:11", "onnxruntime-1.32.0", "float uint8"),
        (
            "ai.onnx.Shrink:9",  # its kernel accepts bfloat16
            "onnxruntime-1.32.0",
            "double float float16 int16 int32 int64 int8 uint16 uint32 uint64 uint8",
        ),
        ("ai.onnx.Mish:18", "onnxruntime-1.20.1", "double float float16"),  # by its function body
        ("ai.onnx.Upsample:10", "onnxruntime-1.32.0", ""),  # its kernels are for older opsets
    ],
)
def test_types_are_those_that_the_version_accepts(version: str, runtime: str, accepted: str) -> None:
    rows = {str(row.version.id): row for row in operator_support(get_runtime(runtime), REGISTRY)}
    assert rows[version].types == accepted
    for row in rows.values():
        allowed = {short_type(each) for types in row.version.type_constraints.values() for each in types}
        assert {*row.types.split()} <= allowed


def test_share_of_operators_falls_with_newer_opsets() -> None:
    shares = opset_shares(get_runtime("onnxruntime-1.20.1"), "ai.onnx", REGISTRY)
    assert [each.opset for each in shares if each] == list(range(1, 22))
    assert shares[21:] == [None] * (REGISTRY.newest_opset() - 21)
    assert all(each.supported <= each.total and 1 <= each.level <= 5 for each in shares if each)


def test_share_of_an_opset_without_operators_is_complete() -> None:
    assert (OpsetShare(1, 0, 0).percent, OpsetShare(1, 2, 3).percent) == (100, 66)


def test_releases_without_a_version_have_no_kernel_of_it() -> None:
    operator = REGISTRY.operator("Gelu", "ai.onnx")
    assert operator
    rows = runtime_rows(
        operator, {"onnxruntime": [get_runtime("onnxruntime-1.16"), get_runtime("onnxruntime-1.17")]}
    )
    assert [[each.supported for each in row.cells] for row in rows] == [[True], [False]]


def test_every_runtime_has_a_page_and_data(files: Mapping[str, str]) -> None:
    for name in runtime_files():
        runtime = get_runtime(name)
        data = json.loads(files[f"runtimes/{name}.json"])
        assert data == json_values(to_plain_data(runtime))
        page = files[f"runtimes/{name}.html"]
        assert runtime.evidence.date in page
        names = {each.rpartition(".")[2] for each in runtime.operators}
        assert all(
            f">{each}</a>" in page
            for each in names
            if any(map(REGISTRY.operator, [each], REGISTRY.domains()))
        )
        assert f'href="{name}.html"' in files["runtimes/index.html"]


def test_opset_page_lists_changes(files: Mapping[str, str]) -> None:
    text = files["opsets/ai.onnx/13.html"]
    changed = text.partition('id="changed"')[2].partition("<h2")[0]
    assert ">Softmax 13</a>" in changed
    assert ">NegativeLogLikelihoodLoss 13</a>" in changed
    assert "Elu" not in changed


def test_differences_have_the_old_value_first(files: Mapping[str, str]) -> None:
    text = files["operators/ai.onnx/Softmax/13.html"]
    assert "<code>axis</code> default: <del>1</del>" in text
    assert re.search("<del>1</del> .*? <ins>-1</ins>", text)
    assert text.index('id="inputs"') < text.index('id="changes"')


def test_function_bodies_are_drawn_and_listed(files: Mapping[str, str]) -> None:
    text = files["operators/ai.onnx/HardSwish/14.html"].partition('<h2 id="function">')[2]
    for node in ("HardSigmoid", "Mul"):
        assert re.search(rf"<text [^>]*>{node}", text)
        assert f"{node} " in text.partition("<pre")[2] or f"{node}(" in text.partition("<pre")[2]
    assert 'id="function"' not in files["operators/ai.onnx/Conv/11.html"]


def test_conditions_of_a_kernel_are_evidence(files: Mapping[str, str]) -> None:
    text = files["operators/ai.onnx/Resize/index.html"]
    assert "<p>Condition: the attribute <code>mode</code> must" in text
    assert "Condition: the attribute `mode` must" in files["operators/ai.onnx/Resize/index.md"]


def test_copies_have_the_headings_of_the_page(files: Mapping[str, str]) -> None:
    copies = [path for path in files if path.endswith(".md") and not path.startswith("docs/")]
    pages = [path for path in copies if not path.startswith("operators/")]
    for path in [*pages[::20], *copies[::20], "runtimes/index.md", "releases.md", "changes.md"]:
        content = files[f"{path[:-2]}html"].partition("</header>")[2]
        page, copy = (
            [_heading(*each) for each in re.findall("<h([1-3])[^>]*>(.*?)</h", text, re.DOTALL)]
            for text in (content, MARKDOWN.render(files[path]))
        )
        assert copy == page, path


def _heading(level: str, text: str) -> tuple[str, str]:
    return level, " ".join(re.sub("<[^>]*>", "", text).split())


def test_copies_have_the_cells_of_runtimes_and_the_removed_types(files: Mapping[str, str]) -> None:
    rows = (
        files["operators/ai.onnx/Gelu/index.md"]
        .partition("## Runtimes")[2]
        .partition("\n## ")[0]
        .splitlines()
    )
    assert any(
        re.fullmatch(r"\| \[onnxruntime-1.*\| 1/4; Types: T: .*; Source: kernel registry of .* \|", row)
        for row in rows
    )
    assert "~~int8~~" in files["operators/ai.onnx/Erf/13.md"]
    assert "**Types by version: " in files["operators/ai.onnx/Softmax/index.md"]


def test_operators_have_an_example_and_its_conversions(files: Mapping[str, str]) -> None:
    text = files["operators/ai.onnx/Gelu/index.md"]
    assert "Y = Gelu" in text
    assert "* To opsets 9 to 19: 5 nodes exact: 2 x Mul, Div, Erf, Add" in text
    assert "* To opsets 1 to 8: refused" in text
    assert "## Example" not in files["operators/com.microsoft/BeamSearch/index.md"]


@pytest.mark.parametrize(
    ("operator", "node", "computed_by", "expression"),
    [
        ("ai.onnx/Softmax", "output = Softmax (input)", "onnx.reference", "ReferenceEvaluator(model)"),
        (
            "com.microsoft/FusedMatMul",
            "Y = com.microsoft.FusedMatMul &lt;alpha = 0.5, transB = 1&gt; (A, B)",
            "onnxruntime",
            "InferenceSession(",
        ),
        (
            "com.microsoft/GroupNorm",
            "Y = com.microsoft.GroupNorm &lt;activation = 0, groups = 2&gt; (X, gamma, beta)",
            "opshift and onnx.reference",
            "opshift.convert_version(model, 22, without=&#34;com.microsoft&#34;)",
        ),
    ],
)
def test_examples_state_what_computes_them(
    files: Mapping[str, str], operator: str, node: str, computed_by: str, expression: str
) -> None:
    text = (
        files[f"operators/{operator}/index.html"].partition('<h3 id="example">')[2].partition("</details>")[0]
    )
    assert f"<code>{node}</code>" in text
    assert f"<summary>Run it with {computed_by}</summary>" in text
    assert expression in text


def test_bodies_that_depend_on_the_node_are_drawn_for_an_example(files: Mapping[str, str]) -> None:
    text = files["operators/ai.onnx/Attention/index.html"].partition('<h2 id="function">')[2]
    assert "The body depends on the node. For <code>Y = Attention (Q, K, V)</code> with" in text
    for node in ("Transpose", "MatMul", "Softmax"):
        assert re.search(rf"<text [^>]*>{node}", text)


def test_first_page_has_all_operators_by_category(
    files: Mapping[str, str], pages: Mapping[str, Page]
) -> None:
    text = files["index.html"]
    links = [each for each in pages["index.html"].links if each.endswith("/index.html") and "/" in each]
    paths = {f"operators/{each.domain}/{each.name}/index.html" for each in REGISTRY.operators()}
    assert paths <= set(links)
    for title in ("Mathematics", "Neural networks", "Object detection", "com.microsoft"):
        assert f"<h3>{title}</h3>" in text
    assert "Affine" not in text.partition("removed operators</summary>")[0].partition('id="categories"')[
        2
    ].replace("AffineGrid", "")


def test_changes_between_opsets_are_those_of_the_opsets(files: Mapping[str, str]) -> None:
    rows = re.findall(r'<tr data-row data-opset="(\d+)" data-effect="([\w-]+)">', files["changes.html"])
    for opset in range(2, REGISTRY.newest_opset() + 1):
        data = json.loads(files[f"opsets/ai.onnx/{opset}.json"])
        effects = [effect for number, effect in rows if int(number) == opset]
        assert effects.count("new") == len(data["new"])
        assert effects.count("removed") == len(data["removed"])
        assert len(effects) == sum(len(data[each]) for each in ("new", "changed", "removed"))


def test_copies_have_the_history_of_the_registry(files: Mapping[str, str]) -> None:
    for operator in REGISTRY.operators():
        for entry in history_of(operator):
            version = entry.version
            path = f"operators/{version.domain}/{version.name}/{version.since_version}"
            assert json.loads(files[f"{path}.json"])["history"] == json_values(entry.as_dict())
            text = files[f"{path}.md"].partition("## Conversions")[2]
            for step in filter(None, (entry.up, entry.down, entry.arriving, entry.leaving)):
                assert f"* {METHOD_LABELS[step.how]} version" in text, path


def test_first_versions_are_converted_to_other_domains(files: Mapping[str, str]) -> None:
    for suffix in ("html", "md"):
        path = f"operators/com.microsoft/Gelu/1.{suffix}"
        assert "to operators of other domains" in files[path]
    assert not any("at opset 0" in text for path, text in files.items() if path.startswith("operators/"))


def test_shape_rules_are_described(files: Mapping[str, str]) -> None:
    for version in VERSIONS:
        path = f"operators/{version.domain}/{version.name}/{version.since_version}.md"
        assert "The rule `" not in files[path], path
    assert "The output has the shape of the first input." in files["operators/ai.onnx/Relu/14.md"]


def test_requirements_are_listed(files: Mapping[str, str]) -> None:
    for version in VERSIONS:
        page = html.unescape(files[f"operators/{version.domain}/{version.name}/{version.since_version}.html"])
        assert all(f"<li><code>{each.text}</code></li>" in page for each in requirements_of(version))
        assert ("Requirements for ranks" in page) is bool(requirements_of(version))
