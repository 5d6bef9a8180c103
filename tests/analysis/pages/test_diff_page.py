"""Page about the differences between two models."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from onnx import ModelProto, TensorProto, helper

from opshift import UsageError, diff_model, write_report
from opshift.analysis.pages.diff_page import MAX_DRAWN_NODES, MAX_DRAWN_REGIONS, MAX_VALUES, diff_page
from opshift.analysis.pages.document import MAX_ROWS, STYLE

HOSTILE = "</text><script>alert(1)</script>|`](javascript:x)\x1b[31m\n```mermaid"


def chain(operators: list[str], prefix: str = "") -> ModelProto:
    """Return a model with one node after the other."""
    nodes = [
        helper.make_node(each, [f"{prefix}{index}"], [f"{prefix}{index + 1}"], name=f"{prefix}node{index}")
        for index, each in enumerate(operators)
    ]
    names = (f"{prefix}0", f"{prefix}{len(operators)}")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in names]
    return helper.make_model(helper.make_graph(nodes, prefix or "g", values[:1], values[1:]))


class Elements(HTMLParser):
    """Elements of a page: their tags and attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_draws_both_graphs_around_each_change() -> None:
    diff = diff_model(chain(["Relu", "Abs", "Relu"]), chain(["Relu", "Neg", "Relu"]))
    page = diff_page(diff, "old -> new")
    before, after = page.drawings
    assert re.findall(r'class="([a-z]*)".*?<text[^>]*>([^<]*)', before) == [
        ("node", "Relu node0"), ("removed", "- Abs node1"), ("node", "Relu node2"),
    ]  # fmt: skip
    assert re.findall(r'class="([a-z]*)".*?<text[^>]*>([^<]*)', after) == [
        ("node", "Relu node0"), ("added", "+ Neg node1"), ("node", "Relu node2"),
    ]  # fmt: skip
    assert (page.markdown.count("```mermaid"), page.html().count("<figure")) == (2, 2)
    assert "### Abs -> Neg" in page.markdown


def test_page_loads_nothing_and_runs_no_script() -> None:
    old = chain(["Relu", "Abs", "Relu"])
    new = chain(["Relu", HOSTILE, "Relu"])
    new.graph.node[1].name = HOSTILE
    new.graph.node[1].attribute.append(helper.make_attribute(HOSTILE, HOSTILE))
    new.producer_name = HOSTILE
    for model in (old, new):
        model.graph.node[0].output[0] = model.graph.node[1].input[0] = HOSTILE
    page = diff_page(diff_model(old, new), HOSTILE)
    elements = Elements(page.html()).found
    assert all(line.isprintable() for line in page.markdown.split("\n"))
    assert {tag for tag, _ in elements} & {"script", "link", "img", "iframe", "object", "a", "base"} == set()
    attributes = {name for _, found in elements for name in found}
    assert {name for name in attributes if name.startswith("on") or name in ("src", "href")} == set()
    policy = [found for tag, found in elements if tag == "meta" and "http-equiv" in found]
    assert [each["content"] for each in policy] == ["default-src 'none'; style-src 'unsafe-inline'"]
    assert page.html().count("<figure") == len(page.drawings) == 2


def test_page_fits_screens_and_keyboards() -> None:
    page = diff_page(diff_model(chain(["Abs"]), chain(["Neg"]))).html()
    assert 'name="viewport" content="width=device-width' in page
    assert "prefers-color-scheme: dark" in page
    scrolling = [
        found for tag, found in Elements(page).found if tag == "figure" or found.get("class") == "scroll"
    ]
    assert all(each["tabindex"] == "0" for each in scrolling)


def test_pages_share_the_design_of_the_site() -> None:
    page = diff_page(diff_model(chain(["Abs"]), chain(["Neg"]))).html()
    assert STYLE.read_text("utf-8") in page
    assert re.findall('<td class="mark (.*?)">(.)</td>', page) == [("added", "+"), ("removed", "-")]


def test_changes_that_differ_in_names_are_drawn_once() -> None:
    diff = diff_model(chain(["Abs", "Relu"] * 5), chain(["Neg", "Relu"] * 5))
    page = diff_page(diff)
    assert len(page.drawings) == 2
    assert "Neg, 5 times" in page.markdown
    assert "The same at `node2`, `node4`, `node6`, `node8`." in page.markdown


def test_page_of_large_difference_is_limited() -> None:
    count = MAX_DRAWN_REGIONS + 5
    old = chain([each for index in range(count) for each in (f"Old{index}", "Relu")])
    new = chain([each for index in range(count) for each in (f"New{index}", "Relu")])
    page = diff_page(diff_model(old, new))
    assert len(page.drawings) == 2 * MAX_DRAWN_REGIONS
    assert "Kinds of changes that are not drawn: 5." in page.markdown
    page = diff_page(diff_model(chain(["Abs"] * 500), chain(["Neg"] * 500)))
    assert f"Before (the first {MAX_DRAWN_NODES} of 500 nodes)" in page.markdown
    assert f"Rows that are not shown: {1000 - MAX_ROWS}." in page.markdown
    assert [each.count("<rect") < 3 * MAX_DRAWN_NODES for each in page.drawings] == [True, True]


def test_drawn_values_of_a_node_are_limited() -> None:
    outputs = [f"y{index}" for index in range(1_000)]
    models = []
    for axis in (0, 1):
        node = helper.make_node("Split", ["x"], outputs, axis=axis)
        models.append(helper.make_model(helper.make_graph([node], "g", [], [])))
    page = diff_page(diff_model(*models))
    assert all(each.count("<text") <= 2 * MAX_VALUES + 1 for each in page.drawings)


def test_lists_renamed_nodes() -> None:
    page = diff_page(diff_model(chain(["Abs", "Relu"]), chain(["Abs", "Relu"], "new")))
    assert "| graph | `Abs node0` | `Abs newnode0` |" in page.markdown
    assert page.drawings == ()


@pytest.mark.parametrize("suffix", [".html", ".md", ".json"])
def test_suffix_selects_format(suffix: str, tmp_path: Path) -> None:
    diff = diff_model(chain(["Abs"]), chain(["Neg"]))
    path = tmp_path / f"report{suffix}"
    write_report(diff, path, title="A title")
    text = path.read_text()
    if suffix == ".json":
        assert json.loads(text) == json.loads(json.dumps(diff.as_dict()))
    else:
        assert text.startswith("<!doctype html>" if suffix == ".html" else "# A title")


def test_refuses_other_suffix(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unsupported suffix .*\.html, \.md or \.json"):
        write_report(diff_model(chain([]), chain([])), tmp_path / "report.pdf")
