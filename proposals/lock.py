"""The fingerprints of a tree, with those of what is accepted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from opshift.proposals.draft import Defined
from opshift.proposals.promotion import superseded
from opshift.registry.fingerprints import LOCK, load_lock, lock_text, locked, operator_fingerprints
from opshift.registry.models import Operator


def locked_with(draft: Defined, tree: Path) -> str:
    """`fingerprints.yaml`; of a tree that has none yet, with all that it holds."""
    path = tree / LOCK
    lock = load_lock(path) if path.exists() else locked(_own(draft, tree))
    for operator in _changed(draft):
        lock.setdefault(operator.domain, {})[operator.name] = operator_fingerprints(operator)
    return lock_text({domain: dict(sorted(names.items())) for domain, names in sorted(lock.items())})


def _changed(draft: Defined) -> Iterator[Operator]:
    yield draft.operator
    if draft.proposal.kind == "promotion":
        yield superseded(draft)


def _own(draft: Defined, tree: Path) -> Iterator[Operator]:
    """The operators that the tree itself defines."""
    for each in draft.registry.operators():
        if (tree / each.domain / f"{each.name}.yaml").exists():
            yield each
