"""Every step in either direction has a case that preserves outputs, or declares why it is refused."""

from __future__ import annotations

import pytest
from support.any_runtime import compare_before_and_after
from support.cases import own_cases, published_cases
from support.steps import all_steps, exercises_step, opset_before, target_after

from opshift.converter.options import Options
from opshift.converter.plan.planner import Planner
from opshift.model.files import model_of
from opshift.rewriting.version_steps import VersionStep

pytestmark = pytest.mark.every_case

NEVER_REWRITTEN = frozenset(
    {
        "Constant:11 -> 9",
        "DequantizeLinear:24 -> 23",
        "DequantizeLinear:25 -> 24",
        "DequantizeLinear:28 -> 25",
        "If:11 -> 1",
        "Loop:11 -> 1",
        "QuantizeLinear:24 -> 23",
        "QuantizeLinear:25 -> 24",
        "QuantizeLinear:28 -> 25",
        "ml.LabelEncoder:2 -> 4",
    }
)
"""Steps whose adapter refuses or keeps every node that a runtime can run alone."""


def _required_kinds(step: VersionStep) -> set[bool]:
    """Return whether a case with changed nodes (True), with unchanged nodes (False) or both are required."""
    if step.kind in ("adapter", "declared"):
        return {True}
    return {False, True} if step.function and step.source.bridge else {False}


def _preserved_kinds(step: VersionStep) -> set[bool]:
    """Run all own cases and as many ONNX cases as needed, and return which kinds preserved their outputs."""
    preserved = set()
    for case in own_cases(step.source, opset_before(step), step.opset):
        is_changed = exercises_step(step, case)
        if is_changed is not None and compare_before_and_after(case, target_after(step)):
            preserved.add(is_changed)
    for case in published_cases(step.source, opset_before(step)):
        if preserved >= _required_kinds(step):
            break
        is_changed = exercises_step(step, case)
        if (
            is_changed is not None
            and is_changed not in preserved
            and compare_before_and_after(case, target_after(step))
        ):
            preserved.add(is_changed)
    return preserved


@pytest.mark.parametrize("name", [name for name, step in all_steps().items() if step.kind != "refused"])
def test_step_preserves_outputs(name: str) -> None:
    step = all_steps()[name]
    preserved = _preserved_kinds(step)
    assert preserved, "no case exercises this step; add a row to tests/support/nodes"
    if step.kind in ("adapter", "declared"):
        assert True in preserved or name in NEVER_REWRITTEN, (
            "no case has a node that the step changes; add a row to tests/support/nodes"
        )
        assert True not in preserved or name not in NEVER_REWRITTEN, "remove the step from NEVER_REWRITTEN"


@pytest.mark.parametrize("name", [name for name, step in all_steps().items() if step.kind == "refused"])
def test_refused_step_reports_its_reason(name: str) -> None:
    step = all_steps()[name]
    own = own_cases(step.source, opset_before(step), step.opset)
    case = next(own, None) or next(published_cases(step.source, opset_before(step)), None)
    assert case, "no case exercises this step; add a row to tests/support/nodes"
    # The planner alone: a conversion goes on to replace the types that the target lacks inside of the model.
    plan = Planner(model_of(case.model)[0], Options.of(target_after(step))).plan()
    assert {each.reason for each in plan.refusals} == {step.reason}
