"""`opshift opset`: export and load operator-set documents, copy the definitions, and release opsets."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from opshift.cli.commands import HelpCommand, examples_text, subcommand_group
from opshift.cli.errors import names_in_arguments
from opshift.cli.options import (
    DefinitionsOption,
    ForceOption,
    Format,
    FormatOption,
    OutArgument,
    QuietOption,
    local_path,
    registry_with,
)
from opshift.cli.output import print_result, write_out
from opshift.cli.page import Page
from opshift.cli.paths import DASH, STDOUT, require_file, require_no_terminal
from opshift.cli.registry.listing import OPERATOR_COLUMNS
from opshift.model.errors import UsageError
from opshift.model.message_text import count_text
from opshift.opsets import OPSETS
from opshift.registry.documents.document import DocumentError, OperatorNames, OperatorSet, operator_set
from opshift.registry.documents.files import (
    DocumentFormat,
    read_document,
    read_set_or_names,
    write_document,
    write_tree,
)

opset = subcommand_group("Export and load operator sets, copy the definitions, and release opsets.")

EXPORT_EXAMPLES = ("ai.onnx.onnxopset --domain ai.onnx --version 17", "--domain ai.onnx.ml --format yaml")

LOAD_EXAMPLES = ("ai.onnx.onnxopset", "acme.onnxopset --out acme/opsets")


@opset.command(cls=HelpCommand, epilog=examples_text("opset export", EXPORT_EXAMPLES))
@names_in_arguments()
def export(
    domain: Annotated[str, typer.Option("--domain", "-d", metavar="DOMAIN", help="The domain.")],
    out: OutArgument = None,
    version: Annotated[
        int | None, typer.Option("--version", metavar="N", help="The opset (default: newest).")
    ] = None,
    force: ForceOption = False,
    folders: DefinitionsOption = None,
    prerelease: Annotated[
        str,
        typer.Option("--prerelease", metavar="TEXT", help="The field ir_version_prerelease, such as rc.1."),
    ] = "",
    build: Annotated[
        str,
        typer.Option("--build-metadata", metavar="TEXT", help="The field ir_build_metadata."),
    ] = "",
    text: Annotated[
        str, typer.Option("--doc", metavar="TEXT", help="The field doc_string: a description of the set.")
    ] = "",
    form: Annotated[
        DocumentFormat | None,
        typer.Option("--format", help="The format (default: by the suffix of OUT, otherwise onnxopset)."),
    ] = None,
) -> None:
    """Write the definitions of a domain at an opset to a document.

    An onnxopset document is an OperatorSetProto of ONNX's IR specification, with the definitions in a field
    that other readers ignore. Its IR version is that of the first ONNX release with the opset; for a private
    domain, the newest. The suffix of OUT is .onnxopset, .yaml or .json.
    """
    if form is None:
        suffix = out.suffix.removeprefix(".") if out else ""
        form = next((each for each in DocumentFormat if each == suffix), DocumentFormat.ONNXOPSET)
    if form is DocumentFormat.ONNXOPSET and (out is None or str(out) == DASH):
        require_no_terminal(STDOUT, "redirect it, name a file to write, or print --format yaml")
    registry = registry_with(folders)
    try:
        operators = operator_set(
            registry,
            domain,
            version,
            prerelease=prerelease,
            build_metadata=build,
            doc_string=text,
        )
    except DocumentError as error:
        raise UsageError(error.reason, remedy=error.remedy) from error
    content = write_document(operators, form, registry)
    write_out(out, content, force=force)


@opset.command(cls=HelpCommand, epilog=examples_text("opset load", LOAD_EXAMPLES))
def load(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="The document to read.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Write the definitions to DIR/<domain>/<operator>.yaml.",
            parser=local_path,
        ),
    ] = None,
    quiet: QuietOption = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Validate a document and list its operators.

    Other commands read the document with --opsets FILE. Documents of other tools contain names without
    definitions: they are listed, but no command can use them.
    """
    require_file(source)
    document = read_document(source) if out else read_set_or_names(source)
    data: dict[str, object] = {
        "input": source,
        "domain": document.domain,
        "opset_version": document.opset_version,
        **document.header._asdict(),
        "defined": isinstance(document, OperatorSet),
    }
    if not isinstance(document, OperatorSet):
        data["operators"] = [str(each.id) for each in document.operators]
        print_result(form, data, lambda page: _write_names(page, document), quiet=quiet)
        return
    written = write_tree(document, out) if out else []
    versions = sum(len(operator.versions) for operator in document.operators)
    data |= {
        "operators": [str(version.id) for version in document.versions_in_effect],
        "versions": versions,
        "written": written,
    }
    print_result(form, data, lambda page: _write_loaded(page, document, versions, written), quiet=quiet)


def _write_names(page: Page, document: OperatorNames) -> None:
    _write_header(page, document, len(document.operators))
    page.line("names only: the document does not define signatures", "bold magenta")
    rows = [
        (each.id.op_type, each.id, "experimental" if each.status == "EXPERIMENTAL" else "")
        for each in document.operators
    ]
    page.table(OPERATOR_COLUMNS, rows)


def _write_header(page: Page, document: OperatorSet | OperatorNames, count: int) -> None:
    header = document.header
    page.title(f"{document.domain}, opset {document.opset_version}: {count_text(count, 'operator')}")
    suffixes = (("-", header.ir_version_prerelease), ("+", header.ir_build_metadata))
    page.line(f"IR version {header.ir_version}" + "".join(f"{sign}{text}" for sign, text in suffixes if text))
    if header.doc_string:
        page.line(header.doc_string)


@opset.command(cls=HelpCommand, epilog=examples_text("opset copy", ("opsets",)))
def copy(
    tree: Annotated[Path, typer.Argument(metavar="TREE", help="The folder to create.", parser=local_path)],
    quiet: QuietOption = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Copy the built-in definitions to a tree, which proposals extend.

    Commands read the tree with --opsets TREE, in place of the built-in definitions.
    """
    if tree.exists():
        raise UsageError("already exists", place=str(tree), remedy="name a new folder")
    shutil.copytree(OPSETS, tree, ignore=shutil.ignore_patterns("*.py", "*.binpb", "*.proto", "__pycache__"))
    text = f"wrote {tree}: extend it with `opshift proposal new ... --opsets {tree}`"
    print_result(form, {"tree": tree}, lambda page: page.line(text), quiet=quiet)


@opset.command(cls=HelpCommand, epilog=examples_text("opset release", ("--opsets opsets",)))
def release(
    tree: Annotated[Path, typer.Option("--opsets", metavar="TREE", help="The folder of definitions.")],
    quiet: QuietOption = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Close the opset that accepted proposals extend.

    Marks its release in releases.yaml as released, and records the fingerprints of all versions. Refuses,
    and writes nothing, if a definition differs from its recorded fingerprint.
    """
    from opshift.proposals.accept import release as closed_in

    released = closed_in(tree)

    def write(page: Page) -> None:
        page.title(f"released {released.name}: {count_text(len(released.versions), 'new version')}")
        for each in (*released.versions, *(f"wrote {file}" for file in released.files)):
            page.line(str(each))

    data = {"release": released.name, "versions": [*map(str, released.versions)], "files": released.files}
    print_result(form, data, write, quiet=quiet)


def _write_loaded(page: Page, document: OperatorSet, versions: int, written: list[Path]) -> None:
    operators = document.versions_in_effect
    _write_header(page, document, len(operators))
    names = count_text(len(document.operators), "operator name")
    page.line(f"{names}, {count_text(versions, 'version')}")
    rows = [(each.name, each.id, "deprecated" if each.deprecated else "") for each in operators]
    page.table(OPERATOR_COLUMNS, rows)
    if written:
        page.line(f"wrote {count_text(len(written), 'file')} to {written[0].parent}")
