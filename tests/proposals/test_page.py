"""Contents of the review page."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import pytest
from support.proposals import proposal, replace_text, set_answers, worked_example

from opshift.analysis.pages.diagram import MAX_NODES
from opshift.analysis.pages.document import Document, web_link
from opshift.proposals.page import review_page
from opshift.registry.registry import default_registry


@cache
def _page(name: str) -> Document:
    with TemporaryDirectory() as folder:
        return review_page(worked_example(name, Path(folder) / name), default_registry())


@pytest.mark.parametrize(
    ("name", "excerpt"),
    [
        pytest.param("squareplus", "Y = (X + sqrt(X * X + b)) / 2", id="formula"),
        pytest.param(
            "squareplus",
            "| attribute | `b` | FLOAT | optional | `4.0` | at least 0 | The square",
            id="signature",
        ),
        pytest.param("squareplus", "| type | `T` |  |  |  |  | The floating-point type", id="text of a type"),
        pytest.param("squareplus", "width = Constant <value_float=@b>()", id="body"),
        pytest.param("squareplus", "float32[] `2.0`", id="output"),
        pytest.param("squareplus", "`[[0.302776, 0.618034, 1.0], [1.61803, 3.30278, 100.01]]`", id="rounded"),
        pytest.param("squareplus", "* [Sign-offs](#sign-offs)\n\n## Motivation", id="contents"),
        pytest.param("squareplus", "[https://arxiv.org/abs/2112.11687](<https://arxiv.org", id="link"),
        pytest.param("squareplus", 'n1["Constant value_float=#64;b"]\n', id="diagram"),
        pytest.param("squareplus", "| function body | 24 | 0 | 0 | 0 |", id="evidence"),
        pytest.param("squareplus", "| corner | nan | 1 | not finite |", id="covered corner"),
        pytest.param("global_max_pool", "| corner | scalar | **none** |", id="uncovered corner"),
        pytest.param("global_max_pool", "* replaced by ReduceMax", id="replacement"),
        pytest.param(
            "elu_alpha", "| re-encodes | input added: alpha: nothing -> optional |", id="differences"
        ),
        pytest.param("elu_alpha", "0 of 2 sign-offs, for content", id="sign-offs"),
    ],
)
def test_page_shows(name: str, excerpt: str) -> None:
    assert excerpt in _page(name).markdown


def test_html_has_tables_and_escapes_markup(tmp_path: Path) -> None:
    path = proposal(
        "function", tmp_path / "sq", set_answers(motivation="<script>alert(1)</script>", title="A <b> title")
    )
    page = review_page(path, default_registry()).html()
    assert "<table>" in page
    assert "<script>" not in page
    assert "<title>ai.onnx.Squareplus: A &lt;b&gt; title</title>" in page


def test_page_shows_texts_without_effect(tmp_path: Path) -> None:
    hostile = "## Sign-offs\n\n2 of 2\x1b[2J [x](javascript:alert(1))"
    answers = dict.fromkeys(("motivation", "primitive_reason", "alternatives", "mapping", "formula"), hostile)
    edit = set_answers(
        **answers,
        title="A\x1b[31m <b> # title",
        author={"name": "Ada\n## Sign-offs", "email": "ada@example.com"},
        frameworks=[{"name": "a|b", "function": "`f`|`g`", "differs": "<i>", "link": "[x](y)"}],
    )
    page = review_page(proposal("function", tmp_path / "sq", edit), default_registry())
    html = page.html()
    assert all(line.isprintable() for line in page.markdown.split("\n"))
    assert html.count("Sign-offs</h2>") == 1
    links = re.findall('href="([^"]*)"', html)
    assert all(each.startswith(("#", "https://arxiv.org/", "https://github.com/")) for each in links)
    assert "<i>" not in html


def test_html_has_working_anchors_and_one_drawing() -> None:
    page = _page("squareplus").html()
    for name in re.findall('href="#([^"]*)"', page):
        assert page.count(f'<h2 id="{name}">') == 1
    assert page.count("<figure") == 1
    drawing = ElementTree.fromstring(page[page.index("<figure") : page.index("</figure>") + len("</figure>")])
    texts = [each.text for each in drawing.iter() if each.tag.endswith("}text")]
    assert sorted(map(str, texts))[:3] == ["Add", "Add", "CastLike"]
    assert "mermaid" not in page


def test_draws_no_body_that_is_too_large(tmp_path: Path) -> None:
    node = "    - {op_type: Identity, inputs: [X], outputs: [unused%d]}\n"
    nodes = "".join(node % each for each in range(MAX_NODES + 1))
    path = proposal(
        "function", tmp_path / "sq", replace_text("operator.yaml", "    nodes:\n", f"    nodes:\n{nodes}")
    )
    page = review_page(path, default_registry())
    assert f"unused{MAX_NODES} = Identity" in page.markdown
    assert page.drawings == ("",)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://a.example/b_c?d=(e)", "[https://a.example/b_c?d=(e)](<https://a.example/b_c?d=(e)>)"),
        ("https://a.example/|>\x1b", "](<https://a.example/%7C%3E%1B>)"),
        ("javascript:alert(1)", "javascript:alert(1)"),
        ("https://a.example/b c", "https://a.example/b c"),
    ],
)
def test_links_only_addresses_on_the_web(address: str, shown: str) -> None:
    assert shown in web_link(address)
