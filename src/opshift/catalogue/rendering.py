"""Templates of the pages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from opshift.analysis.pages.diagram import ARROW
from opshift.analysis.pages.document import printable
from opshift.catalogue import paths
from opshift.catalogue.kernels import kernel_types
from opshift.catalogue.markdown_copy import markdown_copy
from opshift.catalogue.words import CHANGE_LABELS, METHOD_LABELS
from opshift.model.errors import UsageError
from opshift.model.plain_data import json_values
from opshift.registry.runtimes.runtime import versions_text

TEMPLATES: Final = Path(__file__).parent / "templates"

Links = tuple[tuple[str, str], ...]
"""Names and paths of pages."""

Pages = Iterator[tuple[str, str]]
"""Paths and contents of files."""


def _sections(converter: bool) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each part of a site, its page, and the start of the paths of its pages."""
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
        converter: whether pages link to the page that converts.
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

        # Texts of private domains are untrusted: only code spans in them are rendered.
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
            trail: pages above this one.
            data: content of the copy in JSON, if there is one.
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
