"""Contents of the review page."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from support.proposals import proposal, set_answers, worked_example

from opshift.proposals.page import review_page, to_html
from opshift.registry.registry import default_registry


@cache
def _page(name: str) -> str:
    return review_page(worked_example(name, Path(mkdtemp()) / name), default_registry())


@pytest.mark.parametrize(
    ("name", "excerpt"),
    [
        pytest.param("squareplus", "Y = (X + sqrt(X * X + b)) / 2", id="formula"),
        pytest.param(
            "squareplus", "| attribute | `b` | FLOAT | optional | `4.0` | The square", id="signature"
        ),
        pytest.param("squareplus", "| type | `T` |  |  |  | The floating-point type", id="text of a type"),
        pytest.param("squareplus", "width = Constant <value_float=@b>()", id="body"),
        pytest.param("squareplus", "float32[] `2.0`", id="output"),
        pytest.param("squareplus", "| function body | 24 | 0 | 0 | 0 |", id="evidence"),
        pytest.param("squareplus", "| corner | nan | 1 | not finite |", id="covered corner"),
        pytest.param("global_max_pool", "| corner | scalar | **none** |", id="uncovered corner"),
        pytest.param("global_max_pool", "* replaced by ReduceMax", id="replacement"),
        pytest.param("elu_alpha", "* input added: alpha: nothing -> optional (", id="differences"),
        pytest.param("elu_alpha", "0 of 2 sign-offs, for content", id="sign-offs"),
    ],
)
def test_page_shows(name: str, excerpt: str) -> None:
    assert excerpt in _page(name)


def test_html_has_tables_and_escapes_markup(tmp_path: Path) -> None:
    path = proposal(
        "function", tmp_path / "sq", set_answers(motivation="<script>alert(1)</script>", title="A <b> title")
    )
    page = to_html(review_page(path, default_registry()))
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
    html = to_html(page)
    assert all(line.isprintable() for line in page.split("\n"))
    assert html.count("Sign-offs</h2>") == 1
    assert "href" not in html
    assert "<i>" not in html
