"""Pages of the folder `docs`, with links to the other pages of a site."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from opshift.analysis.pages.markdown import plain_text

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"

GENERATED: Final = re.compile(r"<!--.*?-->\s*")

RULE_ID: Final = re.compile(r"`([\w.-]+)`")


class Section(NamedTuple):
    """Section of a page: a heading and the text below it, or a row about a rule."""

    anchor: str
    title: str
    text: str


class DocumentPage:
    """Page in Markdown; HTML in it is escaped."""

    def __init__(self, name: str, text: str, names: frozenset[str]) -> None:
        self.path = f"docs/{name}.html"
        self.markdown = GENERATED.sub("", text, count=1)
        self._renderer = MarkdownIt("commonmark", {"html": False}).enable("table")
        self._tokens = self._renderer.parse(self.markdown)
        self._names = names
        self.sections: Sequence[Section] = list(self._add_anchors())
        for token in self._tokens:
            self._replace_links(token.children or [])
            if token.attrs.pop("style", None):  # of numbers in tables; the policy of the pages forbids styles
                token.attrSet("class", "number")

    @property
    def title(self) -> str:
        """The first heading."""
        return self.sections[0].title

    @property
    def html(self) -> str:
        """The content in HTML."""
        body: str = self._renderer.renderer.render(self._tokens, self._renderer.options, {})
        # Wide tables scroll by themselves, also with the keyboard.
        body = body.replace(
            "<table>", '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>'
        )
        return body.replace("</table>", "</table></div>")

    def _add_anchors(self) -> Iterator[Section]:
        """Give headings and rows of rules an anchor, and yield the sections."""
        used: set[str] = set()
        for position, token in enumerate(self._tokens):
            if token.type == "heading_open":
                title = plain_text(self._tokens[position + 1].content.replace("`", ""))
                # as on GitHub, where the same links work
                name = re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
                text = " ".join(self._texts(position + 3))
            elif token.type == "tr_open" and (rule := RULE_ID.fullmatch(self._tokens[position + 2].content)):
                name = title = rule[1]
                text = self._tokens[position + 8].content if len(self._tokens) > position + 8 else ""
            else:
                continue
            if name not in used:
                used.add(name)
                token.attrSet("id", name)
                yield Section(name, title, text)

    def _texts(self, start: int) -> Iterator[str]:
        for token in self._tokens[start:]:
            if token.type in ("heading_open", "table_open"):
                return
            if token.type in ("inline", "fence"):
                yield token.content

    def _replace_links(self, tokens: Sequence[Token]) -> None:
        """Let links lead to pages of the site; those to other files of the repository become text."""
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


def read_documents(folder: Path = DOCS) -> list[DocumentPage]:
    """Return the pages of a folder, sorted by name."""
    files = sorted(folder.glob("*.md"))
    names = frozenset(each.stem for each in files)
    return [DocumentPage(each.stem, each.read_text("utf-8"), names) for each in files]
