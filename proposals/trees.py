"""Tree of definitions that a proposal extends."""

from __future__ import annotations

from pathlib import Path

from opshift.registry.catalogue import Registry, default_registry
from opshift.registry.layered import registry_over


def tree_registry(tree: Path | None) -> Registry:
    """Return the definitions of a tree, overlaid on the project's own unless the tree is complete.

    An empty or missing folder is a new tree, to which the project's definitions apply.
    """
    has_definitions = tree is not None and next(tree.glob("*/*.yaml"), None) is not None
    return registry_over([tree]) if tree is not None and has_definitions else default_registry()
