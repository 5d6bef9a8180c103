"""Differences between two versions and between two opsets."""

from __future__ import annotations

import pytest

from opshift.registry.changes.classes import ChangeClass
from opshift.registry.changes.history import operator_difference, opset_differences
from opshift.registry.errors import UnknownDomain, UnknownOpset
from opshift.registry.registry import default_registry

REGISTRY = default_registry()


def test_classifies_the_difference_of_two_versions() -> None:
    clip = REGISTRY.operator("Clip")
    assert clip is not None
    found = operator_difference(clip, clip.versions[1], clip.versions[2])
    assert str(found) == "ai.onnx.Clip 6 -> 11"
    assert found.change_class is ChangeClass.RE_ENCODES


def test_lists_the_versions_that_a_newer_opset_introduces() -> None:
    found = list(opset_differences(REGISTRY, "", 12, 13))
    assert all(each.old is None or each.old.since_version <= 12 for each in found)
    assert all(each.new is not None and each.new.since_version == 13 for each in found)
    names = [each.op_type for each in found]
    assert names == sorted(names)
    assert {"Softmax", "Squeeze", "Relu"} <= set(names)
    assert "Conv" not in names


@pytest.mark.parametrize(
    ("old", "new", "operator", "rule"),
    [
        pytest.param(25, 26, "ai.onnx.BitCast none -> 26", "operator-added", id="added by an upgrade"),
        pytest.param(26, 25, "ai.onnx.BitCast 26 -> none", "operator-removed", id="removed by a downgrade"),
    ],
)
def test_reports_an_operator_in_one_opset_only(old: int, new: int, operator: str, rule: str) -> None:
    found = {str(each): each for each in opset_differences(REGISTRY, "ai.onnx", old, new)}
    assert [each.rule for each in found[operator].changes] == [rule]


def test_reports_removed_operators() -> None:
    removed = [
        each for each in opset_differences(REGISTRY, "", 9, 10) if each.new is None and each.old is not None
    ]
    assert "ATen" in {each.op_type for each in removed}
    assert {each.changes[0].rule for each in removed} == {"operator-removed"}


def test_an_opset_does_not_differ_from_itself() -> None:
    assert list(opset_differences(REGISTRY, "", 13, 13)) == []


def test_refuses_unknown_opsets_and_domains() -> None:
    with pytest.raises(UnknownOpset):
        list(opset_differences(REGISTRY, "", 12, 99))
    with pytest.raises(UnknownDomain):
        list(opset_differences(REGISTRY, "com.acme", 1, 2))
