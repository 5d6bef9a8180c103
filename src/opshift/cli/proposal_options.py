"""The options that the commands of `opshift proposal` share."""

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
        "--opsets", metavar="TREE", help="The tree of definitions that it is for; by default opshift's own."
    ),
]


def registry_of(tree: Path | None) -> Registry:
    """The definitions that a proposal is made for.

    Raises:
        DefinitionError: they are wrong.
    """
    from opshift.proposals.trees import tree_registry

    return tree_registry(tree)
