"""Copies of pages in Markdown."""

from html.parser import HTMLParser
from typing import Final

from opshift.analysis.pages.document import code_block, code_span, escape_line, table

SKIPPED: Final = frozenset({"footer", "nav", "svg", "figure", "form", "summary"})
"""Elements without a copy: they navigate, or draw what the page also states as text."""

VOID: Final = frozenset({"meta", "link", "input", "br"})
"""Elements without an end."""

PREFIXES: Final = {"h1": "# ", "h2": "## ", "h3": "### ", "p": "", "li": "* ", "dt": "* ", "dd": ": "}


class _MarkdownWriter(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[str] = []
        self._skipped = 0
        self._text = ""
        self._code = ""
        """The element that contains code: `code` or `pre`."""
        self._links: list[tuple[int, str]] = []
        """Start of the text of each open link, and its target."""
        self._rows: list[list[str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            self._text += " "
        elif self._skipped or tag in SKIPPED:
            self._skipped += 1
        elif tag == "a":
            self._links.append((len(self._text), dict(attrs)["href"] or ""))
        elif tag in ("pre", "code"):
            self._code = self._code or tag
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("div", "small"):
            self._text += " "

    def handle_endtag(self, tag: str) -> None:
        if self._skipped:
            self._skipped -= 1
        elif tag == "a":
            start, target = self._links.pop()
            copy = target if "://" in target else target.replace(".html", ".md")
            self._text = f"{self._text[:start]}[{self._text[start:].strip()}]({copy})"
        elif tag == self._code:
            self._code = ""
            if tag == "pre":
                self.blocks.append(code_block(self._take()))
        elif tag in ("td", "th"):
            self._rows[-1].append(" ".join(self._take().split()))
        elif tag == "table":
            heads, *rows = self._rows
            self.blocks.append(table(heads, rows))
            self._rows = []
        elif tag in PREFIXES:
            self._finish_block(PREFIXES[tag])

    def handle_data(self, data: str) -> None:
        if self._skipped:
            return
        if self._code == "pre":
            self._text += data
        elif self._code:
            self._text += code_span(data)
        else:
            before, after = (" " if each.isspace() else "" for each in (data[0], data[-1]))
            self._text += f"{before}{escape_line(data)}{after}"

    def _take(self) -> str:
        text, self._text = self._text, ""
        return text

    def _finish_block(self, prefix: str) -> None:
        text = f"{prefix}{' '.join(self._take().split())}"
        if self.blocks and prefix == ": ":
            self.blocks[-1] += text
        elif self.blocks and prefix == "* " and self.blocks[-1].startswith(prefix):
            self.blocks[-1] += f"\n{text}"
        else:
            self.blocks.append(text)


def markdown_copy(page: str) -> str:
    """Return the content of a page in Markdown; links lead to the copies of other pages."""
    writer = _MarkdownWriter()
    writer.feed(page.partition("</header>")[2])
    writer.close()
    return "\n\n".join(filter(None, writer.blocks)) + "\n"
