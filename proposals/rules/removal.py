"""Rules for deprecations, removals and promotions."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.checker.findings import Level
from opshift.model.errors import OpshiftError
from opshift.model.operator_ids import OperatorId
from opshift.proposals.content.draft import Defined
from opshift.proposals.content.folder import OPERATOR, PROPOSAL
from opshift.proposals.rules.rule_table import Flaw, rule
from opshift.registry.models import Deprecation, OperatorVersion, Removal
from opshift.registry.steps import Refuse

REMOVING = "ONNX, Adding New Operator: removing operators"

PREVIEW = "ONNX, Experimental and preview operators"

LEAST = 20
"""Number of characters below which a mapping counts as missing."""


@rule(
    "leaving.replacement", Level.ERROR, source=REMOVING, remedy="name an operator of the set in `replaced_by`"
)
def there_is_a_replacement(draft: Defined) -> Iterator[Flaw]:
    """A deprecated or removed operator has a replacement in the set that is not deprecated itself."""
    retirement = _retirement(draft.version)
    if retirement is None:
        return
    if not retirement.replaced_by:
        yield Flaw("no replacement is named", OPERATOR, _retirement_keys(draft))
        return
    found = _replacement(draft, retirement.replaced_by)
    if found is None or found.name == draft.operator.name:
        yield Flaw(
            f"the replacement {retirement.replaced_by} does not exist in opset {draft.opset}",
            OPERATOR,
            _retirement_keys(draft),
        )
    elif found.deprecated:
        yield Flaw(
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
def the_mapping_is_told(draft: Defined) -> Iterator[Flaw]:
    """The proposal and the definition describe how to convert nodes of the old operator to the new one."""
    retirement = _retirement(draft.version)
    if retirement is not None and not retirement.mapping.strip():
        yield Flaw("operator.yaml describes no mapping", OPERATOR, _retirement_keys(draft))
    needs_mapping = retirement is not None or draft.proposal.kind == "promotion"
    if needs_mapping and len(draft.proposal.mapping.strip()) < LEAST:
        yield Flaw(f"the mapping in proposal.yaml has fewer than {LEAST} characters", PROPOSAL, ("mapping",))


@rule("leaving.way", Level.ERROR, source=REMOVING, remedy="write the step up as verbs or an adapter")
def the_way_to_the_replacement_is_written(draft: Defined) -> Iterator[Flaw]:
    """The converter can upgrade models to the replacement."""
    version = draft.version
    if version.deprecation is not None:
        action = version.step.up if version.step else None
        if action is None or action == "compatible" or isinstance(action, Refuse):
            yield Flaw(
                "the step up does not convert nodes to the replacement",
                OPERATOR,
                ("versions", draft.position, "step"),
            )
    elif version.removal is not None and isinstance(version.removal.up, Refuse):
        yield Flaw(
            "the removal does not convert nodes to the replacement",
            OPERATOR,
            (*_retirement_keys(draft), "up"),
        )


@rule("leaving.function", Level.ERROR, source=REMOVING, remedy="name a function with the same semantics")
def a_function_goes_for_a_function(draft: Defined) -> Iterator[Flaw]:
    """A function is removed only in favour of another function.

    Runtimes do not have to implement functions, so only an equivalent function justifies the removal.
    """
    removal = draft.version.removal
    if removal is None or not removal.replaced_by or not _is_function(draft.version):
        return
    found = _replacement(draft, removal.replaced_by)
    if found is not None and not _is_function(found):
        yield Flaw(
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
def what_is_promoted_exists(draft: Defined) -> Iterator[Flaw]:
    """A promotion names an existing experimental operator."""
    if draft.proposal.kind != "promotion":
        return
    try:
        operator_id = OperatorId.parse(draft.proposal.promotes)
        found = draft.registry.at(operator_id.op_type, operator_id.since_version, operator_id.domain)
    except OpshiftError:
        found = None
    if found is None:
        yield Flaw(
            f"the operator to promote does not exist: {draft.proposal.promotes or 'none is named'}",
            PROPOSAL,
            ("promotes",),
        )
    elif found.status != "EXPERIMENTAL":
        yield Flaw(f"{found.id} is not experimental", PROPOSAL, ("promotes",))


def _retirement(version: OperatorVersion) -> Deprecation | Removal | None:
    return version.removal or version.deprecation


def _replacement(draft: Defined, name: str) -> OperatorVersion | None:
    domain, _, op_type = name.rpartition(".")
    newest = min(draft.opset, draft.staged.newest_opset(draft.operator.domain))
    return draft.staged.at(op_type, newest, domain or draft.operator.domain)


def _is_function(version: OperatorVersion) -> bool:
    return version.body is not None


def _retirement_keys(draft: Defined) -> tuple[int | str, ...]:
    return ("versions", draft.position, "removal" if draft.version.removal else "deprecation")
