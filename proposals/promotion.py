"""The experimental operator that a promotion makes stable."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from opshift.proposals.draft import Defined
from opshift.proposals.texts import quoted
from opshift.registry.models import Deprecation, Operator
from opshift.registry.names import OperatorId


def superseded(draft: Defined) -> Operator:
    """It, deprecated in favour of the stable one; the rules have seen to it that there is one."""
    named = OperatorId.parse(draft.proposal.promotes)
    operator = draft.registry.operator(named.op_type, named.domain)
    assert operator is not None
    last = replace(operator.versions[-1], deprecation=_fact(draft))
    return replace(operator, versions=(*operator.versions[:-1], last))


def superseded_file(draft: Defined, tree: Path) -> tuple[Path, str]:
    """The file that defines it, and its content then."""
    named, fact = OperatorId.parse(draft.proposal.promotes), _fact(draft)
    path = tree / named.domain / f"{named.op_type}.yaml"
    line = f"  deprecation: {{replaced_by: {fact.replaced_by}, mapping: {quoted(fact.mapping)}}}"
    return path, f"{path.read_text('utf-8').rstrip()}\n{line}\n"


def _fact(draft: Defined) -> Deprecation:
    mapping = " ".join(draft.proposal.mapping.split())
    return Deprecation(replaced_by=f"{draft.operator.domain}.{draft.operator.name}", mapping=mapping)
