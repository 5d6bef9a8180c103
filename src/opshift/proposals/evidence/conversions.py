"""Run the steps of a proposal: convert the cases, and compare the outputs before and after."""

from collections.abc import Iterator
from typing import Literal

from opshift.converter.convert import convert_version
from opshift.converter.errors import ConversionRefused
from opshift.model.errors import OpshiftError
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.proposals.content.draft import DefinedDraft
from opshift.proposals.evidence.cases import Arrays, Case
from opshift.proposals.evidence.node_models import feeds_of, node_model, with_initializers
from opshift.proposals.evidence.outcomes import OutputComparison, run_and_compare
from opshift.proposals.evidence.run import References, run_model

Direction = Literal["up", "down"]


def convert_and_run(
    case: Case, outputs: Arrays, draft: DefinedDraft, references: References
) -> Iterator[tuple[Direction, OutputComparison]]:
    """Convert and run a case of the proposed version down and up again, and a case of an older version up.

    A case with several inputs is also converted with all inputs except the first as initializers, because
    adapters treat constants differently.
    """
    opset = _opset_of_case(case, draft)
    model = node_model(case, outputs, opset)
    models = [model, with_initializers(model, case)] if len(feeds_of(case)) > 1 else [model]
    targets: dict[Direction, int] = {"down": draft.opset - 1, "up": draft.opset}
    if opset < draft.opset:
        del targets["down"]
    for current in models:
        for direction, target in targets.items():
            converted = _convert(current, target, draft)
            if isinstance(converted, str):
                yield direction, OutputComparison(case, "refused", converted)
                break
            comparison = run_and_compare(case, outputs, converted, references)
            yield direction, comparison
            if comparison.verdict == "differs":
                break  # the step back starts from a wrong model
            current = converted


def run_published_version(case: Case, draft: DefinedDraft, references: References) -> Arrays:
    """Return the outputs of a case of a published version, computed by a runtime.

    Raises:
        CannotRun: no installed runtime supports the version.
    """
    # Only the number of outputs matters here; their types are cleared below.
    placeholders = (case.inputs[0],) * case.version.min_output
    model = node_model(case, placeholders, _opset_of_case(case, draft))
    for value in model.graph.output:
        value.ClearField("type")  # unknown before the run; runtimes infer it
    return tuple(run_model(model, feeds_of(case), references))


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
