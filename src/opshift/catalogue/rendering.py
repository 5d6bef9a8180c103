"""Render the templates of pages, and convert pages to Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

from opshift.analysis.pages.diagram import ARROW
from opshift.analysis.pages.document import code_block, code_span, escape_line, printable, table
from opshift.catalogue import paths
from opshift.catalogue.kernels import kernel_types
from opshift.catalogue.words import CHANGE_LABELS, METHOD_LABELS
from opshift.model.errors import UsageError
from opshift.model.plain_data import json_values
from opshift.registry.runtimes.runtime import versions_text

SKIPPED: Final = frozenset({"footer", "nav", "svg", "figure", "form"})
"""Elements that Markdown copies omit: navigation, and drawings of facts that the page also states."""

VOID: Final = frozenset({"meta", "link", "input", "br"})
"""Elements of the templates without an end tag."""

PREFIXES: Final = {
    "h1": "# ",
    "h2": "## ",
    "h3": "### ",
    "p": "",
    "summary": "",
    "li": "* ",
    "dt": "* ",
    "dd": ": ",
}
"""Start of the Markdown block of each element."""

CONTINUATIONS: Final = {"* ": "\n* ", ": ": ": "}
"""Start of the text of an element that continues the block of a list, by the prefix of the element."""

MARKS: Final = {"del": "~~", "summary": "**"}
"""Markdown marks before and after the text of inline elements."""

PART: Final = "\n"
"""Separator of the parts of a table cell, whose texts have no line breaks."""


class _MarkdownWriter(HTMLParser):
    """Parser of rendered HTML that collects its blocks as Markdown."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[str] = []
        self._skipped = 0
        self._text = ""
        self._code = ""
        """Name of the open element, `code` or `pre`; empty outside of code."""
        self._links: list[tuple[int, str]] = []
        """For each open link, the position in `_text` where its text starts, and its target."""
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
        elif tag in ("p", "div") and self._rows:
            self._text += PART
        elif tag in ("div", "small"):
            self._text += " "
        elif tag in MARKS:
            self._text += MARKS[tag]

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
                self.blocks.append(code_block(self._take_text()))
        elif tag in ("td", "th"):
            parts = (" ".join(each.split()) for each in self._take_text().split(PART))
            self._rows[-1].append("; ".join(filter(None, parts)))
        elif tag == "table":
            heads, *rows = self._rows
            self.blocks.append(table(heads, rows))
            self._rows = []
        elif tag in MARKS:
            self._text += MARKS[tag]
        if tag in PREFIXES and not self._rows:
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

    def _take_text(self) -> str:
        text, self._text = self._text, ""
        return text

    def _finish_block(self, prefix: str) -> None:
        text = " ".join(self._take_text().split())
        if not text:
            return
        if prefix in CONTINUATIONS and self.blocks and self.blocks[-1].startswith("* "):
            self.blocks[-1] += CONTINUATIONS[prefix] + text
        else:
            self.blocks.append(prefix + text)


def markdown_copy(page: str) -> str:
    """Return the content of an HTML page in Markdown, with links to the Markdown copies of other pages."""
    writer = _MarkdownWriter()
    writer.feed(page.partition("</header>")[2])
    writer.close()
    return "\n\n".join(filter(None, writer.blocks)) + "\n"


TEMPLATES: Final = Path(__file__).parent / "templates"

Links = tuple[tuple[str, str], ...]
"""Names of pages with their paths."""

Pages = Iterator[tuple[str, str]]
"""Paths of files with their contents."""


def _sections(converter: bool) -> Iterator[tuple[str, str, str]]:
    """Yield name, main page and path prefix of each section of the site."""
    yield "Operators", f"{paths.HOME}#operators", "operators/"
    yield "Opsets", paths.OPSETS, "opsets"
    yield "Runtimes", paths.RUNTIMES, "runtimes/"
    yield "Releases", paths.RELEASES, paths.RELEASES
    if converter:
        yield "Convert", paths.CONVERTER, paths.CONVERTER
    yield "Docs", paths.DOCUMENTS, "docs/"


class Renderer:
    """Renderer of the templates in `TEMPLATES`.

    Args:
        converter: whether pages link to the page that converts models.
        url: address of the site's folder, for links from other sites; empty if it is unknown.

    Raises:
        UsageError: Jinja is not installed.
    """

    def __init__(self, *, converter: bool = False, url: str = "") -> None:
        try:
            from jinja2 import Environment, FileSystemLoader, StrictUndefined
        except ImportError as error:
            raise UsageError("Jinja is not installed", remedy="pip install 'opshift[site]'") from error
        from markdown_it import MarkdownIt
        from markupsafe import Markup

        # Texts of private domains are untrusted: only their code spans are rendered.
        markdown = MarkdownIt("zero").enable("backticks")
        self._templates = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=lambda value: printable(value) if type(value) is str else value,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        self._templates.filters |= {
            "prose": lambda text: Markup(markdown.renderInline(printable(" ".join(text.split())))),
        }
        self._templates.globals |= {
            "domain_path": paths.domain_path,
            "operator_path": paths.operator_path,
            "version_path": paths.version_path,
            "opset_path": paths.opset_path,
            "comparison_path": paths.comparison_path,
            "runtime_path": paths.runtime_path,
            "kernel_types": kernel_types,
            "versions_text": versions_text,
            "method_labels": METHOD_LABELS,
            "change_labels": CHANGE_LABELS,
            "sections": list(_sections(converter)),
            "arrow": ARROW,
            "converter": converter,
            "site": f"{url.rstrip('/')}/" if url else "",
            "image": paths.IMAGE,
        }

    def page(
        self,
        template: str,
        path: str,
        title: str,
        *,
        description: str,
        trail: Links = (),
        data: Mapping[str, object] | None = None,
        **content: object,
    ) -> Pages:
        """Yield a page and its copies in Markdown and JSON, each with its path.

        Args:
            template: name of the template.
            path: path of the page.
            title: title of the page.
            description: a sentence for search engines.
            trail: parent pages of this page, outermost first.
            data: content of the copy in JSON; `None` for no such copy.
            content: further variables of the template.
        """
        to = partial(paths.link, page=path)
        stem = path.removesuffix("html")
        copies = [(each, stem + each) for each in ("json", "md") if each == "md" or data is not None]
        variables = {
            "path": path,
            "title": title,
            "description": description.replace("`", ""),
            "trail": trail,
            "copies": copies,
            "to": to,
        }
        page = self._templates.get_template(template).render(variables | content)
        yield path, page
        yield f"{stem}md", markdown_copy(page)
        if data is not None:
            yield f"{stem}json", json.dumps(json_values(data), indent=1, allow_nan=False) + "\n"
