"""Policies and modes: which classes of change each of them allows."""

from __future__ import annotations

import pytest

from opshift.registry.changes.classes import BACKWARD, FORWARD, ChangeClass
from opshift.registry.changes.classify import Classified
from opshift.registry.changes.policies import POLICIES, Mode, needs_new_version
from opshift.registry.diff import Change


def _change(change_class: ChangeClass, rule: str = "some-rule") -> Classified:
    return Classified(rule, change_class, Change("text", "Blur", None, None), "It says so.")


TYPES = _change(ChangeClass.WIDENING, "types-added")
VALUES = _change(ChangeClass.WIDENING, "values-added")


@pytest.mark.parametrize(
    ("policy", "free"),
    [
        ("onnx-strict", {ChangeClass.DOCUMENTATION}),
        ("types-free", {ChangeClass.DOCUMENTATION}),
        ("additive-free", {ChangeClass.DOCUMENTATION, ChangeClass.WIDENING, ChangeClass.ADDS_BEHAVIOUR}),
    ],
)
def test_the_classes_that_a_policy_leaves_free(policy: str, free: set[ChangeClass]) -> None:
    assert {each for each in ChangeClass if POLICIES[policy].allows(_change(each))} == free


@pytest.mark.parametrize(
    ("policy", "types", "values"),
    [("onnx-strict", True, True), ("types-free", False, True), ("additive-free", False, False)],
)
def test_types_and_values_are_not_the_same(policy: str, types: bool, values: bool) -> None:
    assert needs_new_version([TYPES], POLICIES[policy]) is types
    assert needs_new_version([TYPES, VALUES], POLICIES[policy]) is (types or values)


def test_there_are_these_policies_and_no_change_asks_for_nothing() -> None:
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
def test_the_classes_that_a_mode_allows(mode: Mode, allowed: set[ChangeClass]) -> None:
    assert {each for each in ChangeClass if mode.allows(_change(each))} == set(allowed)
    assert mode.is_transitive == ("transitive" in mode)


def test_every_mode_is_covered() -> None:
    assert len(Mode) == 7
