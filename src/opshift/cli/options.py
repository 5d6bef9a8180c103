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


FormatOption = Annotated[
    Format, typer.Option("--format", help="Text for people, or one JSON document on stdout, errors included.")
]
FoldersOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--opsets",
        metavar="FOLDER",
        help="Read additional definitions, laid out as <domain>/<operator>.yaml. May be repeated.",
    ),
]
TargetOption = Annotated[
    list[str],
    typer.Option(
        "--target",
        "-t",
        metavar="TARGET",
        help="An opset (17), a domain's opset (ai.onnx.ml=3), or a release (onnx-1.12, onnxruntime-1.14). "
        "May be repeated.",
    ),
]
AllowOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="KIND",
        help="Go on where the result is not exact: approximate (it may differ in rounding) or "
        "assume-nonnegative (indices are taken to be no less than zero). May be repeated.",
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
    """The project's definitions and those in `folders`.

    Raises:
        UsageError: a folder does not exist.
        DefinitionError: a folder holds no definitions, or wrong ones.
    """
    from opshift.registry.catalogue import default_registry

    registry = default_registry()
    for folder in folders or ():
        if not folder.is_dir():
            raise UsageError("there is no such folder", place=str(folder), remedy="check what --opsets names")
        registry = registry.with_folder(folder)
    return registry
