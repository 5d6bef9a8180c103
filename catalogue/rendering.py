"""Templates of the pages."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from opshift.analysis.pages.markdown import code_block, code_span, escape_line, printable
from opshift.catalogue import paths
from opshift.catalogue.history import METHODS
from opshift.catalogue.kernels import kernel_types
from opshift.model.errors import UsageError
from opshift.registry.runtimes.runtime import versions_text

TEMPLATES: Final = Path(__file__).parent / "templates"

Links = tuple[tuple[str, str], ...]
"""Names and paths of pages."""


class Renderer:
    """Renderer of the templates in `TEMPLATES`.

    Args:
        converter: whether pages link to the page that converts.

    Raises:
        UsageError: Jinja is not installed.
    """

    def __init__(self, *, converter: bool = False) -> None:
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
            autoescape=lambda name: name is None or not name.endswith(".md"),
            undefined=StrictUndefined,
            finalize=lambda value: printable(value) if type(value) is str else value,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        self._templates.filters |= {
            "prose": lambda text: Markup(markdown.renderInline(printable(" ".join(text.split())))),
            "line": escape_line,
            "code": code_span,
            "block": code_block,
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
            "methods": METHODS,
            "converter": converter,
        }

    def page(
        self,
        template: str,
        path: str,
        title: str,
        *,
        trail: Links = (),
        copies: Links = (),
        **content: object,
    ) -> tuple[str, str]:
        """Return the path of a page, and its text.

        Args:
            template: name of the template.
            path: path of the page.
            title: title of the page.
            trail: pages above this one.
            copies: the same content in other formats.
            content: further variables of the template.
        """
        to = partial(paths.link, page=path)
        variables = {"path": path, "title": title, "trail": trail, "copies": copies, "to": to}
        return path, self._templates.get_template(template).render(variables, **content)
