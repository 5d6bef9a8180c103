"""Options of the commands of `opshift proposal`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from opshift.registry.catalogue import Registry

ProposalArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="The proposal's folder.", show_default=False)
]
TreeOption = Annotated[
    Path | None,
    typer.Option(
        "--opsets", metavar="TREE", help="The definitions to which the proposal applies (default: built-in)."
    ),
]


def registry_of(tree: Path | None) -> Registry:
    """Return the definitions to which a proposal applies.

    Raises:
        DefinitionError: a definition is invalid.
    """
    from opshift.proposals.trees import tree_registry

    return tree_registry(tree)
