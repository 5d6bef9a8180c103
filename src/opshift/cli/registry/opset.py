"""`opshift opset`: export and load operator-set documents."""

from pathlib import Path
from typing import Annotated

import typer

from opshift.cli.commands import examples_text, subcommand_group
from opshift.cli.options import DefinitionsOption, Format, FormatOption, registry_with
from opshift.cli.output import count_text, print_result
from opshift.cli.page import Page
from opshift.cli.paths import require_file
from opshift.cli.registry.listing import OPERATOR_COLUMNS
from opshift.model.atomic_files import write_destination, write_files
from opshift.model.errors import UsageError
from opshift.registry.documents.document import OperatorSet
from opshift.registry.documents.files import DocumentFormat

opset = subcommand_group("Export and load operator sets as documents.")

EXPORT_EXAMPLES = ("ai.onnx.onnxopset --domain ai.onnx --version 17", "--domain ai.onnx.ml --format yaml")

LOAD_EXAMPLES = ("ai.onnx.onnxopset", "acme.onnxopset --out acme/opsets")


@opset.command(epilog=examples_text("opset export", EXPORT_EXAMPLES))
def export(
    domain: Annotated[str, typer.Option("--domain", "-d", metavar="DOMAIN", help="The domain.")],
    out: Annotated[
        Path | None, typer.Argument(metavar="OUT", help="The file to write (default: stdout).")
    ] = None,
    version: Annotated[
        int | None, typer.Option("--version", metavar="N", help="The opset (default: newest).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace OUT if it exists.")] = False,
    folders: DefinitionsOption = None,
    form: Annotated[
        DocumentFormat | None,
        typer.Option("--format", help="The format (default: by the suffix of OUT, otherwise onnxopset)."),
    ] = None,
) -> None:
    """Write the definitions of a domain at an opset to a document.

    An onnxopset document is an OperatorSetProto of ONNX's IR specification, with the definitions in a field
    that other readers ignore. The suffix of OUT is .onnxopset, .yaml or .json.
    """
    from opshift.registry.documents.files import write_document
    from opshift.registry.documents.from_registry import operator_set

    if form is None:
        suffix = out.suffix.removeprefix(".") if out else ""
        form = next((each for each in DocumentFormat if each == suffix), DocumentFormat.ONNXOPSET)
    content = write_document(operator_set(registry_with(folders), domain, version), form)
    if out is None:
        typer.get_binary_stream("stdout").write(content)
        return
    place = write_destination(out)
    if place.exists() and not force:
        raise UsageError("already exists", place=str(out), remedy="replace it with --force")
    write_files({place: content}, new=() if force else (place,))


@opset.command(epilog=examples_text("opset load", LOAD_EXAMPLES))
def load(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="The document to read.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Write the definitions to DIR/<domain>/<operator>.yaml."
        ),
    ] = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Validate a document and list its operators.

    Other commands read the document with --opsets FILE.
    """
    from opshift.registry.documents.files import read_document, write_tree

    require_file(source)
    document = read_document(source)
    written = write_tree(document, out) if out else []
    versions = sum(len(operator.versions) for operator in document.operators)
    data = {
        "input": source,
        "domain": document.domain,
        "opset_version": document.opset_version,
        "operators": [str(version.id) for version in document.versions_in_effect],
        "versions": versions,
        "written": written,
    }
    print_result(form, data, lambda page: _write(page, document, versions, written))


def _write(page: Page, document: OperatorSet, versions: int, written: list[Path]) -> None:
    operators = document.versions_in_effect
    page.title(f"{document.domain}, opset {document.opset_version}: {count_text(len(operators), 'operator')}")
    names = count_text(len(document.operators), "operator name")
    page.line(f"{names}, {count_text(versions, 'version')}", "dim")
    rows = [(each.name, each.id, "deprecated" if each.deprecated else "") for each in operators]
    page.table(OPERATOR_COLUMNS, rows)
    if written:
        page.line(f"wrote {count_text(len(written), 'file')} to {written[0].parent}")
