"""Classes of change that each policy and mode allows."""

from __future__ import annotations

import pytest

from opshift.registry.changes.classes import BACKWARD, FORWARD, ChangeClass
from opshift.registry.changes.classify import ClassifiedChange
from opshift.registry.changes.diff import Change
from opshift.registry.changes.policies import POLICIES, Mode, needs_new_version


def _change(change_class: ChangeClass, rule: str = "some-rule") -> ClassifiedChange:
    return ClassifiedChange(rule, change_class, Change("text", "Blur", None, None), "Models may break.")


TYPES = _change(ChangeClass.WIDENING, "types-added")
VALUES = _change(ChangeClass.WIDENING, "values-added")


@pytest.mark.parametrize(
    ("policy", "allowed"),
    [
        ("onnx-strict", {ChangeClass.DOCUMENTATION}),
        ("types-free", {ChangeClass.DOCUMENTATION}),
        ("additive-free", {ChangeClass.DOCUMENTATION, ChangeClass.WIDENING, ChangeClass.ADDS_BEHAVIOUR}),
    ],
)
def test_a_policy_allows_classes_of_change(policy: str, allowed: set[ChangeClass]) -> None:
    assert {each for each in ChangeClass if POLICIES[policy].allows(_change(each))} == allowed


@pytest.mark.parametrize(
    ("policy", "types", "values"),
    [("onnx-strict", True, True), ("types-free", False, True), ("additive-free", False, False)],
)
def test_policies_distinguish_types_from_values(policy: str, types: bool, values: bool) -> None:
    assert needs_new_version([TYPES], POLICIES[policy]) is types
    assert needs_new_version([TYPES, VALUES], POLICIES[policy]) is (types or values)


def test_no_policy_requires_a_version_without_changes() -> None:
    assert set(POLICIES) == {"onnx-strict", "types-free", "additive-free"}
    assert not any(needs_new_version([], policy) for policy in POLICIES.values())


@pytest.mark.parametrize(
    ("mode", "allowed"),
    [
        (Mode.NONE, set(ChangeClass)),
        (Mode.BACKWARD, BACKWARD),
        (Mode.FORWARD, FORWARD),
        (Mode.FULL, {ChangeClass.DOCUMENTATION}),
        (Mode.BACKWARD_TRANSITIVE, BACKWARD),
        (Mode.FORWARD_TRANSITIVE, FORWARD),
        (Mode.FULL_TRANSITIVE, {ChangeClass.DOCUMENTATION}),
    ],
)
def test_a_mode_allows_classes_of_change(mode: Mode, allowed: set[ChangeClass]) -> None:
    assert {each for each in ChangeClass if mode.allows(_change(each))} == set(allowed)
    assert mode.is_transitive == ("transitive" in mode)


def test_the_table_covers_every_mode() -> None:
    assert len(Mode) == 7
