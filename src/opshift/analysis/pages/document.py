"""Pages in Markdown, and the same pages in HTML.

Texts are untrusted. Credentials in URLs are hidden first, because escapes would look like parts of a
credential; then markup and control characters are escaped. Source: CommonMark 0.31, sections 2.4 (backslash
escapes), 4 (leaf blocks) and 6.1 (code spans).
"""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from string import Template
from typing import Final
from urllib.parse import quote

from opshift.analysis.pages.diagram import ARROW
from opshift.model.locations import without_secrets
from opshift.registry.changes.classes import ChangeClass
from opshift.runtimes.verdicts import DOES_NOT_RUN, MAY_RUN

CODE_OR_MARKUP = re.compile(r"(`[^`\n]+`)|(?<![^\W_])_|_(?![^\W_])|[\\`*{}\[\]<#|~&$@]")
"""A code span, which contains no markup, or a character that begins markup; $ and @ are markup on GitHub."""

ESCAPE_OR_CODE = re.compile(r"\\.|(`+).+?(?<!`)\1(?!`)")
"""An escaped character, or a code span in text whose other backticks are escaped."""

BLOCK_START = re.compile(r"^([-+=>]|[0-9]+[.)])", re.MULTILINE)
"""Start of a list, a quotation, a rule or an underlined heading."""


MAX_ROWS = 100
"""Maximum number of rows in a table of `limited_table`."""

URL_CHARACTERS = ":/?#[]@!$&'()*+,;=%-._~"
"""Characters of addresses in RFC 3986; all others are percent-encoded."""


def escape_text(text: str) -> str:
    """Escape plain text as Markdown paragraphs; code between backticks on one line remains code."""
    lines = (line.strip() for line in _visible_text(text).splitlines())
    escaped = CODE_OR_MARKUP.sub(_escape_token, "\n".join(lines).strip())
    return BLOCK_START.sub(lambda match: f"{match[1][:-1]}\\{match[1][-1]}", escaped)


def escape_line(value: object) -> str:
    """Return a value as escaped text on one line, for headings, list items and table cells."""
    return escape_text(" ".join(str(value).split()))


def code_span(value: object) -> str:
    """Return a value as code on one line."""
    text = " ".join(_visible_text(str(value)).split())
    if not text:
        return ""
    fence = _fence_for(text, 1)
    padding = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{padding}{text}{padding}{fence}"


def code_block(text: str) -> str:
    """Return lines of text as a code block."""
    fence = _fence_for(text, 3)
    return f"{fence}\n{_visible_text(text).strip()}\n{fence}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table of cells that are already escaped; an empty text without rows."""
    lines = [heads, ["---"] * len(heads), *rows]
    return (
        "\n".join(f"| {' | '.join(map(_escape_cell, cells))} |" for cells in lines) if len(lines) > 2 else ""
    )


def _escape_cell(text: str) -> str:
    """Escape the pipes in the code of a table cell; pipes in other text are already escaped."""
    if "|" not in text:
        return text
    return ESCAPE_OR_CODE.sub(lambda match: match[0].replace("|", "\\|") if match[1] else match[0], text)


def limited_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table with at most MAX_ROWS rows, and a note about further rows (empty if there are none)."""
    more = len(rows) - MAX_ROWS
    return [table(heads, rows[:MAX_ROWS]), f"Rows that are not shown: {more:,}." if more > 0 else ""]


def web_link(url: str) -> str:
    """Return a link to an address on the web; any other text is escaped."""
    if not re.fullmatch(r"https?://[^\s/]\S*", url):
        return escape_line(url)
    return f"[{escape_line(url)}](<{quote(url, safe=URL_CHARACTERS)}>)"


def anchor(title: str) -> str:
    """Return the name by which GitHub links to a heading of letters and spaces."""
    return title.lower().replace(" ", "-")


def plain_text(escaped: str) -> str:
    """Remove the backslash escapes from a text."""
    return re.sub(r"\\([^\w\s])", r"\1", escaped)


def _visible_text(text: str) -> str:
    return printable(without_secrets(text))


def _escape_token(match: re.Match[str]) -> str:
    return match[1] or f"\\{match[0]}"


def _fence_for(text: str, least: int) -> str:
    runs = re.findall("`+", text)
    return "`" * max([least, *(len(run) + 1 for run in runs)])


def printable(text: str) -> str:
    """Escape nonprintable characters; tabs become spaces, and line separators newlines."""
    if text.isprintable():  # Most texts are printable: this saves a slower pass in Python.
        return text
    lines = (line.replace("\t", " ") for line in text.splitlines())
    return "\n".join(line if line.isprintable() else "".join(map(_escaped_character, line)) for line in lines)


def _escaped_character(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


STYLE: Final = Path(__file__).parent / "style.css"

MARKS: Final[Mapping[str, str]] = {
    **{each: each for each in (*ChangeClass, "error", "warning", "refused")},
    "+": "added",
    "-": "removed",
    "~": "changed",
    MAY_RUN: "warning",
    DOES_NOT_RUN: "refused",
}
"""CSS classes of table cells by the text of the cell; `STYLE` colours them."""

HTML_PAGE: Final = Template("""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>$title</title>
<style>
$style</style>
</head>
<body>
$arrow
<main class="page">
$body</main>
</body>
</html>
""")
"""HTML page that loads nothing: its content security policy forbids requests."""


@dataclass(frozen=True)
class Document:
    """Page in Markdown, and a drawing for each of its Mermaid diagrams, in order."""

    markdown: str
    drawings: tuple[str, ...] = ()

    def html(self) -> str:
        """Return the page as a complete HTML document. HTML in the Markdown is escaped."""
        return HTML_PAGE.substitute(
            title=html.escape(self.title), style=STYLE.read_text("utf-8"), arrow=ARROW, body=self.body()
        )

    @property
    def title(self) -> str:
        """The first heading."""
        return plain_text(self.markdown.partition("\n")[0].lstrip("# "))

    def body(self) -> str:
        """Return the content of the HTML document."""
        from markdown_it import MarkdownIt

        # Texts of models and proposals are untrusted: with html disabled, tags in them are escaped.
        renderer = MarkdownIt("commonmark", {"html": False}).enable("table")
        tokens = renderer.parse(self.markdown)
        drawings = iter(self.drawings)
        for token, following in pairwise(tokens):
            if token.type == "heading_open" and token.tag == "h2":
                token.attrSet("id", anchor(following.content))
        for opening, token in pairwise(tokens):
            if opening.type == "td_open" and token.content in MARKS:
                opening.attrSet("class", f"mark {MARKS[token.content]}")
            if token.type == "fence" and token.info == "mermaid":
                # No other code block has a language, so untrusted text cannot be mistaken for a diagram.
                token.type, token.content = "html_block", next(drawings)
        return with_scrolling_parts(str(renderer.renderer.render(tokens, renderer.options, {})))


def with_scrolling_parts(text: str) -> str:
    """Return HTML in which wide tables and code scroll by themselves, also with the keyboard."""
    text = text.replace("<pre>", '<pre tabindex="0">')
    text = text.replace("<table>", '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>')
    return text.replace("</table>", "</table></div>")
