"""`opshift data`: all definitions as JSON."""

from typing import Annotated

import typer

import opshift
from opshift.cli.options import DefinitionsOption, registry_with


def data(
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of the data.")] = False,
    folders: DefinitionsOption = None,
) -> None:
    """Print all operator definitions as JSON.

    The file has every version of every operator with its types, texts and conversions, and all releases. It
    is also part of the installed package, as data/operators.json.
    """
    from opshift.catalogue.data_package import DATA, SCHEMA, data_files

    typer.echo(data_files(registry_with(folders), opshift.__version__)[SCHEMA if schema else DATA], nl=False)
