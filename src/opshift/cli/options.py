"""The options that several commands share, and what they stand for."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opshift.converter.errors import UsageError

if TYPE_CHECKING:
    from opshift.registry.catalogue import Registry


class Format(StrEnum):
    """How a command answers."""

    TEXT = "text"
    JSON = "json"


def run_adapters(paths: list[Path] | None) -> list[Path] | None:
    """Run the adapters that the command line names."""
    if paths:
        from opshift.adapters.extensions import load_adapters

        for path in paths:
            load_adapters(path)
    return paths


FormatOption = Annotated[
    Format, typer.Option("--format", help="Text for people, or one JSON document on stdout, errors included.")
]
FoldersOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--opsets",
        metavar="FOLDER",
        help="Read additional definitions, laid out as <domain>/<operator>.yaml. May be repeated. A folder "
        "with a releases.yaml is a whole tree, which takes the place of the project's own. A file is a "
        "document of `opshift opset export`.",
    ),
]
AdaptersOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--adapters",
        metavar="PATH",
        callback=run_adapters,
        help="Run a Python file with adapters for what --opsets defines, or all in a folder. May be "
        "repeated.",
    ),
]
TargetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        "-t",
        metavar="TARGET",
        help="An opset (17), a domain's opset (ai.onnx.ml=3), or a release (onnx-1.12, onnxruntime-1.14, and "
        "what `opshift targets` lists). May be repeated, and left out with --ir-version.",
    ),
]
IrVersionOption = Annotated[
    str | None,
    typer.Option(
        "--ir-version",
        metavar="N|keep",
        help="The IR version to convert to, or keep. By default a release gets none that it does not take, "
        "and an opset that of the first ONNX release with it, if no more is needed.",
    ),
]
AllowOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="KIND",
        help="Go on where the result is not exact: approximate (it may differ in rounding) or "
        "assume-nonnegative (indices are taken to be no less than zero). Or drop what the IR version has no "
        "place for: drop-metadata, drop-training, drop-devices. May be repeated.",
    ),
]
DomainOption = Annotated[
    str | None, typer.Option("--domain", "-d", metavar="DOMAIN", help="The domain, such as ai.onnx.ml.")
]
OpsetOption = Annotated[
    int | None, typer.Option("--opset", metavar="N", help="The opset of the domain; by default the newest.")
]
InputArgument = Annotated[Path, typer.Argument(metavar="IN", help="The model to read.", show_default=False)]
OperatorArgument = Annotated[
    str,
    typer.Argument(
        metavar="OPERATOR", help="Conv, Softmax:11 or ai.onnx.ml.LabelEncoder.", show_default=False
    ),
]


def registry_with(folders: list[Path] | None) -> Registry:
    """The project's definitions and those in `folders`, some of which may be operator-set documents.

    Raises:
        UsageError: one does not exist.
        DefinitionError: one holds no definitions, or wrong ones.
    """
    from opshift.registry.layered import registry_over

    for folder in folders or ():
        if not folder.exists():
            raise UsageError("there is no such folder", place=str(folder), remedy="check what --opsets names")
    registry = registry_over([each for each in folders or () if not each.is_file()])
    for document in folders or ():
        registry = registry.with_document(document) if document.is_file() else registry
    return registry
