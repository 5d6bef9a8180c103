"""Steps of a history, and what a mode does not allow of them, between neighbours and over all."""

from __future__ import annotations

from typing import Any

import pytest

from opshift.registry.catalogue import default_registry
from opshift.registry.changes.classes import ChangeClass
from opshift.registry.changes.history import history_findings, history_steps
from opshift.registry.changes.policies import Mode
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.record import checked


def _operator(*versions: dict[str, Any]) -> Operator:
    made = (
        checked(OperatorVersion, {"domain": "com.acme", "name": "Blur", "since_version": age, **fields})
        for age, fields in enumerate(versions, 1)
    )
    return Operator(domain="com.acme", name="Blur", versions=tuple(made))


def _mode(*values: int) -> dict[str, Any]:
    return {"attributes": {"mode": {"type": "INT", "values": values}}}


PLAIN: dict[str, Any] = {}
OPTIONAL = {"attributes": {"mode": {"type": "INT"}}}
WIDER_THEN_BACK = _operator(_mode(0), _mode(0, 1), _mode(0))
COMES_AND_GOES = _operator(PLAIN, OPTIONAL, PLAIN)
TWO_NARROW = _operator(_mode(0, 1, 2), _mode(0, 1), _mode(0))
REMOVED = _operator(PLAIN, {"removal": {"removed_in": 5, "up": "adapter"}})

Expected = list[tuple[str, str]]


@pytest.mark.parametrize(
    ("operator", "mode", "expected"),
    [
        pytest.param(WIDER_THEN_BACK, Mode.NONE, [], id="nothing is asked"),
        pytest.param(WIDER_THEN_BACK, Mode.BACKWARD, [("3", "values-removed")], id="backward"),
        pytest.param(WIDER_THEN_BACK, Mode.FORWARD, [("2", "values-added")], id="forward"),
        pytest.param(
            WIDER_THEN_BACK, Mode.FULL, [("2", "values-added"), ("3", "values-removed")], id="both ways"
        ),
        pytest.param(
            WIDER_THEN_BACK,
            Mode.BACKWARD_TRANSITIVE,
            [("3", "values-removed")],
            id="backward over all: what was legal first is legal last",
        ),
        pytest.param(
            TWO_NARROW, Mode.BACKWARD, [("2", "values-removed"), ("3", "values-removed")], id="twice"
        ),
        pytest.param(
            TWO_NARROW,
            Mode.BACKWARD_TRANSITIVE,
            [("2", "values-removed"), ("3", "values-removed"), ("3", "values-removed")],
            id="each version is compared with all before it",
        ),
        pytest.param(COMES_AND_GOES, Mode.FORWARD, [("2", "attribute-added")], id="narrowing passes forward"),
        pytest.param(COMES_AND_GOES, Mode.BACKWARD, [("3", "attribute-removed")], id="a name is gone"),
        pytest.param(REMOVED, Mode.BACKWARD, [("5", "operator-removed")], id="a removal"),
        pytest.param(REMOVED, Mode.NONE, [], id="a removal that nothing speaks against"),
    ],
)
def test_what_a_mode_finds(operator: Operator, mode: Mode, expected: Expected) -> None:
    found = history_findings((operator,), mode)
    assert [(each.operator.rpartition(":")[2], each.change.rule) for each in found] == expected


def test_a_finding_says_against_what_and_what_to_do() -> None:
    (finding,) = history_findings((WIDER_THEN_BACK,), Mode.BACKWARD)
    assert finding.reason == "the mode backward does not allow this against com.acme.Blur:2"
    assert finding.remedy
    assert finding.as_dict()["operator"] == "com.acme.Blur:3"


def test_transitive_modes_find_no_less() -> None:
    operators = list(default_registry().operators("ai.onnx.ml"))
    for plain, transitive in (
        (Mode.BACKWARD, Mode.BACKWARD_TRANSITIVE),
        (Mode.FORWARD, Mode.FORWARD_TRANSITIVE),
        (Mode.FULL, Mode.FULL_TRANSITIVE),
    ):
        some = {(each.operator, each.change.rule) for each in history_findings(operators, plain)}
        assert some <= {(each.operator, each.change.rule) for each in history_findings(operators, transitive)}


def test_every_step_of_onnx_is_classified() -> None:
    operators = list(default_registry().operators())
    steps = list(history_steps(operators))
    pairs = sum(len(operator.versions) - 1 for operator in operators)
    removals = sum(version.removal is not None for operator in operators for version in operator.versions)
    assert len(steps) == pairs + removals
    assert all(step.changes for step in steps)


@pytest.mark.parametrize(
    ("step", "change_class"),
    [
        ("Softmax:13", ChangeClass.CHANGES_DEFAULT),
        ("Clip:11", ChangeClass.RE_ENCODES),
        ("Clip:12", ChangeClass.WIDENING),
        ("Relu:14", ChangeClass.WIDENING),
        ("ArgMax:12", ChangeClass.ADDS_BEHAVIOUR),
        ("Cast:6", ChangeClass.RE_ENCODES),
        ("Add:7", ChangeClass.NARROWS),
        ("Scatter:11", ChangeClass.REMOVAL),
        ("Conv:11", ChangeClass.DOCUMENTATION),
    ],
)
def test_known_steps(step: str, change_class: ChangeClass) -> None:
    name = step.partition(":")[0]
    operator = default_registry().operator(name)
    assert operator is not None
    found = {each.operator: each.change_class for each in history_steps((operator,))}
    assert found[f"ai.onnx.{step}"] is change_class
