"""Tree of definitions that a proposal extends."""

from __future__ import annotations

from pathlib import Path

from opshift.model.operator_ids import canonical_domain
from opshift.registry.errors import UnknownDomain
from opshift.registry.models import Operator
from opshift.registry.registry import Registry, default_registry, overlay


def registry_of_tree(tree: Path | None) -> Registry:
    """Return the definitions of a tree, overlaid on the project's own unless the tree is complete.

    An empty or missing folder is a new tree, to which the project's definitions apply.
    """
    has_definitions = tree is not None and next(tree.glob("*/*.yaml"), None) is not None
    return overlay([tree]) if tree is not None and has_definitions else default_registry()


class StagedRegistry(Registry):
    """Registry in which a proposal's definition replaces or adds one operator."""

    def __init__(self, base: Registry, operator: Operator) -> None:
        super().__init__(base.folders, base.documents)
        operator_key = (canonical_domain(operator.domain), operator.name)
        names = self._files.setdefault(operator_key[0], {})
        names.setdefault(operator.name, base.folders[0] / operator_key[0] / f"{operator.name}.yaml")
        self._files[operator_key[0]] = dict(sorted(names.items()))
        self._operators[operator_key] = operator
        self._newest[operator_key[0]] = max(_newest(base, operator_key[0]), *_opsets(operator))


def _opsets(operator: Operator) -> list[int]:
    removed = [version.removal.removed_in for version in operator.versions if version.removal]
    return [*removed, *(version.since_version for version in operator.versions)]


def _newest(registry: Registry, domain: str) -> int:
    try:
        return registry.newest_opset(domain)
    except UnknownDomain:
        return 0


def released_opset(registry: Registry, domain: str) -> int:
    """Return the newest released opset of a domain; 0 if the registry has none.

    In a domain that `releases.yaml` does not list, every opset counts as released once it is defined.
    """
    domain = canonical_domain(domain)
    listed = [each for each in registry.releases.onnx.values() if domain in each.opsets]
    if listed:
        return max((each.opsets[domain] for each in listed if each.released), default=0)
    try:
        return registry.newest_opset(domain)
    except UnknownDomain:
        return 0


def next_opset(registry: Registry, domain: str) -> int:
    """Return the opset that a new operator version enters: the one after the newest released opset."""
    return released_opset(registry, domain) + 1
