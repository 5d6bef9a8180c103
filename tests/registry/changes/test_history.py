"""Steps of a version history and the findings of compatibility modes."""

from __future__ import annotations

from typing import Any

import pytest

from opshift.registry.changes.classes import ChangeClass
from opshift.registry.changes.history import history_findings, history_steps
from opshift.registry.changes.policies import Mode
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.record import from_plain_data
from opshift.registry.registry import default_registry


def _operator(*versions: dict[str, Any]) -> Operator:
    built = (
        from_plain_data(
            OperatorVersion, {"domain": "com.acme", "name": "Blur", "since_version": number, **fields}
        )
        for number, fields in enumerate(versions, 1)
    )
    return Operator(domain="com.acme", name="Blur", versions=tuple(built))


def _mode(*values: int) -> dict[str, Any]:
    return {"attributes": {"mode": {"type": "INT", "values": values}}}


NO_ATTRIBUTES: dict[str, Any] = {}
OPTIONAL = {"attributes": {"mode": {"type": "INT"}}}
WIDENED_THEN_NARROWED = _operator(_mode(0), _mode(0, 1), _mode(0))
ADDED_THEN_REMOVED = _operator(NO_ATTRIBUTES, OPTIONAL, NO_ATTRIBUTES)
NARROWED_TWICE = _operator(_mode(0, 1, 2), _mode(0, 1), _mode(0))
REMOVED = _operator(NO_ATTRIBUTES, {"removal": {"removed_in": 5, "up": "adapter"}})

Expected = list[tuple[str, str]]


@pytest.mark.parametrize(
    ("operator", "mode", "expected"),
    [
        pytest.param(WIDENED_THEN_NARROWED, Mode.NONE, [], id="none"),
        pytest.param(WIDENED_THEN_NARROWED, Mode.BACKWARD, [("3", "values-removed")], id="backward"),
        pytest.param(WIDENED_THEN_NARROWED, Mode.FORWARD, [("2", "values-added")], id="forward"),
        pytest.param(
            WIDENED_THEN_NARROWED, Mode.FULL, [("2", "values-added"), ("3", "values-removed")], id="full"
        ),
        pytest.param(
            WIDENED_THEN_NARROWED,
            Mode.BACKWARD_TRANSITIVE,
            [("3", "values-removed")],
            id="backward transitive finds the removed value once",
        ),
        pytest.param(
            NARROWED_TWICE,
            Mode.BACKWARD,
            [("2", "values-removed"), ("3", "values-removed")],
            id="backward finds both steps",
        ),
        pytest.param(
            NARROWED_TWICE,
            Mode.BACKWARD_TRANSITIVE,
            [("2", "values-removed"), ("3", "values-removed"), ("3", "values-removed")],
            id="backward transitive compares with all earlier versions",
        ),
        pytest.param(
            ADDED_THEN_REMOVED,
            Mode.FORWARD,
            [("2", "attribute-added")],
            id="forward allows a removed attribute",
        ),
        pytest.param(
            ADDED_THEN_REMOVED,
            Mode.BACKWARD,
            [("3", "attribute-removed")],
            id="backward finds a removed attribute",
        ),
        pytest.param(REMOVED, Mode.BACKWARD, [("5", "operator-removed")], id="backward finds a removal"),
        pytest.param(REMOVED, Mode.NONE, [], id="none allows a removal"),
    ],
)
def test_a_mode_reports_incompatible_steps(operator: Operator, mode: Mode, expected: Expected) -> None:
    found = history_findings((operator,), mode)
    assert [(each.operator.rpartition(":")[2], each.change.rule) for each in found] == expected


def test_a_finding_has_a_reason_and_a_remedy() -> None:
    (finding,) = history_findings((WIDENED_THEN_NARROWED,), Mode.BACKWARD)
    assert finding.reason == "mode backward does not allow this change from com.acme.Blur:2"
    assert finding.remedy
    assert finding.as_dict()["operator"] == "com.acme.Blur:3"


def test_transitive_modes_include_the_findings_of_plain_modes() -> None:
    operators = list(default_registry().operators("ai.onnx.ml"))
    for plain, transitive in (
        (Mode.BACKWARD, Mode.BACKWARD_TRANSITIVE),
        (Mode.FORWARD, Mode.FORWARD_TRANSITIVE),
        (Mode.FULL, Mode.FULL_TRANSITIVE),
    ):
        some = {(each.operator, each.change.rule) for each in history_findings(operators, plain)}
        assert some <= {(each.operator, each.change.rule) for each in history_findings(operators, transitive)}


def test_classifies_every_step_of_onnx() -> None:
    operators = list(default_registry().operators())
    steps = list(history_steps(operators))
    pairs = sum(len(operator.versions) - 1 for operator in operators)
    removals = sum(version.removal is not None for operator in operators for version in operator.versions)
    assert len(steps) == pairs + removals
    assert all(step.changes for step in steps)


@pytest.mark.parametrize(
    ("step", "change_class"),
    [
        ("Softmax:13", ChangeClass.RE_ENCODES),
        ("Selu:6", ChangeClass.CHANGES_DEFAULT),
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
def test_classifies_known_steps(step: str, change_class: ChangeClass) -> None:
    name = step.partition(":")[0]
    operator = default_registry().operator(name)
    assert operator is not None
    found = {each.operator: each.change_class for each in history_steps((operator,))}
    assert found[f"ai.onnx.{step}"] is change_class
