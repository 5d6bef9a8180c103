"""The steps of a proposal, run: nodes are converted over them, and compute the same before and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from opshift.converter.convert import convert_version
from opshift.converter.errors import ConversionRefused
from opshift.converter.verification.runtimes import CannotRun
from opshift.proposals.draft import Defined
from opshift.proposals.evidence.cases import Case
from opshift.proposals.evidence.models import feeds_of, node_model, with_constants
from opshift.proposals.evidence.outcomes import Compared, compared
from opshift.proposals.evidence.running import Outputs, Proposed, run_model
from opshift.registry.errors import OpshiftError
from opshift.registry.names import DEFAULT_DOMAIN

Direction = Literal["up", "down"]


@dataclass(frozen=True)
class Walked:
    """A case taken over the proposal's step in one direction."""

    direction: Direction
    compared: Compared


def walk(case: Case, outputs: Outputs, draft: Defined, proposed: Proposed) -> Iterator[Walked]:
    """A case of the proposed version goes down and, what came of it, up again; an older one goes up.

    Where it has several inputs, once with all of them computed and once with constants but for the first.
    """
    model = node_model(case, outputs, _home(case, draft))
    yield from _walk(model, case, outputs, draft, proposed)
    if len(feeds_of(case)) > 1:
        yield from _walk(with_constants(model, case), case, outputs, draft, proposed)


def _walk(model: Any, case: Case, outputs: Outputs, draft: Defined, proposed: Proposed) -> Iterator[Walked]:
    known = [each for each in outputs if each is not None]
    if _home(case, draft) < draft.opset:
        yield Walked("up", _told(case, known, _converted(model, draft.opset, draft), draft, proposed))
        return
    down = _converted(model, draft.opset - 1, draft)
    yield Walked("down", _told(case, known, down, draft, proposed))
    if not isinstance(down, str):
        yield Walked("up", _told(case, known, _converted(down, draft.opset, draft), draft, proposed))


def run_older(case: Case, draft: Defined) -> Outputs:
    """What a version that is published gives, in a runtime that has it.

    Raises:
        CannotRun: there is none.
    """
    placeholders = (case.inputs[0],) * case.version.min_output
    model = node_model(case, placeholders, _home(case, draft))
    for value in model.graph.output:
        value.ClearField("type")  # runtimes infer it
    return tuple(run_model(model, feeds_of(case), draft.registry, None))


def _home(case: Case, draft: Defined) -> int:
    """The opset at which the model of a case stands: the proposal's, or the one before it."""
    if case.version.since_version == draft.opset:
        return draft.opset
    later = [each.since_version for each in draft.operator.versions]
    after = next((each for each in later if each > case.version.since_version), draft.opset)
    return after - 1


def _converted(model: Any, opset: int, draft: Defined) -> Any:
    """The model at another opset of the operator's domain; a reason if it is refused."""
    domain = draft.operator.domain
    target = {domain: opset}
    if domain != DEFAULT_DOMAIN:
        target[DEFAULT_DOMAIN] = next(each.version for each in model.opset_import if not each.domain)
    try:
        return convert_version(model, target, ir_version="keep", registry=draft.staged)
    except ConversionRefused as error:
        return "; ".join(each.reason for each in error.refusals)
    except OpshiftError as error:
        return error.reason


def _told(
    case: Case, expected: Sequence[Any], converted: Any, draft: Defined, proposed: Proposed
) -> Compared:
    if isinstance(converted, str):
        return Compared(case, "refused", converted)
    try:
        wanted = {each.name for each in converted.graph.input}
        feeds = {name: array for name, array in feeds_of(case).items() if name in wanted}
        found = run_model(converted, feeds, draft.registry, proposed)
    except CannotRun as error:
        return Compared(case, "not run" if error.unsupported else "differs", error.reason)
    return compared(case, expected, found)
