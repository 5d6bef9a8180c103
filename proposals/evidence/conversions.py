"""Run the steps of a proposal: convert the cases, and compare the outputs before and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from opshift.analysis.verification.numpy_types import Array
from opshift.analysis.verification.runtimes import CannotRun
from opshift.converter.convert import convert_version
from opshift.converter.errors import ConversionRefused
from opshift.model.errors import OpshiftError
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.proposals.content.draft import DefinedDraft
from opshift.proposals.evidence.cases import Case
from opshift.proposals.evidence.node_models import feeds_of, node_model, with_initializers
from opshift.proposals.evidence.outcomes import OutputComparison, compare_outputs
from opshift.proposals.evidence.run import Outputs, ProposedOperator, run_model

Direction = Literal["up", "down"]


@dataclass(frozen=True)
class StepComparison:
    """Comparison of a case before and after conversion in one direction."""

    direction: Direction
    comparison: OutputComparison


def convert_and_run(
    case: Case, outputs: Outputs, draft: DefinedDraft, proposed: ProposedOperator
) -> Iterator[StepComparison]:
    """Convert and run a case of the proposed version down and up again, and a case of an older version up.

    A case with several inputs is also converted with all inputs except the first as initializers, because
    adapters treat constants differently.
    """
    model = node_model(case, outputs, _opset_of_case(case, draft))
    yield from _convert_and_compare(model, case, outputs, draft, proposed)
    if len(feeds_of(case)) > 1:
        yield from _convert_and_compare(with_initializers(model, case), case, outputs, draft, proposed)


def _convert_and_compare(
    model: ModelProto, case: Case, outputs: Outputs, draft: DefinedDraft, proposed: ProposedOperator
) -> Iterator[StepComparison]:
    expected = [each for each in outputs if each is not None]
    if _opset_of_case(case, draft) < draft.opset:
        yield StepComparison(
            "up", _compare_converted(case, expected, _convert(model, draft.opset, draft), draft, proposed)
        )
        return
    down = _convert(model, draft.opset - 1, draft)
    yield StepComparison("down", _compare_converted(case, expected, down, draft, proposed))
    if not isinstance(down, str):
        yield StepComparison(
            "up", _compare_converted(case, expected, _convert(down, draft.opset, draft), draft, proposed)
        )


def run_published_version(case: Case, draft: DefinedDraft) -> Outputs:
    """Return the outputs of a case of a published version, computed by a runtime.

    Raises:
        CannotRun: no installed runtime supports the version.
    """
    # Only the number of outputs matters here; their types are cleared below.
    placeholders = (case.inputs[0],) * case.version.min_output
    model = node_model(case, placeholders, _opset_of_case(case, draft))
    for value in model.graph.output:
        value.ClearField("type")  # unknown before the run; runtimes infer it
    return tuple(run_model(model, feeds_of(case), draft.registry, None))


def _opset_of_case(case: Case, draft: DefinedDraft) -> int:
    """Return the opset for the model of a case: the last one in which its version is in effect.

    For the proposed version this is the proposal's opset.
    """
    if case.version.since_version == draft.opset:
        return draft.opset
    since_versions = [each.since_version for each in draft.operator.versions]
    next_version = next((each for each in since_versions if each > case.version.since_version), draft.opset)
    return next_version - 1


def _convert(model: ModelProto, opset: int, draft: DefinedDraft) -> ModelProto | str:
    """Convert the model to another opset of the operator's domain; return the reason if it is refused."""
    domain = draft.operator.domain
    target = {domain: opset}
    if domain != DEFAULT_DOMAIN:
        # The target has to name every domain; ai.onnx stays at its opset.
        target[DEFAULT_DOMAIN] = next(each.version for each in model.opset_import if not each.domain)
    try:
        return convert_version(model, target, ir_version="keep", registry=draft.staged)
    except ConversionRefused as error:
        return "; ".join(each.reason for each in error.refusals)
    except OpshiftError as error:
        return error.reason


def _compare_converted(
    case: Case,
    expected: Sequence[Array],
    converted: ModelProto | str,
    draft: DefinedDraft,
    proposed: ProposedOperator,
) -> OutputComparison:
    if isinstance(converted, str):
        return OutputComparison(case, "refused", converted)
    try:
        input_names = {each.name for each in converted.graph.input}
        feeds = {name: array for name, array in feeds_of(case).items() if name in input_names}
        found = run_model(converted, feeds, draft.registry, proposed)
    except CannotRun as error:
        return OutputComparison(case, "not run" if error.unsupported else "differs", error.reason)
    return compare_outputs(case, expected, found)
