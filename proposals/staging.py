"""Registry with a proposed operator added."""

from __future__ import annotations

from opshift.registry.catalogue import Registry
from opshift.registry.errors import UnknownDomain
from opshift.registry.models import Operator
from opshift.registry.names import canonical_domain


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
