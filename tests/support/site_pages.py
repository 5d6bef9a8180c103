"""Pages of the site, with their links and mistakes."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "hr", "img"}


class Page(HTMLParser):
    """Page with its links, anchors and mistakes of its HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: list[str] = []
        self.tags: list[str] = []
        self.mistakes: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.mistakes += [f"<{each}> is not closed" for each in self._open]
        self.mistakes += [f"repeated id {each}" for each in self.anchors if self.anchors.count(each) > 1]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append(tag)
        self.anchors += filter(None, [values.get("id")])
        self.links += [
            each for key in ("href", "src", "data-index", "data-root") if (each := values.get(key))
        ]
        self.mistakes += [f"attribute {each}" for each in values if each.startswith("on") or each == "style"]
        if len(values) < len(attrs):
            self.mistakes.append(f"repeated attribute of {tag}")
        if tag == "a" and "a" in self._open:
            self.mistakes.append("link in a link")
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.mistakes.append(f"unexpected </{tag}>")
