"""Tree of definitions that a proposal extends."""

from pathlib import Path

from opshift.model.operator_ids import canonical_domain
from opshift.registry.definition_files import REVIEWERS
from opshift.registry.errors import UnknownDomain
from opshift.registry.registry import Registry, load_registry


def registry_of_tree(tree: Path | None) -> Registry:
    """Return the definitions of a tree, added to the project's own unless the tree is complete.

    An empty or missing folder is a new tree, to which the project's definitions apply.
    """
    is_new = tree is None or not ((tree / REVIEWERS).exists() or any(tree.glob("*/*.yaml")))
    return load_registry([] if tree is None or is_new else [tree])


def released_opset(registry: Registry, domain: str) -> int:
    """Return the newest released opset of a domain; 0 if the registry has none.

    In a domain that `releases.yaml` does not list, every opset counts as released once it is defined.
    """
    domain = canonical_domain(domain)
    published = registry.releases.released_opset(domain)
    if published is not None:
        return published
    try:
        return registry.newest_opset(domain)
    except UnknownDomain:
        return 0


def next_opset(registry: Registry, domain: str) -> int:
    """Return the opset that a new operator version enters: the one after the newest released opset."""
    return released_opset(registry, domain) + 1
