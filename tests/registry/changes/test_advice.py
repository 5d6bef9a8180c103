"""The advice of change classes is enough: nodes that follow it keep their outputs, without an adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx
import pytest
from onnx import helper
from support.any_runtime import run_in_any_runtime
from support.cases import own_cases, published_cases
from support.domains import onnx_operators
from support.execution import assert_equal

from opshift.registry.changes.classes import BACKWARD, ChangeClass
from opshift.registry.changes.history import HistoryStep, history_steps
from opshift.registry.steps import AddAttribute, IgnoreAttribute

if TYPE_CHECKING:
    from support.published import Case

pytestmark = pytest.mark.every_case

STEPS = {step.operator: step for step in history_steps(onnx_operators()) if step.new is not None}


def _is_rewritten(step: HistoryStep) -> bool:
    declared = step.new.step if step.new else None
    ways = (declared.up, declared.down) if declared else ()
    return any(way == "adapter" or isinstance(way, tuple) for way in ways)


def _has_rule(step: HistoryStep, rule: str) -> bool:
    return any(each.rule == rule for each in step.changes)


REWRITTEN = {
    name: step
    for name, step in STEPS.items()
    if _is_rewritten(step) and (_has_rule(step, "default-changed") or _has_rule(step, "facts-changed"))
}
UNCHANGED = [name for name, step in REWRITTEN.items() if step.change_class in BACKWARD]
SET_EXPLICITLY = [name for name, step in STEPS.items() if step.change_class is ChangeClass.CHANGES_DEFAULT]


def _with_defaults(model: onnx.ModelProto, step: HistoryStep) -> bool:
    """Follow the advice: set what a node leaves to a changed default; return whether there is any."""
    (node,) = model.graph.node
    present = {each.name for each in node.attribute}
    declared = step.new.step.up if step.new and step.new.step else ()
    verbs = declared if isinstance(declared, tuple) else ()
    removed = {each.attribute for each in verbs if isinstance(each, IgnoreAttribute)}
    kept = [each for each in node.attribute if each.name not in removed]
    added = {
        each.subject: step.old.attributes[each.subject].default
        for each in step.changes
        if each.rule == "default-changed" and each.subject not in present
    }
    # the step declares the value if the old default is unknown, or misspelt
    values = {each.attribute: each.value for each in verbs if isinstance(each, AddAttribute)}
    del node.attribute[:]
    node.attribute.extend(kept)
    for name, value in added.items():
        node.attribute.append(helper.make_attribute(name, values.get(name, value)))
    return bool(added)


def _compare(step: HistoryStep, *, follow: bool) -> int:
    """Compare nodes of the old version in both opsets; return how many ran, or 1 for ONNX's own cases."""
    before = step.opset - 1
    compared = sum(_is_kept(each, step, follow) for each in own_cases(step.old, before, step.opset))
    return compared or any(_is_kept(each, step, follow) for each in published_cases(step.old, before))


def _is_kept(case: Case, step: HistoryStep, follow: bool) -> bool:
    """Compare a node in both opsets; return whether there was anything to follow, and runtimes ran it."""
    changed = onnx.ModelProto()
    changed.CopyFrom(case.model)
    if len(changed.graph.node) != 1 or (follow and not _with_defaults(changed, step)):
        return False
    for each in changed.opset_import:
        if each.domain == case.model.graph.node[0].domain:
            each.version = step.opset
    before = run_in_any_runtime(case.model, case.feeds)
    after = run_in_any_runtime(changed, case.feeds) if before else None
    if before and after:
        assert_equal(after.outputs, before.outputs)
    return bool(before and after)


@pytest.mark.parametrize("name", UNCHANGED)
def test_nodes_stay_valid_where_nothing_is_to_do(name: str) -> None:
    assert _compare(REWRITTEN[name], follow=False)


@pytest.mark.parametrize("name", SET_EXPLICITLY)
def test_setting_the_value_keeps_the_outputs(name: str) -> None:
    assert _compare(STEPS[name], follow=True)


@pytest.mark.parametrize("name", REWRITTEN)
def test_adapters_of_upgrades_are_not_called_harmless(name: str) -> None:
    step = REWRITTEN[name]
    assert step.new
    assert step.new.step
    if step.new.step.up not in ("compatible", None):
        assert step.change_class not in BACKWARD
    if step.new.step.up == "adapter":
        assert step.change_class is not ChangeClass.CHANGES_DEFAULT


@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax", "Hardmax"])
def test_setting_the_axis_would_not_keep_the_outputs(name: str) -> None:
    step = STEPS[f"ai.onnx.{name}:13"]
    assert step.change_class is ChangeClass.RE_ENCODES
    rules = {each.rule for each in step.changes if each.subject in ("axis", name)}
    assert rules >= {"meaning-re-encoded"}
