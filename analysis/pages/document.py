"""Pages in Markdown, and the same pages in HTML."""

import html
from dataclasses import dataclass
from itertools import pairwise
from string import Template
from typing import Final

from opshift.analysis.pages.markdown import anchor, plain_text

HTML_PAGE: Final = Template("""\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>$title</title>
<style>
:root {
  color-scheme: light dark;
  --page: #fff; --text: #1b1f24; --muted: #59636e; --line: #c4cbd3; --shade: #f3f5f7; --link: #0550ae;
  --added: #dafbe1; --added-line: #1a7f37; --removed: #ffebe9; --removed-line: #cf222e;
  --changed: #fff8c5; --changed-line: #9a6700;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f1318; --text: #e6edf3; --muted: #a2abb5; --line: #444c56; --shade: #1a2027; --link: #7cb7ff;
    --added: #12351f; --added-line: #3fb950; --removed: #45191c; --removed-line: #f85149;
    --changed: #3a2e0c; --changed-line: #d29922;
  }
}
body { max-width: 90rem; margin: 1.5rem auto; padding: 0 1rem; font: 1rem/1.5 sans-serif;
  background: var(--page); color: var(--text); overflow-wrap: break-word; }
p, li { max-width: 48rem; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; }
h2 { margin-top: 2rem; font-size: 1.25rem; border-bottom: 1px solid var(--line); }
h3 { margin-top: 2rem; font-size: 1rem; overflow-wrap: anywhere; }
a { color: var(--link); }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.scroll { overflow-x: auto; margin: .75rem 0; }
table { border-collapse: collapse; font-size: .9rem; }
th, td { border: 1px solid var(--line); padding: .2rem .6rem; text-align: left; vertical-align: top; }
th, pre, code { background: var(--shade); }
pre { padding: .5rem; overflow-x: auto; }
figure { display: inline-block; box-sizing: border-box; max-width: 100%; margin: .5rem .75rem .5rem 0;
  padding: .5rem; overflow-x: auto; vertical-align: top; border: 1px solid var(--line); border-radius: 4px; }
figcaption { color: var(--muted); font-size: .9rem; }
figure svg { font: 12px monospace; text-anchor: middle; dominant-baseline: central; }
svg text { fill: var(--text); }
svg rect { fill: var(--page); stroke: var(--muted); }
.input rect, .value rect { fill: var(--shade); }
.added rect { fill: var(--added); stroke: var(--added-line); }
.removed rect { fill: var(--removed); stroke: var(--removed-line); }
.changed rect { fill: var(--changed); stroke: var(--changed-line); }
.added rect, .removed rect, .changed rect { stroke-width: 2; }
svg path { fill: none; stroke: var(--muted); }
#arrow path { fill: var(--muted); stroke: none; }
</style>
<svg width="0" height="0" style="position: absolute" aria-hidden="true"><defs><marker id="arrow"
viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path
d="M0 0L8 4L0 8z"/></marker></defs></svg>
$body</html>
""")
"""Page that loads nothing: the policy forbids requests. Colours have the contrast of WCAG 2.2, level AA."""


@dataclass(frozen=True)
class Document:
    """Page in Markdown, and a drawing for each of its Mermaid diagrams, in order."""

    markdown: str
    drawings: tuple[str, ...] = ()

    def html(self) -> str:
        """Return the page as a complete HTML document. HTML in the Markdown is escaped."""
        return HTML_PAGE.substitute(title=html.escape(self.title), body=self.body())

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
        for token in tokens:
            if token.type == "fence" and token.info == "mermaid":
                # No other block names a language, so untrusted texts cannot be mistaken for it.
                token.type, token.content = "html_block", next(drawings)
        body = str(renderer.renderer.render(tokens, renderer.options, {}))
        # Wide tables scroll by themselves, also with the keyboard.
        body = body.replace(
            "<table>", '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>'
        )
        return body.replace("</table>", "</table></div>")
