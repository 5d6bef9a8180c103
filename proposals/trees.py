"""The tree of definitions that a proposal is made for."""

from __future__ import annotations

from pathlib import Path

from opshift.registry.catalogue import Registry, default_registry
from opshift.registry.layered import registry_over


def tree_registry(tree: Path | None) -> Registry:
    """The definitions of a tree, with the project's own beneath it unless it is a whole one.

    A folder that is empty, or not there yet, is the beginning of a tree.
    """
    is_there = tree is not None and next(tree.glob("*/*.yaml"), None) is not None
    return registry_over([tree]) if tree is not None and is_there else default_registry()
