"""Index of the search: title, kind, path and words of each page or section."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from opshift.catalogue.documents import DocumentPage, heading_anchor
from opshift.catalogue.operator_views import OperatorView
from opshift.catalogue.opset_views import OpsetView
from opshift.catalogue.paths import operator_path, opset_path, runtime_path
from opshift.registry.descriptions import texts_of
from opshift.registry.explanations.tool_errors import tool_errors
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
