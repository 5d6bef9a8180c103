"""Static site of all definitions: pages, copies as JSON and Markdown, search index and site map."""

from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit
from xml.sax.saxutils import escape

from opshift.analysis.pages.document import STYLE, escape_line
from opshift.catalogue import paths
from opshift.catalogue.browser.page import converter_page
from opshift.catalogue.data_package import data_files
from opshift.catalogue.documents import read_documents
from opshift.catalogue.operator_views import OperatorView
from opshift.catalogue.opset_views import opset_views
from opshift.catalogue.pages import (
    document_pages,
    home_page,
    missing_page,
    operator_pages,
    opset_pages,
    release_page,
    runtime_pages,
)
from opshift.catalogue.rendering import Renderer
from opshift.catalogue.search_index import SearchEntry, search_index
from opshift.model.errors import UsageError
from opshift.registry.registry import Registry
from opshift.registry.runtimes.files import get_runtime, runtime_files

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
