"""Reports as files: pages for people, JSON for programs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from opshift.analysis.model_diff.result import ModelDiff
from opshift.analysis.pages.conversion_page import conversion_page
from opshift.analysis.pages.diff_page import diff_page
from opshift.analysis.pages.document import Document
from opshift.converter.plan.changes import Plan
from opshift.converter.report import Report
from opshift.model.atomic_files import write_files
from opshift.model.errors import UsageError, path_argument, require_type, wrong_type
from opshift.model.locations import json_without_secrets
from opshift.model.plain_data import json_values

if TYPE_CHECKING:
    # for type checkers only: the site's page for conversions lacks this module
    from opshift.analysis.verification.result import Verification

SUFFIXES = (".html", ".md", ".json")


def write_report(
    result: Report | Plan | ModelDiff,
    path: str | os.PathLike[str],
    *,
    title: str = "",
    verification: Verification | None = None,
) -> None:
    """Write a report to a file, which is replaced if it exists.

    Args:
        result: a plan, the report of a plan or conversion, or the differences between two models.
        path: the file. Its suffix selects the format: `.html` for a page without links to other files, `.md`
            for Markdown, `.json` for all data.
        title: the title of the page.
        verification: comparison of the models before and after the conversion.

    Raises:
        UsageError: the suffix is not supported, or an argument has a wrong type.
        CannotWrite: the file cannot be written.
    """
    if verification is not None and not hasattr(verification, "as_dict"):
        raise wrong_type("verification", verification, "a Verification or None")
    if isinstance(result, Plan):
        result = Report.of(result)
    if isinstance(result, ModelDiff):
        write_page(
            path, result.as_dict(), lambda: diff_page(result, title or "Differences between two models")
        )
        return
    require_type("result", result, Report, "a Report, a Plan or a ModelDiff")
    compared = {"verification": verification.as_dict()} if verification else {}
    page = partial(conversion_page, result, title or "Report of a conversion", verification)
    write_page(path, {**result.as_dict(), **compared}, page)


def write_page(
    path: str | os.PathLike[str], data: Mapping[str, object], page: Callable[[], Document]
) -> None:
    """Write `page`, or `data` if the file is a `.json` file."""
    suffix = report_suffix(path)
    if suffix == ".json":
        content = json_without_secrets(json_values(data), indent=2) + "\n"
    else:
        content = page().html() if suffix == ".html" else page().markdown
    write_files({Path(path): content})


def report_suffix(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a report; raise UsageError for other suffixes."""
    suffix = path_argument("path", path).suffix
    if suffix not in SUFFIXES:
        remedy = f"name a file that ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
        raise UsageError("unsupported suffix of a report", place=str(path), remedy=remedy)
    return suffix
