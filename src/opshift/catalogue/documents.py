"""Pages of the folder `docs`, with links to other pages of the site, and flowcharts drawn as SVG.

Source of the syntax of flowcharts: https://mermaid.js.org/syntax/flowchart.html.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from opshift.analysis.pages.diagram import Box, svg
from opshift.analysis.pages.document import plain_text, with_scrolling_parts
from opshift.catalogue.paths import link

NODE: Final = r'(\w+)(?:[\[{]"([^"]*)"[\]}])?'

STATEMENT: Final = re.compile(rf"{NODE}(?:\s*-->(?:\|([^|]*)\|)?\s*{NODE})?")
"""A node, or a line between two nodes; both nodes and lines may have a text."""


def read_flowchart(text: str) -> list[Box]:
    """Return the boxes of a Mermaid flowchart, in the order in which its statements first name them.

    Raises:
        ValueError: the chart is not from top to bottom, or has a statement that is neither a node nor a line.
    """
    boxes: dict[str, Box] = {}
    head, *statements = filter(None, map(str.strip, text.splitlines()))
    if head != "flowchart TD":
        raise ValueError(f"expected `flowchart TD`, got {head}")
    for statement in statements:
        if not (found := STATEMENT.fullmatch(statement)):
            raise ValueError(f"expected a node or a line between two nodes, got {statement}")
        source, source_label, note, target, target_label = found.groups()
        for name, label in (source, source_label), (target, target_label):
            if name and (label or name not in boxes):
                first, _, second = (label or name).partition("<br>")
                box = boxes.get(name, Box("", kind="node"))
                boxes[name] = box._replace(label=first, detail=second)
        if target:
            box = boxes[target]
            position = list(boxes).index(source)
            boxes[target] = box._replace(sources=(*box.sources, position), notes=(*box.notes, note or ""))
    return list(boxes.values())


_PACKAGE: Final = Path(__file__).parents[1]
DOCS: Final = next(each for each in (_PACKAGE / "docs", _PACKAGE.parents[1] / "docs") if each.exists())
"""Documentation; in a checkout, it is beside `src`."""

GENERATED: Final = re.compile(r"<!--.*?-->\s*")

VERSION_ID: Final = re.compile(r"(\w[\w.]*:\d+)")
"""Operator version in a text, as a group, so that `re.split` keeps the version."""

TASKS: Final[Mapping[str, Sequence[str]]] = {
    "Start": ("getting-started", "commands", "command-line", "python"),
    "Convert models": ("conversions", "options", "guarantees", "downgrades", "refusals", "errors-elsewhere"),
    "Run models elsewhere": ("runtimes",),
    "Many models": ("gate", "ci", "platform-teams", "stores"),
    "Check models": ("checker-rules", "specification", "specification-editions"),
    "Look up operators": ("registry", "queries", "changes", "data-package", "site"),
    "Define operators": ("private-domains", "definition-rules", "proposals", "proposal-rules"),
    "Inside opshift": ("architecture",),
}
"""Names of pages by task, in the order of the menu."""

MIN_CONTENTS = 4
"""Minimum number of sections for which a page gets a table of contents."""

RULE_ID: Final = re.compile(r"`([\w.-]+)`")


class Section(NamedTuple):
    """Section of a page: a heading and the text below it, or a table row about a rule."""

    anchor: str
    title: str
    text: str
    level: int = 0
    """Level of the heading; 0 for a table row."""


class DocumentPage:
    """Page of `docs` in Markdown; HTML in the Markdown is escaped."""

    def __init__(self, name: str, text: str, names: frozenset[str], versions: Mapping[str, str]) -> None:
        self.name = name
        self.path = f"docs/{name}.html"
        self.markdown = GENERATED.sub("", text, count=1)
        self._renderer = MarkdownIt("commonmark", {"html": False}).enable("table")
        self._tokens = self._renderer.parse(self.markdown)
        self._names = names
        self.sections: Sequence[Section] = list(self._add_anchors())
        heading = ""
        for before, token in pairwise(self._tokens):
            if before.type == "heading_open":
                heading = plain_text(token.content)
            if token.type == "fence" and token.info == "mermaid":
                token.type, token.content = "html_block", svg(read_flowchart(token.content), heading)
            self._replace_links(token.children or [])
            if token.children:
                token.children = [
                    each for child in token.children for each in self._with_links(child, versions)
                ]
            # numeric columns are right-aligned with a class, because the pages forbid inline styles
            if token.attrs.pop("style", None):
                token.attrSet("class", "number")

    @property
    def summary(self) -> str:
        """The first sentence, cut at a colon or semicolon; links are replaced by their text."""
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", self.sections[0].text)
        return re.split(r"[.:;](?:\s|$)", text)[0] + "."

    @property
    def contents(self) -> Sequence[Section]:
        """The sections with a heading of level 2; empty if there are fewer than `MIN_CONTENTS`."""
        listed = [each for each in self.sections if each.level == 2]
        return listed if len(listed) >= MIN_CONTENTS else []

    @property
    def has_drawing(self) -> bool:
        """Whether the page has diagrams."""
        return "```mermaid" in self.markdown

    @property
    def title(self) -> str:
        """The first heading."""
        return self.sections[0].title

    @property
    def html(self) -> str:
        """The content in HTML."""
        body = self._renderer.renderer.render(self._tokens, self._renderer.options, {})
        return with_scrolling_parts(str(body))

    def _add_anchors(self) -> Iterator[Section]:
        """Give headings and table rows about rules an anchor, and yield them as sections."""
        used: set[str] = set()
        for position, token in enumerate(self._tokens):
            if token.type == "heading_open":
                title = plain_text(self._tokens[position + 1].content.replace("`", ""))
                name = heading_anchor(title)
                text = " ".join(self._texts_of_section(position + 3))
                level = int(token.tag[1:])
            elif token.type == "tr_open" and (rule := RULE_ID.fullmatch(self._tokens[position + 2].content)):
                name = title = rule[1]
                text = self._tokens[position + 8].content if len(self._tokens) > position + 8 else ""
                level = 0
            else:
                continue
            if name not in used:
                used.add(name)
                token.attrSet("id", name)
                yield Section(name, title, text, level)

    def _texts_of_section(self, start: int) -> Iterator[str]:
        for token in self._tokens[start:]:
            if token.type in ("heading_open", "table_open"):
                return
            if token.type in ("inline", "fence"):
                yield token.content

    def _replace_links(self, tokens: Sequence[Token]) -> None:
        """Point links to `docs` at pages of the site; turn links to other repository files into text."""
        inside = False
        for token in tokens:
            if token.type == "link_open":
                target, _, fragment = str(token.attrGet("href")).partition("#")
                name = normpath(join(dirname(self.path), target)).removeprefix("docs/").removesuffix(".md")
                inside = name not in self._names and not target.startswith("https:") and bool(target)
                if inside:
                    token.tag, token.attrs = "span", {}
                elif name in self._names:
                    token.attrSet("href", f"{name}.html{f'#{fragment}' if fragment else ''}")
            elif token.type == "link_close" and inside:
                token.tag, inside = "span", False

    def _with_links(self, token: Token, versions: Mapping[str, str]) -> Iterator[Token]:
        """Yield a token; split a text token to link operator versions to their pages."""
        parts = VERSION_ID.split(token.content) if token.type == "text" else []
        if not any(part in versions for part in parts):
            yield token
            return
        for part in parts:
            if part in versions:
                yield Token("link_open", "a", 1, attrs={"href": link(versions[part], self.path)})
            yield Token("text", "", 0, content=part)
            if part in versions:
                yield Token("link_close", "a", -1)


def heading_anchor(title: str) -> str:
    """Return the anchor that GitHub gives a heading, so that links work on GitHub, too."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def read_documents(versions: Mapping[str, str], folder: Path = DOCS) -> list[DocumentPage]:
    """Return the pages of a folder, sorted by name; `versions` has the page path of each operator version."""
    files = sorted(folder.glob("*.md"))
    names = frozenset(each.stem for each in files)
    return [DocumentPage(each.stem, each.read_text("utf-8"), names, versions) for each in files]


def pages_by_task(pages: Sequence[DocumentPage]) -> Iterator[tuple[str, list[DocumentPage]]]:
    """Yield the pages of each task, then the pages that `TASKS` does not name."""
    by_name = {each.name: each for each in pages}
    for title, names in TASKS.items():
        yield title, [by_name.pop(name) for name in names if name in by_name]
    if by_name:
        yield "More", list(by_name.values())
