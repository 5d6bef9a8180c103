"""Fingerprints of a tree, updated for an accepted proposal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from opshift.proposals.draft import Defined
from opshift.proposals.promotion import superseded
from opshift.registry.fingerprints import LOCK, load_lock, lock_text, locked, operator_fingerprints
from opshift.registry.models import Operator


def locked_with(draft: Defined, tree: Path) -> str:
    """Return the text of `fingerprints.yaml` with the changed operators added.

    If the tree has no such file yet, the fingerprints of all its operators are included.
    """
    path = tree / LOCK
    lock = load_lock(path) if path.exists() else locked(_operators_of_tree(draft, tree))
    for operator in _changed_operators(draft):
        lock.setdefault(operator.domain, {})[operator.name] = operator_fingerprints(operator)
    return lock_text({domain: dict(sorted(names.items())) for domain, names in sorted(lock.items())})


def _changed_operators(draft: Defined) -> Iterator[Operator]:
    yield draft.operator
    if draft.proposal.kind == "promotion":
        yield superseded(draft)


def _operators_of_tree(draft: Defined, tree: Path) -> Iterator[Operator]:
    """Yield the operators that the tree itself defines; the registry also contains those of the project."""
    for each in draft.registry.operators():
        if (tree / each.domain / f"{each.name}.yaml").exists():
            yield each
