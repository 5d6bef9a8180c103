"""Reports as files: pages for people, JSON for programs."""

import json
import os
from pathlib import Path

from opshift.analysis.model_diff.result import ModelDiff
from opshift.analysis.pages.diff_page import diff_page
from opshift.model.atomic_files import write_files
from opshift.model.errors import UsageError
from opshift.model.plain_data import json_values

SUFFIXES = (".html", ".md", ".json")


def write_report(result: ModelDiff, path: str | os.PathLike[str], *, title: str = "") -> None:
    """Write a report to a file, which is replaced if it exists.

    Args:
        result: differences between two models.
        path: the file. Its suffix selects the format: `.html` for a page without links to other files, `.md`
            for Markdown, `.json` for all data.
        title: the title of the page.

    Raises:
        UsageError: the suffix is not supported.
        CannotWrite: the file cannot be written.
    """
    suffix = report_suffix(path)
    if suffix == ".json":
        content = json.dumps(json_values(result.as_dict()), indent=2, allow_nan=False) + "\n"
    else:
        page = diff_page(result, title) if title else diff_page(result)
        content = page.html() if suffix == ".html" else page.markdown
    write_files({Path(path): content})


def report_suffix(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a report; raise UsageError for others."""
    suffix = Path(path).suffix
    if suffix not in SUFFIXES:
        remedy = f"name a file that ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
        raise UsageError("unsupported suffix of a report", place=str(path), remedy=remedy)
    return suffix
