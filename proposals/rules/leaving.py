"""What a deprecation, a removal or a promotion has to say."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.proposals.draft import Defined
from opshift.proposals.findings import Level
from opshift.proposals.folder import OPERATOR, PROPOSAL
from opshift.proposals.rules.table import Flaw, rule
from opshift.registry.errors import OpshiftError
from opshift.registry.models import Deprecation, OperatorVersion, Removal
from opshift.registry.names import OperatorId
from opshift.registry.steps import Refuse

REMOVING = "ONNX, Adding New Operator: removing operators"
PREVIEW = "ONNX, Experimental and preview operators"
LEAST = 20


@rule(
    "leaving.replacement", Level.ERROR, source=REMOVING, remedy="name in replaced_by an operator of the set"
)
def there_is_a_replacement(draft: Defined) -> Iterator[Flaw]:
    """What goes is replaced by an operator that is in the set, and stays there."""
    fact = _fact(draft.version)
    if fact is None:
        return
    if not fact.replaced_by:
        yield Flaw("nothing replaces it", OPERATOR, _keys(draft))
        return
    found = _replacement(draft, fact.replaced_by)
    if found is None or found.name == draft.operator.name:
        yield Flaw(f"there is no {fact.replaced_by} in opset {draft.opset}", OPERATOR, _keys(draft))
    elif found.deprecated:
        yield Flaw(f"{fact.replaced_by} is deprecated itself", OPERATOR, _keys(draft))


@rule(
    "leaving.mapping",
    Level.ERROR,
    source=REMOVING,
    remedy="say it, in `mapping` of the proposal and the definition",
)
def the_mapping_is_told(draft: Defined) -> Iterator[Flaw]:
    """It is said how nodes of the old operator become nodes of the new one."""
    fact = _fact(draft.version)
    if fact is not None and not fact.mapping.strip():
        yield Flaw("the definition has no mapping", OPERATOR, _keys(draft))
    needs = fact is not None or draft.proposal.kind == "promotion"
    if needs and len(draft.proposal.mapping.strip()) < LEAST:
        yield Flaw("the proposal has no mapping", PROPOSAL, ("mapping",))


@rule("leaving.way", Level.ERROR, source=REMOVING, remedy="write the step up as verbs or an adapter")
def the_way_to_the_replacement_is_written(draft: Defined) -> Iterator[Flaw]:
    """Models are taken to the replacement by the converter."""
    version = draft.version
    if version.deprecation is not None:
        answer = version.step.up if version.step else None
        if answer is None or answer == "compatible" or isinstance(answer, Refuse):
            yield Flaw("no step leads to the replacement", OPERATOR, ("versions", draft.position, "step"))
    elif version.removal is not None and isinstance(version.removal.up, Refuse):
        yield Flaw("no step leads to the replacement", OPERATOR, (*_keys(draft), "up"))


@rule("leaving.function", Level.ERROR, source=REMOVING, remedy="name a function that does all that it does")
def a_function_goes_for_a_function(draft: Defined) -> Iterator[Flaw]:
    """A function is removed only if another function does all that it does.

    A function costs runtimes nothing, so there is no other reason to remove one.
    """
    removal = draft.version.removal
    if removal is None or not removal.replaced_by or not _is_function(draft.version):
        return
    found = _replacement(draft, removal.replaced_by)
    if found is not None and not _is_function(found):
        yield Flaw(
            f"{draft.operator.name} is a function, {removal.replaced_by} is none", OPERATOR, _keys(draft)
        )


@rule("promotion.source", Level.ERROR, source=PREVIEW, remedy="name it in `promotes`: ai.onnx.preview.Name:1")
def what_is_promoted_exists(draft: Defined) -> Iterator[Flaw]:
    """A promotion names the experimental operator that becomes stable."""
    if draft.proposal.kind != "promotion":
        return
    try:
        named = OperatorId.parse(draft.proposal.promotes)
        found = draft.registry.at(named.op_type, named.since_version, named.domain)
    except OpshiftError:
        found = None
    if found is None:
        yield Flaw(f"there is no {draft.proposal.promotes or 'operator named'}", PROPOSAL, ("promotes",))
    elif found.status != "EXPERIMENTAL":
        yield Flaw(f"{found.id} is not experimental", PROPOSAL, ("promotes",))


def _fact(version: OperatorVersion) -> Deprecation | Removal | None:
    return version.removal or version.deprecation


def _replacement(draft: Defined, name: str) -> OperatorVersion | None:
    domain, _, op_type = name.rpartition(".")
    newest = min(draft.opset, draft.staged.newest_opset(draft.operator.domain))
    return draft.staged.at(op_type, newest, domain or draft.operator.domain)


def _is_function(version: OperatorVersion) -> bool:
    return version.body is not None


def _keys(draft: Defined) -> tuple[int | str, ...]:
    return ("versions", draft.position, "removal" if draft.version.removal else "deprecation")
