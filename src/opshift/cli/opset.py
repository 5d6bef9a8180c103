"""`opshift opset`: export and load operator-set documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opshift.cli.commands import SubcommandGroup
from opshift.cli.errors import EXIT_WRONG_USAGE
from opshift.cli.options import DefinitionsOption, Format, FormatOption, registry_with
from opshift.cli.output import count_text, print_result
from opshift.cli.page import Column
from opshift.cli.paths import require_file
from opshift.model.errors import UsageError
from opshift.registry.documents.files import DocumentFormat

if TYPE_CHECKING:
    from opshift.cli.page import Page
    from opshift.registry.documents.document import OperatorSet

opset = typer.Typer(cls=SubcommandGroup)

OPERATOR_COLUMNS = (Column("operator"), Column("version", style="cyan"), Column("note", style="yellow"))

EXPORT_EXAMPLES = ("ai.onnx.onnxopset --domain ai.onnx --version 17", "--domain ai.onnx.ml --format yaml")

LOAD_EXAMPLES = ("ai.onnx.onnxopset", "acme.onnxopset --out acme/opsets")

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="The document to read.", show_default=False)
]

OutArgument = Annotated[
    Path | None,
    typer.Argument(metavar="OUT", help="The file to write (default: stdout).", show_default=False),
]


@opset.callback(invoke_without_command=True)
def start(context: typer.Context) -> None:
    """Export and load operator sets as documents."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(EXIT_WRONG_USAGE)


def export(
    domain: Annotated[str, typer.Option("--domain", "-d", metavar="DOMAIN", help="The domain.")],
    out: OutArgument = None,
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

    content = write_document(operator_set(registry_with(folders), domain, version), _format(form, out))
    if out is None:
        typer.get_binary_stream("stdout").write(content)
        return
    if out.exists() and not force:
        raise UsageError("already exists", place=str(out), remedy="replace it with --force")
    out.write_bytes(content)


def load(
    source: FileArgument,
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
    data = {
        "input": source,
        "domain": document.domain,
        "opset_version": document.opset_version,
        "operators": [str(version.id) for version in document.versions_in_effect],
        "versions": sum(len(operator.versions) for operator in document.operators),
        "written": written,
    }
    print_result(form, data, lambda page: _write(page, document, written))


def _write(page: Page, document: OperatorSet, written: list[Path]) -> None:
    versions = sum(len(operator.versions) for operator in document.operators)
    page.title(
        f"{document.domain}, opset {document.opset_version}: "
        f"{count_text(len(document.versions_in_effect), 'operator')}"
    )
    page.line(
        f"{count_text(len(document.operators), 'operator name')}, {count_text(versions, 'version')}", "dim"
    )
    page.table(
        OPERATOR_COLUMNS,
        [
            (each.name, each.id, "deprecated" if each.deprecated else "")
            for each in document.versions_in_effect
        ],
    )
    if written:
        page.line(f"wrote {count_text(len(written), 'file')} to {written[0].parent}")


def _format(form: DocumentFormat | None, out: Path | None) -> DocumentFormat:
    if form is not None:
        return form
    suffix = out.suffix.removeprefix(".") if out else ""
    return next((each for each in DocumentFormat if each == suffix), DocumentFormat.ONNXOPSET)


for _name, _command, _examples in (("export", export, EXPORT_EXAMPLES), ("load", load, LOAD_EXAMPLES)):
    _lines = [f"opshift opset {_name} {example}" for example in _examples]
    opset.command(_name, epilog="\n\n".join(("Examples:", *_lines)))(_command)
