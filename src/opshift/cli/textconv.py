"""`opshift textconv`."""

import hashlib
from collections.abc import Iterable

from opshift.cli.errors import add_file_to_errors
from opshift.cli.options import Format, FormatOption, InputArgument
from opshift.cli.output import print_result
from opshift.cli.page import Page
from opshift.cli.paths import require_file
from opshift.cli.streams import model_input
from opshift.model.errors import InvalidModel


def textconv(source: InputArgument, form: FormatOption = Format.TEXT) -> None:
    """Print a model as text for git diff.

    Each node, value and tensor is one line; weights are represented by digests. To let `git diff` compare
    these lines, run

    git config diff.onnx.textconv "opshift textconv"

    and add the line `*.onnx diff=onnx` to the file .gitattributes. For a file that is not a model, the text
    is the reason: a failure would end `git diff`.
    """
    from opshift.analysis.model_text import model_lines
    from opshift.converter.streaming.weights import open_without_weights
    from opshift.stores.source_file import open_source

    def print_lines(lines: Iterable[str]) -> None:
        if form is Format.JSON:
            lines = list(lines)
        print_result(form, {"input": source, "lines": lines}, lambda page: _write(page, lines))

    source = require_file(source)
    try:
        with add_file_to_errors(source), open_without_weights(model_input(source)) as model:
            print_lines(model_lines(model))
    except InvalidModel as error:
        # without the path: git passes temporary files
        digest = hashlib.sha256()
        with open_source(model_input(source)) as file:
            for start in range(0, file.size, file.copy_size):
                digest.update(file.read(start, min(start + file.copy_size, file.size)))
        print_lines([error.reason, f"sha256 {digest.hexdigest()}"])


def _write(page: Page, lines: Iterable[str]) -> None:
    for line in lines:
        page.line(line)
