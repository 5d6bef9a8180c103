"""Rules for deprecations, removals and promotions."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.checker.findings import Level
from opshift.model.errors import OpshiftError
from opshift.model.operator_ids import OperatorId
from opshift.proposals.content.draft import DefinedDraft
from opshift.proposals.content.folder import OPERATOR, PROPOSAL
from opshift.proposals.rules.rule_table import ProposalProblem, rule
from opshift.registry.models import Deprecation, OperatorVersion, Removal
from opshift.registry.steps import Refuse

REMOVING = "ONNX, Adding New Operator: removing operators"

PREVIEW = "ONNX, Experimental and preview operators"

MIN_MAPPING_LENGTH = 20
"""Number of characters below which a mapping counts as missing."""


@rule(
    "leaving.replacement", Level.ERROR, source=REMOVING, remedy="name an operator of the set in `replaced_by`"
)
def check_leaving_replacement(draft: DefinedDraft) -> Iterator[ProposalProblem]:
    """A deprecated or removed operator has a replacement in the set that is not deprecated itself."""
    retirement = _retirement(draft.version)
    if retirement is None:
        return
    if not retirement.replaced_by:
        yield ProposalProblem("no replacement is named", OPERATOR, _retirement_keys(draft))
        return
    found = _replacement(draft, retirement.replaced_by)
    if found is None or found.name == draft.operator.name:
        yield ProposalProblem(
            f"the replacement {retirement.replaced_by} does not exist in opset {draft.opset}",
            OPERATOR,
            _retirement_keys(draft),
        )
    elif found.deprecated:
        yield ProposalProblem(
            f"the replacement {retirement.replaced_by} is itself deprecated",
            OPERATOR,
            _retirement_keys(draft),
        )


@rule(
    "leaving.mapping",
    Level.ERROR,
    source=REMOVING,
    remedy="describe it in `mapping` of proposal.yaml and operator.yaml",
)
def check_leaving_mapping(draft: DefinedDraft) -> Iterator[ProposalProblem]:
    """The proposal and the definition describe how to convert nodes of the old operator to the new one."""
    retirement = _retirement(draft.version)
    if retirement is not None and not retirement.mapping.strip():
        yield ProposalProblem("operator.yaml describes no mapping", OPERATOR, _retirement_keys(draft))
    needs_mapping = retirement is not None or draft.proposal.kind == "promotion"
    if needs_mapping and len(draft.proposal.mapping.strip()) < MIN_MAPPING_LENGTH:
        yield ProposalProblem(
            f"the mapping in proposal.yaml has fewer than {MIN_MAPPING_LENGTH} characters",
            PROPOSAL,
            ("mapping",),
        )


@rule("leaving.way", Level.ERROR, source=REMOVING, remedy="write the step up as verbs or an adapter")
def check_leaving_way(draft: DefinedDraft) -> Iterator[ProposalProblem]:
    """The converter can upgrade models to the replacement."""
    version = draft.version
    if version.deprecation is not None:
        action = version.step.up if version.step else None
        if action is None or action == "compatible" or isinstance(action, Refuse):
            yield ProposalProblem(
                "the step up does not convert nodes to the replacement",
                OPERATOR,
                ("versions", draft.position, "step"),
            )
    elif version.removal is not None and isinstance(version.removal.up, Refuse):
        yield ProposalProblem(
            "the removal does not convert nodes to the replacement",
            OPERATOR,
            (*_retirement_keys(draft), "up"),
        )


@rule("leaving.function", Level.ERROR, source=REMOVING, remedy="name a function with the same semantics")
def check_leaving_function(draft: DefinedDraft) -> Iterator[ProposalProblem]:
    """A function is removed only in favour of another function.

    Runtimes do not have to implement functions, so only an equivalent function justifies the removal.
    """
    removal = draft.version.removal
    if removal is None or not removal.replaced_by or not _is_function(draft.version):
        return
    found = _replacement(draft, removal.replaced_by)
    if found is not None and not _is_function(found):
        yield ProposalProblem(
            f"{draft.operator.name} is a function, but {removal.replaced_by} is not",
            OPERATOR,
            _retirement_keys(draft),
        )


@rule(
    "promotion.source",
    Level.ERROR,
    source=PREVIEW,
    remedy="name it in `promotes`, as in ai.onnx.preview.Name:1",
)
def check_promotion_source(draft: DefinedDraft) -> Iterator[ProposalProblem]:
    """A promotion names an existing experimental operator."""
    if draft.proposal.kind != "promotion":
        return
    try:
        operator_id = OperatorId.parse(draft.proposal.promotes)
        found = draft.registry.at(operator_id.op_type, operator_id.since_version, operator_id.domain)
    except OpshiftError:
        found = None
    if found is None:
        yield ProposalProblem(
            f"the operator to promote does not exist: {draft.proposal.promotes or 'none is named'}",
            PROPOSAL,
            ("promotes",),
        )
    elif found.status != "EXPERIMENTAL":
        yield ProposalProblem(f"{found.id} is not experimental", PROPOSAL, ("promotes",))


def _retirement(version: OperatorVersion) -> Deprecation | Removal | None:
    return version.removal or version.deprecation


def _replacement(draft: DefinedDraft, name: str) -> OperatorVersion | None:
    domain, _, op_type = name.rpartition(".")
    newest = min(draft.opset, draft.staged.newest_opset(draft.operator.domain))
    return draft.staged.at(op_type, newest, domain or draft.operator.domain)


def _is_function(version: OperatorVersion) -> bool:
    return version.body is not None


def _retirement_keys(draft: DefinedDraft) -> tuple[int | str, ...]:
    return ("versions", draft.position, "removal" if draft.version.removal else "deprecation")
