"""Pages in Markdown, and the same pages in HTML."""

import html
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from string import Template
from typing import Final

from opshift.analysis.pages.diagram import ARROW
from opshift.analysis.pages.markdown import anchor, plain_text
from opshift.registry.changes.classes import ChangeClass
from opshift.runtimes.verdicts import DOES_NOT_RUN, MAY_RUN

STYLE: Final = Path(__file__).parent / "style.css"

MARKS: Final[Mapping[str, str]] = {
    **{each: each for each in (*ChangeClass, "error", "warning", "refused")},
    "+": "added",
    "-": "removed",
    "~": "changed",
    MAY_RUN: "warning",
    DOES_NOT_RUN: "refused",
}
"""Classes of cells in tables by their text, which `STYLE` colours."""

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
"""Page that loads nothing: the policy forbids requests."""


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
                # No other block names a language, so untrusted texts cannot be mistaken for it.
                token.type, token.content = "html_block", next(drawings)
        return with_scrolling_parts(str(renderer.renderer.render(tokens, renderer.options, {})))


def with_scrolling_parts(text: str) -> str:
    """Return HTML in which wide tables and code scroll by themselves, also with the keyboard."""
    text = text.replace("<pre>", '<pre tabindex="0">')
    text = text.replace("<table>", '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>')
    return text.replace("</table>", "</table></div>")
