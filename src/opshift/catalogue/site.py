"""Static site of all definitions: pages, copies as JSON and Markdown, search index and site map.

An entry of the search index has the title, kind, path and words of a page or section.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit
from xml.sax.saxutils import escape

from opshift.analysis.pages.document import STYLE, escape_line
from opshift.catalogue import paths
from opshift.catalogue.browser.page import converter_page
from opshift.catalogue.data_package import data_files
from opshift.catalogue.documents import DocumentPage, heading_anchor, read_documents
from opshift.catalogue.pages import (
    document_pages,
    home_page,
    missing_page,
    operator_pages,
    opset_pages,
    release_page,
    runtime_pages,
)
from opshift.catalogue.paths import operator_path, opset_path, runtime_path
from opshift.catalogue.rendering import Renderer
from opshift.catalogue.views import OperatorView, OpsetView, opset_views
from opshift.model.errors import UsageError
from opshift.registry.descriptions import texts_of
from opshift.registry.explanations.tool_errors import tool_errors
from opshift.registry.registry import Registry
from opshift.registry.runtimes.files import get_runtime, runtime_files
from opshift.registry.runtimes.runtime import Runtime

MAX_WORDS = 60
"""Maximum number of words of a section; longer ones would make the index large."""


class SearchEntry(NamedTuple):
    """Entry of the index, in the order that `search.js` reads."""

    title: str
    kind: str
    path: str
    words: str


def search_index(
    operators: Iterable[OperatorView],
    opsets: Iterable[OpsetView],
    runtimes: Iterable[Runtime],
    documents: Iterable[DocumentPage],
    pages: Iterable[SearchEntry],
) -> str:
    """Return the index as a script, because browsers do not read other files without a server.

    `pages` are further pages of the site.
    """
    entries = [*pages, *_operators(operators), *_opsets(opsets), *_documents(documents), *_messages()]
    entries += (SearchEntry(each.name, "runtime", runtime_path(each), "") for each in runtimes)
    # ASCII: the script is valid in any encoding, and has no line separators of JavaScript
    return f"self.searchIndex = {json.dumps(entries, separators=(',', ':'))};\n"


def _operators(views: Iterable[OperatorView]) -> Iterator[SearchEntry]:
    for view in views:
        names = [name for each in view.versions for name in each.version.attributes]
        texts = [text for each in view.versions for text in texts_of(each.version).values()]
        kinds = {kind for each in view.versions for kind in chain(*each.version.type_constraints.values())}
        operator = view.operator
        path = operator_path(operator.domain, operator.name)
        # search.js leads to the page of the version whose number is in the query
        numbers = [str(each.version.since_version) for each in view.versions]
        words = " ".join((_words([*names, *texts, *sorted(kinds)]), *numbers))
        yield SearchEntry(operator.name, operator.domain, path, words)


def _opsets(views: Iterable[OpsetView]) -> Iterator[SearchEntry]:
    for each in views:
        yield SearchEntry(
            f"{each.domain} {each.opset}",
            "opset",
            opset_path(each.domain, each.opset),
            f"opset {each.release.lower()}".rstrip(),
        )


def _documents(pages: Iterable[DocumentPage]) -> Iterator[SearchEntry]:
    for page in pages:
        for section in page.sections:
            words = _words([section.text], MAX_WORDS)
            kind = "command" if section.title.startswith("opshift ") else page.title
            yield SearchEntry(section.title, kind, f"{page.path}#{section.anchor}", words)


def _messages() -> Iterator[SearchEntry]:
    for error in tool_errors():
        path = f"docs/errors-elsewhere.html#{heading_anchor(error.title)}"
        yield from (SearchEntry(each, "error message", path, "") for each in error.texts)


def _words(texts: Sequence[str], most: int | None = None) -> str:
    """Return the different words of some texts, in lower case; short ones have little meaning."""
    found = (word.lower() for text in texts for word in re.findall(r"\w[\w.]*\w", text) if len(word) > 3)
    return " ".join(list(dict.fromkeys(found))[:most])


STATIC: Final = Path(__file__).parent / "static"

LLMS_HEAD: Final = """# Operator catalogue

> Definitions of ONNX operators by version: signature, types, changes, and conversions between versions.

Each operator version has a page `operators/DOMAIN/NAME/VERSION.md`, and its data with the suffix `.json`.
`data/operators.json` has the data of all versions.
A node resolves to the newest version that is not newer than the opset which the model imports for the domain.
"""


def build_site(registry: Registry, package: str, *, url: str = "", converter: str = "") -> dict[str, str]:
    """Return the content of all files of the site by path.

    Args:
        registry: the definitions.
        package: the version of opshift.
        url: address of the site's folder on the web; with it, the site has a site map, and pages name the
            image of `site_images`.
        converter: digest of the result of `converter_files`; with it, the site has a page that converts
            models with these files.

    Raises:
        UsageError: Jinja is not installed, or `url` is not an address on the web.
    """
    if url and (urlsplit(url).scheme not in ("https", "http") or not urlsplit(url).netloc):
        raise UsageError("is not an address on the web", place=url, remedy="begin it with https://")
    renderer = Renderer(converter=bool(converter), url=url)
    operators = {
        domain: [OperatorView(each, registry) for each in registry.operators(domain)]
        for domain in registry.domains()
    }
    opsets = {domain: opset_views(domain, listed, registry) for domain, listed in operators.items()}
    views = list(chain.from_iterable(operators.values()))
    versions = [each.version for view in views for each in view.versions]
    releases = [get_runtime(name) for name in runtime_files()]
    runtimes = {name: list(group) for name, group in groupby(releases, lambda each: each.runtime)}
    documents = read_documents({str(each.id): paths.version_path(each) for each in versions})
    files = dict(
        chain(
            home_page(renderer, operators, opsets, runtimes),
            operator_pages(renderer, operators, registry, runtimes),
            opset_pages(renderer, opsets),
            release_page(renderer, opsets, registry),
            runtime_pages(renderer, runtimes, registry),
            document_pages(renderer, documents),
            missing_page(renderer, url),
        )
    )
    if converter:
        files |= dict(converter_page(renderer, converter))
    if url:
        files["sitemap.xml"] = _site_map(url, files)
    files["llms.txt"] = _llms(views)
    files |= data_files(registry, package)
    files["search-index.js"] = search_index(
        views, chain.from_iterable(opsets.values()), releases, documents, _pages(bool(converter))
    )
    files |= {
        each.name: each.read_text("utf-8") for each in sorted(STATIC.iterdir()) if each.name != paths.IMAGE
    }
    return files | {"style.css": STYLE.read_text("utf-8") + files["style.css"]}


def site_images() -> dict[str, bytes]:
    """Return the images of the site by path: the picture that other sites show with a link."""
    return {paths.IMAGE: (STATIC / paths.IMAGE).read_bytes()}


def _pages(converter: bool) -> Iterator[SearchEntry]:
    """Yield the entries of the search for pages without an operator, an opset or a runtime."""
    if converter:
        words = "convert plan reach runs fit check inspect compare diff model onnx opset"
        yield SearchEntry("Convert a model", "page", paths.CONVERTER, words)
    yield SearchEntry("Opsets", "page", paths.OPSETS, "opset list release")
    yield SearchEntry(
        "Changes between opsets", "page", paths.CHANGES, "changed operators between opsets from to"
    )
    yield SearchEntry("Runtimes", "page", paths.RUNTIMES, "runtime matrix kernels supported where runs")
    yield SearchEntry("Releases", "page", paths.RELEASES, "release opset version of onnx runtimes targets")


def _site_map(url: str, files: Iterable[str]) -> str:
    """Return the addresses of all pages. Source: https://www.sitemaps.org/protocol.html."""
    pages = (f"{url.rstrip('/')}/{quote(each)}" for each in files if _is_listed(each))
    lines = "".join(f"<url><loc>{escape(each)}</loc></url>\n" for each in pages)
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{space}">\n{lines}</urlset>\n'


def _is_listed(path: str) -> bool:
    return path.endswith(".html") and path != paths.MISSING


def _llms(views: Iterable[OperatorView]) -> str:
    """Return the index for language models. Source: https://llmstxt.org."""
    lines = [LLMS_HEAD]
    domain = ""
    for view in views:
        if view.operator.domain != domain:
            domain = view.operator.domain
            lines.append(f"\n## {domain}\n\n")
        version = view.newest.version
        summary = escape_line(view.summary)
        lines.append(f"- [{version.name}]({quote(paths.version_path(version, 'md'))}): {summary}\n")
    return "".join(lines)
