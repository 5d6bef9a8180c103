"""`opshift data`, `opshift stubs` and `opshift site`: definitions as JSON, Python module and static site."""

from pathlib import Path
from typing import Annotated

import typer

import opshift
from opshift.cli.errors import names_in_arguments
from opshift.cli.options import (
    AdaptersOption,
    DefinitionsOption,
    DomainOption,
    ForceOption,
    Format,
    FormatOption,
    OpsetOption,
    OutArgument,
    QuietOption,
    local_path,
    registry_with,
)
from opshift.cli.output import print_result, write_out
from opshift.cli.page import Page
from opshift.cli.progress import byte_text, show_progress
from opshift.model.atomic_files import write_files
from opshift.model.errors import UsageError
from opshift.model.message_text import count_text


def data(
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of the data.")] = False,
    folders: DefinitionsOption = None,
) -> None:
    """Print all operator definitions as JSON.

    The document has every version of every operator with its types, texts and conversions, and all releases.
    The installed package contains the document as data/operators.json.
    """
    from opshift.catalogue.data_package import DATA, SCHEMA, data_files

    typer.echo(data_files(registry_with(folders), opshift.__version__)[SCHEMA if schema else DATA], nl=False)


@names_in_arguments()
def stubs(
    out: OutArgument = None,
    opset: OpsetOption = None,
    domain: DomainOption = None,
    force: ForceOption = False,
    folders: DefinitionsOption = None,
) -> None:
    """Write a Python module that builds the nodes of an opset.

    It has one function per operator of the domain (default: ai.onnx), with types, defaults and texts, which
    returns an onnx.NodeProto. The module needs onnx, but not opshift.
    """
    from opshift.registry.documents.node_builders import node_builders

    code = node_builders(registry_with(folders), domain or "", opset)
    write_out(out, code.encode(), force=force)


def site(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write.", parser=local_path)],
    url: Annotated[
        str,
        typer.Option("--url", metavar="URL", help="The address of the site; writes a sitemap.xml with it."),
    ] = "",
    converter: Annotated[
        bool,
        typer.Option(
            "--converter",
            help="Add a page that converts models in the browser. Downloads Pyodide, 6 MB, once.",
        ),
    ] = False,
    force: ForceOption = False,
    folders: DefinitionsOption = None,
    adapters: AdaptersOption = None,
    quiet: QuietOption = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Write the operator catalogue as a static site.

    It has pages about all operators, their versions, opsets, releases and rules, with a search. Each operator
    version is also written as JSON and Markdown. The site needs no server: open index.html in a browser.
    With --force, files of the site replace those in OUT, and other files remain.
    """
    from opshift.catalogue.browser.bundle import converter_files, digest
    from opshift.catalogue.site import build_site, site_images

    if out.exists() and not out.is_dir():
        raise UsageError("is not a folder", place=str(out), remedy="name a folder to write")
    if not force and out.exists() and any(out.iterdir()):
        raise UsageError("is not empty", place=str(out), remedy="replace files in it with --force")
    with show_progress("Building the site", quiet=quiet or form is Format.JSON):
        loaded = converter_files(opshift.__version__) if converter else {}
        built = build_site(
            registry_with(folders),
            opshift.__version__,
            url=url,
            converter=digest(loaded) if loaded else "",
        )
        files = {path: text.encode() for path, text in built.items()} | site_images() | loaded
        write_files({out / path: content for path, content in files.items()})
    pages = sum(path.endswith(".html") for path in files)
    size = sum(map(len, files.values()))
    data = {"folder": str(out), "pages": pages, "files": len(files), "bytes": size}

    def write(page: Page) -> None:
        page.line(f"{out}: {count_text(pages, 'page')}, {count_text(len(files), 'file')}, {byte_text(size)}")
        page.line(f"open {out / 'index.html'} in a browser")
        if converter:
            page.line(f"convert.html needs a web server, such as: python -m http.server -d {out}")
        else:
            page.line("without the page that converts models: add it with --converter")

    print_result(form, data, write, quiet=quiet)
