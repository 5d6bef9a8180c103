"""Every step, up and down, has a case that runs on both sides with the same numbers, or says why not."""

from __future__ import annotations

import pytest
from support.anywhere import keeps_its_numbers
from support.cases import own_cases, published_cases
from support.steps import changes, far_side, near_side, steps

from opshift import plan_version
from opshift.converter.lineage import Edge

ONLY_LOOKED_AT = frozenset(
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
    }
)
"""Steps whose adapter refuses a node or leaves it as it is."""


def _wanted(step: Edge) -> set[bool]:
    """Whether nodes that the step changes are to be run, or nodes that stay as they are, or both."""
    if step.how in ("adapter", "declared"):
        return {True}
    return {False, True} if step.function and step.source.bridge else {False}


def _shown(step: Edge) -> set[bool]:
    """What was run, and gave the same: all own cases, and of ONNX's as many as it takes."""
    shown = set()
    for case in own_cases(step.source, near_side(step), step.opset):
        is_changed = changes(step, case)
        if is_changed is not None and keeps_its_numbers(case, far_side(step)):
            shown.add(is_changed)
    for case in published_cases(step.source, near_side(step)):
        if shown >= _wanted(step):
            break
        is_changed = changes(step, case)
        if is_changed is not None and is_changed not in shown and keeps_its_numbers(case, far_side(step)):
            shown.add(is_changed)
    return shown


@pytest.mark.parametrize("name", [name for name, step in steps().items() if step.how != "refused"])
def test_the_step_keeps_the_numbers(name: str) -> None:
    step = steps()[name]
    shown = _shown(step)
    assert shown, "no case of this step is run"
    if step.how in ("adapter", "declared"):
        assert (True in shown) != (name in ONLY_LOOKED_AT), "is no case changed, or one that ought not to be?"


@pytest.mark.parametrize("name", [name for name, step in steps().items() if step.how == "refused"])
def test_the_step_says_why_it_is_refused(name: str) -> None:
    step = steps()[name]
    own = own_cases(step.source, near_side(step), step.opset)
    case = next(own, None) or next(published_cases(step.source, near_side(step)), None)
    assert case, "no case of this step"
    assert {each.reason for each in plan_version(case.model, far_side(step)).refusals} == {step.reason}
