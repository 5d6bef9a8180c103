"""Static site of operators, opsets, runtimes and documentation, with a search index and a site map.

An entry of the search index has the title, kind, path, words and versions of a page or section.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit
from xml.sax.saxutils import escape

from opshift.analysis.pages.document import STYLE, escape_line
from opshift.catalogue import paths
from opshift.catalogue.browser.session import ALL_RUNTIMES
from opshift.catalogue.data_package import data_files
from opshift.catalogue.documents import DocumentPage, heading_anchor, read_documents
from opshift.catalogue.pages import (
    document_pages,
    index_page,
    missing_page,
    operator_pages,
    opset_pages,
    release_page,
    runtime_pages,
)
from opshift.catalogue.paths import CONVERTER, operator_path, opset_path, runtime_path
from opshift.catalogue.rendering import Pages, Renderer
from opshift.catalogue.views import OperatorView, OpsetView, opset_views
from opshift.model.errors import UsageError
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.registry.descriptions import texts_of
from opshift.registry.explanations import tool_errors
from opshift.registry.registry import Registry, default_registry
from opshift.registry.runtimes.files import get_runtime, runtime_files
from opshift.registry.runtimes.runtime import Runtime
from opshift.registry.steps import Allow

MAX_WORDS = 60
"""Maximum number of words of a section in the search index, to limit its size."""


ALLOWED: Final[Mapping[Allow, str]] = {
    "approximate": "results may differ in rounding",
    "assume-nonnegative": "indices are not negative",
    "assume-nonempty": "dimensions are not 0",
    "large": "many nodes or large constants in place of one node",
    "interface-types": "inputs and outputs have wider types",
    "drop-metadata": "metadata that the IR version lacks is lost",
    "drop-training": "training information that the IR version lacks is lost",
    "drop-devices": "device configurations that the IR version lacks are lost",
}

COMMANDS: Final[Mapping[str, str]] = {
    "convert": "Convert the model to the target.",
    "plan": "List what a conversion to the target would change, or what prevents it.",
    "reach": "List the opsets to which the model can be converted.",
    "runs": "List the runtimes that run the model.",
    "fit": "Convert the model so that one runtime implements all nodes.",
    "inspect": "Show opsets, operators, inputs and outputs.",
    "check": "List the rules of the ONNX specification that the model breaks.",
}
"""Commands on the page that converts models, each with a sentence about it."""

MIN_SHARE: Final = 0.75
"""Minimum share of runtimes whose newest release supports the default target opset."""

SAMPLE: Final = """\
<ir_version: 8, opset_import: ["" : 17]>
sample (float[N, 4] x, float[4] scale, float[4] bias) => (float[N, 4] y) {
    normal = LayerNormalization <axis = -1> (x, scale, bias)
    active = HardSwish (normal)
    y = Softmax <axis = -1> (active)
}
"""
"""Model with which users can try the page that converts models."""


class SearchEntry(NamedTuple):
    """Entry of the search index; the fields are in the order that `search.js` expects."""

    title: str
    kind: str
    path: str
    words: str
    versions: Sequence[str] = ()
    """The versions of an operator: each has a page, and each pair has a comparison page."""


def search_index(
    operators: Iterable[OperatorView],
    opsets: Iterable[OpsetView],
    runtimes: Iterable[Runtime],
    documents: Iterable[DocumentPage],
    pages: Iterable[SearchEntry],
) -> str:
    """Return the search index as a script, because browsers do not load other local files without a server.

    `pages` has entries for further pages of the site.
    """
    entries = [
        *pages,
        *_operator_entries(operators),
        *_opset_entries(opsets),
        *_document_entries(documents),
        *_message_entries(),
    ]
    entries += (SearchEntry(each.name, "runtime", runtime_path(each), "") for each in runtimes)
    # ASCII, so that the script is valid in any encoding, and without U+2028, which ends a line in JavaScript.
    return f"self.searchIndex = {json.dumps(entries, separators=(',', ':'))};\n"


def _operator_entries(views: Iterable[OperatorView]) -> Iterator[SearchEntry]:
    for view in views:
        names = [name for each in view.versions for name in each.version.attributes]
        texts = [text for each in view.versions for text in texts_of(each.version).values()]
        kinds = {kind for each in view.versions for kind in chain(*each.version.type_constraints.values())}
        operator = view.operator
        path = operator_path(operator.domain, operator.name)
        words = _search_words([*names, *texts, *sorted(kinds)])
        versions = [str(each.version.since_version) for each in view.versions]
        yield SearchEntry(operator.name, operator.domain, path, words, versions)


def _opset_entries(views: Iterable[OpsetView]) -> Iterator[SearchEntry]:
    for each in views:
        yield SearchEntry(
            f"{each.domain} {each.opset}",
            "opset",
            opset_path(each.domain, each.opset),
            f"opset {each.release.lower()}".rstrip(),
        )


def _document_entries(pages: Iterable[DocumentPage]) -> Iterator[SearchEntry]:
    for page in pages:
        for section in page.sections:
            words = _search_words([section.text], MAX_WORDS)
            kind = "command" if section.title.startswith("opshift ") else page.title
            yield SearchEntry(section.title, kind, f"{page.path}#{section.anchor}", words)


def _message_entries() -> Iterator[SearchEntry]:
    for error in tool_errors():
        path = f"docs/errors-elsewhere.html#{heading_anchor(error.title)}"
        yield from (SearchEntry(each, "error message", path, "") for each in error.texts)


def _search_words(texts: Sequence[str], most: int | None = None) -> str:
    """Return the first `most` distinct words of texts in lower case, without words of up to 3 characters."""
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
    """Return the files of the site by path, without `site_images` and `converter_files`.

    Args:
        registry: the definitions.
        package: the version of opshift.
        url: address of the site's folder on the web; if set, the site has a site map, and pages name the
            image of `site_images`.
        converter: digest of the result of `converter_files`; if set, the site has a page that converts
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
            index_page(renderer, operators, opsets, runtimes),
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
    files["llms.txt"] = _language_model_index(views)
    files |= data_files(registry, package)
    files["search-index.js"] = search_index(
        views, chain.from_iterable(opsets.values()), releases, documents, _page_entries(bool(converter))
    )
    files |= {
        each.name: each.read_text("utf-8") for each in sorted(STATIC.iterdir()) if each.name != paths.IMAGE
    }
    return files | {"style.css": STYLE.read_text("utf-8") + files["style.css"]}


def site_images() -> dict[str, bytes]:
    """Return the images of the site by path: the preview that other sites show with a link to the site."""
    return {paths.IMAGE: (STATIC / paths.IMAGE).read_bytes()}


def _page_entries(converter: bool) -> Iterator[SearchEntry]:
    """Yield the search entries of pages that are not about one operator, opset, runtime or document."""
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
    """Return the site map with the addresses of all pages, see https://www.sitemaps.org/protocol.html."""
    pages = (f"{url.rstrip('/')}/{quote(each)}" for each in files if _is_listed(each))
    lines = "".join(f"<url><loc>{escape(each)}</loc></url>\n" for each in pages)
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{space}">\n{lines}</urlset>\n'


def _is_listed(path: str) -> bool:
    return path.endswith(".html") and path != paths.MISSING


def _language_model_index(views: Iterable[OperatorView]) -> str:
    """Return the file `llms.txt`, an index for language models, see https://llmstxt.org."""
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


def _common_opset() -> int:
    """Return the newest opset of ai.onnx that the newest releases of `MIN_SHARE` of runtimes support."""
    newest = {name.rpartition("-")[0]: name for name in runtime_files()}  # the newest release is the last one
    opsets = sorted(get_runtime(name).opsets.get(DEFAULT_DOMAIN, 0) for name in newest.values())
    return opsets[int((1 - MIN_SHARE) * len(opsets))]


def converter_page(renderer: Renderer, digest: str) -> Pages:
    """Yield the page that converts models, and its copy; `digest` is a digest of the files that it loads."""
    # the page can use only the built-in definitions, not further domains of the site
    registry = default_registry()
    opsets = range(registry.newest_opset(), 0, -1)
    targets = {"Opset of ai.onnx": [(f"opset {each}", str(each)) for each in opsets]}
    for product, releases in registry.releases.products.items():
        names = [f"{product}-{each}" for each in reversed(list(releases))]
        targets[product] = [(each, each) for each in names]
    runtimes: dict[str, list[tuple[str, str]]] = {}
    for each in reversed(list(runtime_files())):
        runtimes.setdefault(each.rpartition("-")[0], []).append((each, each))
    return renderer.page(
        "convert.html",
        CONVERTER,
        "Convert a model",
        description="Convert an ONNX model to another opset in the browser, without uploading it.",
        targets=targets,
        opsets=opsets,
        runtimes=dict(sorted(runtimes.items())),
        all_runtimes=ALL_RUNTIMES,
        chosen=str(_common_opset()),
        newest=str(registry.releases.released_opset(DEFAULT_DOMAIN)),
        commands=COMMANDS,
        sample=SAMPLE,
        allow=ALLOWED,
        digest=digest,
    )
