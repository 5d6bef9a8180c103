"""Texts of proposals on review pages: neither markup nor control characters have an effect."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from opshift.analysis.pages.document import code_block, code_span, escape_line, escape_text, plain_text, table

HOSTILE = {
    "tag": "<script>alert(1)</script>",
    "comment": "<!-- hidden -->",
    "heading": "# Sign-offs\n2 of 2",
    "underlined heading": "Sign-offs\n=====\n\nSign-offs\n-----",
    "link": "[click](javascript:alert(1))",
    "image": "![x](https://example.com/x.png)",
    "reference": "[a]: https://example.com 'b'\n\n[a]",
    "automatic link": "<https://example.com>",
    "list": "* a\n- b\n+ c\n1. d\n2) e",
    "quotation": "> quoted",
    "rule": "***\n\n---\n\n___",
    "emphasis": "*a* **b** _c_ __d__ ~~e~~",
    "table": "| a |\n|---|\n| b |",
    "code block": "```\ncode\n```\n\n    indented",
    "fence of tildes": "~~~\ncode\n~~~",
    "entity": "&lt;b&gt; &#60;",
    "open code": "``a` <b> `",
    "escapes": "\\<b\\> \\`a`",
    "control characters": "a\x1b[31mred\x07\x00\x9b b\u202ec",
}

RENDER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render


def _visible(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_text_has_no_markup(text: str) -> None:
    for escaped in (escape_text(text), escape_line(text)):
        tokens = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(escaped)
        kinds = {each.type for each in tokens}
        kinds |= {child.type for each in tokens for child in each.children or ()}
        allowed = {"paragraph_open", "paragraph_close", "inline", "text", "text_special", "softbreak"}
        assert kinds <= allowed | {"code_inline"}
        assert all(each.isprintable() or each == "\n" for each in escaped)


@pytest.mark.parametrize(
    "name", [name for name in HOSTILE if name not in ("control characters", "code block")]
)
def test_text_is_shown_as_written(name: str) -> None:
    text = HOSTILE[name]
    tokens = MarkdownIt("commonmark").parse(escape_text(text))
    shown = "".join(child.content for each in tokens for child in each.children or ())
    assert _visible(shown).replace("`", "") == _visible(text).replace("`", "")


CREDENTIALS = {
    "user and password": ("http://bob:sekret@h/m", "http://***@h/m"),
    "password of markup": ("http://bob:*_`sekret@h/m", "http://***@h/m"),
    "two signatures": ("https://h/m?sig=sekret&token=sekret", "https://h/m?sig=***&token=***"),
}


@pytest.mark.parametrize(("text", "shown"), CREDENTIALS.values(), ids=CREDENTIALS)
def test_credentials_are_hidden(text: str, shown: str) -> None:
    for escaped in (escape_text(text), escape_line(text), code_span(text)):
        (inline,) = (each for each in MarkdownIt("commonmark").parse(escaped) if each.children)
        assert "".join(each.content for each in inline.children or ()) == shown
    assert code_block(text) == f"```\n{shown}\n```"


@pytest.mark.parametrize("text", [*HOSTILE.values(), "a|b", "`", "``a``b`"])
def test_code_is_shown_as_code(text: str) -> None:
    (span,) = (child for each in MarkdownIt().parse(code_span(text)) for child in each.children or ())
    (block,) = MarkdownIt().parse(code_block(text))
    assert (span.type, block.type) == ("code_inline", "fence")
    assert block.content.strip().count("\n") == len(text.strip().splitlines()) - 1


@pytest.mark.parametrize("in_table", [False, True], ids=["text", "table"])
@pytest.mark.parametrize(
    ("markdown", "code"),
    [
        (code_span("a|b"), "a|b"),
        (code_span("|a||b|"), "|a||b|"),
        (code_span(r"a\|b\\|c"), r"a\|b\\|c"),
        (code_span("`|``|"), "`|``|"),
        (escape_line(r"| \| `a|b` \` |"), "a|b"),
    ],
)
def test_pipes_in_code_are_shown_as_written(markdown: str, code: str, in_table: bool) -> None:
    page = table(("a", "b"), [(markdown, "1")]) if in_table else markdown
    tokens = MarkdownIt().enable("table").parse(page)
    spans = [child for each in tokens for child in each.children or () if child.type == "code_inline"]
    assert [each.content for each in spans] == [code]
    assert sum(each.type == "td_open" for each in tokens) == (2 if in_table else 0)


@pytest.mark.parametrize("text", [*HOSTILE.values(), "`a|b`"])
def test_cells_do_not_break_table(text: str) -> None:
    page = RENDER(table(("a", "b"), [(escape_line(text), code_span(text)), ("1", "2")]))
    assert page.count("<tr>") == 3
    assert page.count("<td>") == 4


def test_plain_text_removes_escapes() -> None:
    assert plain_text(escape_line("A <b> `c` #1")) == "A <b> `c` #1"
