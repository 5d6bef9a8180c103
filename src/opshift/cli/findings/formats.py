"""Choice of the writer of findings by the format."""

from importlib import import_module
from typing import cast

from opshift.cli.findings.writer import FindingsWriter
from opshift.cli.options import Format

WRITERS = {Format.SARIF: "SarifWriter", Format.GITHUB: "GithubWriter", Format.GITLAB: "GitlabWriter"}
"""Class of each format, in the module of the format's name."""


def findings_writer(form: Format, command: str) -> FindingsWriter | None:
    """Return the writer of the findings of a command, or `None` for text and JSON."""
    if form not in WRITERS:
        return None
    module = import_module(f"opshift.cli.findings.{form}")
    return cast("FindingsWriter", getattr(module, WRITERS[form])(command))
