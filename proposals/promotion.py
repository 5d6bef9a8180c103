"""Experimental operator that a promotion replaces with a stable one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from opshift.proposals.draft import Defined
from opshift.proposals.texts import quoted
from opshift.registry.models import Deprecation, Operator
from opshift.registry.names import OperatorId


def superseded(draft: Defined) -> Operator:
    """Return the experimental operator, deprecated in favour of the stable one.

    The rule `promotion.source` ensures that the operator exists.
    """
    operator_id = OperatorId.parse(draft.proposal.promotes)
    operator = draft.registry.operator(operator_id.op_type, operator_id.domain)
    assert operator is not None
    last = replace(operator.versions[-1], deprecation=_deprecation(draft))
    return replace(operator, versions=(*operator.versions[:-1], last))


def superseded_file(draft: Defined, tree: Path) -> tuple[Path, str]:
    """Return the definition file of the experimental operator and its content with the deprecation."""
    operator_id, deprecation = OperatorId.parse(draft.proposal.promotes), _deprecation(draft)
    path = tree / operator_id.domain / f"{operator_id.op_type}.yaml"
    deprecation_line = (
        f"  deprecation: {{replaced_by: {deprecation.replaced_by}, mapping: {quoted(deprecation.mapping)}}}"
    )
    return path, f"{path.read_text('utf-8').rstrip()}\n{deprecation_line}\n"


def _deprecation(draft: Defined) -> Deprecation:
    mapping = " ".join(draft.proposal.mapping.split())
    return Deprecation(replaced_by=f"{draft.operator.domain}.{draft.operator.name}", mapping=mapping)
