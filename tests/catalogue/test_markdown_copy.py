"""Copies of pages in Markdown have all content of the pages."""

from __future__ import annotations

import pytest

from opshift.catalogue.rendering import markdown_copy

CELL = "<table><tr><th>a</th><th>b</th></tr><tr><td>{}</td><td>2</td></tr></table>"

COPIES = {
    "code in a description": (
        "<dl><dt><code>x</code></dt><dd><pre>[1]</pre></dd>"
        "<dt>y <small>result</small></dt><dd><pre>[2]</pre></dd></dl><h3>Next</h3>",
        "* `x`\n\n```\n[1]\n```\n\n* y result\n\n```\n[2]\n```\n\n### Next\n",
    ),
    "text in a description": (
        "<dl><dt><code>x</code></dt><dd>One.</dd>\n<dt>y</dt><dd>Two.</dd></dl>",
        "* `x`: One.\n* y: Two.\n",
    ),
    "empty elements": ("<h2> </h2><p></p><ul><li></li></ul><dl><dt>x</dt><dd></dd></dl>", "* x\n"),
    "paragraphs in a cell": (
        CELL.format("yes<div>\n<p>Types: T</p><p>Source: <code>s</code></p>\n</div>"),
        "| a | b |\n| --- | --- |\n| yes; Types: T; Source: `s` | 2 |\n",
    ),
    "lines in a cell": (
        CELL.format("<div><b>1</b> float</div><div><b>2</b> all types</div>"),
        "| a | b |\n| --- | --- |\n| 1 float; 2 all types | 2 |\n",
    ),
    "pipes in a cell": (
        CELL.format("<code>a|b</code> | c"),
        "| a | b |\n| --- | --- |\n| `a\\|b` \\| c | 2 |\n",
    ),
    "pipes in text": ("<p><code>a|b</code> | c</p>", "`a|b` \\| c\n"),
    "removed text": (
        "<ul><li><code>T</code>: <ins>int8</ins> <del>bool</del></li></ul>",
        "* `T`: int8 ~~bool~~\n",
    ),
    "summaries": (
        "<ul><li>a</li></ul><details><summary>More: <b>2</b></summary>\n<ul><li>b</li></ul></details>",
        "* a\n\n**More: 2**\n\n* b\n",
    ),
}


@pytest.mark.parametrize(("page", "copy"), COPIES.values(), ids=COPIES)
def test_copies_have_the_content_of_the_page(page: str, copy: str) -> None:
    assert markdown_copy(f"<header></header>{page}") == copy
