"""Rules for deprecations, removals and promotions."""

from opshift.checker.findings import ERROR
from opshift.model.errors import OpshiftError
from opshift.model.operator_ids import OperatorId
from opshift.proposals.content.draft import DefinedDraft
from opshift.proposals.content.findings import ProposalProblem
from opshift.proposals.rules.rule_table import ADDING, PREVIEW, Problems, rule
from opshift.registry.errors import ResolveError
from opshift.registry.models import OperatorVersion
from opshift.registry.steps import Refuse

REMOVING = f"{ADDING}: removing operators"

MIN_MAPPING_LENGTH = 20
"""Number of characters below which a mapping counts as missing."""


@rule("leaving.replacement", ERROR, REMOVING, "name an operator in `replaced_by`, or a list of several")
def check_leaving_replacement(draft: DefinedDraft) -> Problems:
    """A deprecated or removed operator has replacements, which exist and are not deprecated themselves."""
    if draft.retirement is None:
        return
    if not draft.retirement.replacements:
        yield _at_retirement(draft, "no replacement is named", "replaced_by")
    for name in draft.retirement.replacements:
        found = _resolve_replacement(draft, name)
        if isinstance(found, ResolveError):
            problem = _at_retirement(draft, f"unknown replacement {name}: {found.reason}", "replaced_by")
            yield problem._replace(remedy=found.remedy)
        elif (found.domain, found.name) == (draft.operator.domain, draft.operator.name):
            yield _at_retirement(draft, "the operator cannot replace itself", "replaced_by")
        elif found.deprecated:
            yield _at_retirement(draft, f"the replacement {name} is itself deprecated", "replaced_by")


@rule("leaving.mapping", ERROR, REMOVING, "describe it in `mapping` of proposal.yaml and operator.yaml")
def check_leaving_mapping(draft: DefinedDraft) -> Problems:
    """The proposal and the definition describe how to convert nodes of the old operator to the new one."""
    retirement = draft.retirement
    if retirement is not None and not retirement.mapping.strip():
        yield _at_retirement(draft, "operator.yaml describes no mapping")
    needs_mapping = retirement is not None or draft.proposal.kind == "promotion"
    length = len(draft.proposal.mapping.strip())
    if needs_mapping and length < MIN_MAPPING_LENGTH:
        reason = f"`mapping` has {length} characters, fewer than {MIN_MAPPING_LENGTH}"
        yield draft.at_answer(reason, "mapping")


@rule("leaving.way", ERROR, REMOVING, "write the step up as verbs or an adapter")
def check_leaving_way(draft: DefinedDraft) -> Problems:
    """The converter can upgrade models to the replacement."""
    version = draft.version
    if version.deprecation is not None:
        action = version.step.up if version.step else None
        if action is None or action == "compatible" or isinstance(action, Refuse):
            yield draft.at_version("the step up does not convert nodes to the replacement", "step")
    elif version.removal is not None and isinstance(version.removal.up, Refuse):
        yield _at_retirement(draft, "the removal does not convert nodes to the replacement", "up")


@rule(
    "leaving.function",
    ERROR,
    REMOVING,
    "name a function with the same semantics",
    unless=("leaving.replacement",),
)
def check_leaving_function(draft: DefinedDraft) -> Problems:
    """A function is removed only in favour of another function.

    Runtimes do not have to implement functions, so only an equivalent function justifies the removal.
    """
    removal = draft.version.removal
    if removal is None or not draft.version.has_function:
        return
    found = [_resolve_replacement(draft, name) for name in removal.replacements]
    if len(found) != 1 or not (isinstance(found[0], OperatorVersion) and found[0].has_function):
        names = " and ".join(removal.replacements)
        yield _at_retirement(draft, f"{draft.operator.name} is a function, but {names} is not", "replaced_by")


@rule("promotion.source", ERROR, PREVIEW, "name it in `promotes`, as in ai.onnx.preview.Name:1")
def check_promotion_source(draft: DefinedDraft) -> Problems:
    """A promotion names an existing operator that is experimental or belongs to a private domain."""
    if draft.proposal.kind != "promotion":
        return
    try:
        operator_id = OperatorId.parse(draft.proposal.promotes)
        found = draft.registry.known_at(operator_id.op_type, operator_id.since_version, operator_id.domain)
    except OpshiftError:
        found = None
    if found is None:
        name = repr(draft.proposal.promotes)
        yield draft.at_answer(f"the operator to promote does not exist: {name}", "promotes")
    elif found.status != "EXPERIMENTAL" and draft.registry.releases.released_opset(found.domain) is not None:
        yield draft.at_answer(f"{found.id} is already an operator of ONNX, and not experimental", "promotes")


def _resolve_replacement(draft: DefinedDraft, name: str) -> OperatorVersion | ResolveError:
    domain, _, op_type = name.rpartition(".")
    opset = draft.opset if domain in ("", draft.operator.domain) else None
    try:
        return draft.staged.get_schema(op_type, opset, domain or draft.operator.domain)
    except ResolveError as error:
        return error


def _at_retirement(draft: DefinedDraft, reason: str, *keys: str) -> ProposalProblem:
    return draft.at_version(reason, "removal" if draft.version.removal else "deprecation", *keys)
