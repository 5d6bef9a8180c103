"""Conditions of the restrictions of kernels."""

from dataclasses import fields

from opshift.registry.runtimes.restrictions import Condition
from opshift.runtimes.conditions import PARTS, WITHOUT_OPERATOR


def test_each_part_of_a_condition_is_evaluated() -> None:
    assert PARTS.keys() == {each.name for each in fields(Condition)}
    assert PARTS.keys() > WITHOUT_OPERATOR
