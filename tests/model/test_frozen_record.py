"""Records behave as frozen dataclasses, although their methods are not generated."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, field, fields, is_dataclass, replace
from typing import ClassVar

import pytest

from opshift.model.shared_data import FrozenRecord


class Point(FrozenRecord):
    """Record with each kind of field."""

    kind: ClassVar[str] = "point"
    x: int
    y: int = 0
    notes: list[str] = field(default_factory=list)
    label: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x is negative")


class NamedPoint(Point):
    """Record that inherits fields."""

    name: str = "origin"


def test_takes_values_by_position_and_by_name() -> None:
    assert Point(1, y=2) == Point(x=1, y=2, notes=[])
    assert NamedPoint(1, name="end").name == "end"


CALLS: dict[str, Callable[[Callable[..., Point]], object]] = {
    "a missing field": lambda call: call(),
    "an unknown field": lambda call: call(1, z=2),
    "a class variable": lambda call: call(1, kind="line"),
    "a value by position and by name": lambda call: call(1, x=1),
    "too many values": lambda call: call(1, 2, [], "", 5),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_refuses_values_that_are_not_its_fields(call: Callable[[Callable[..., Point]], object]) -> None:
    with pytest.raises(TypeError, match="Point has the fields x, y, notes, label; got"):
        call(Point)


def test_checks_a_new_instance() -> None:
    with pytest.raises(ValueError, match="negative"):
        Point(-1)
    with pytest.raises(ValueError, match="negative"):
        replace(Point(1), x=-1)


def test_restores_a_valid_instance_with_defaults() -> None:
    assert Point.from_valid({"x": 1, "label": "a"}).label == "a"
    assert Point.from_valid({"x": 1}) == Point(1)


def test_gives_each_instance_its_own_default() -> None:
    assert Point(1).notes is not Point(1).notes


def test_fields_cannot_be_assigned_or_deleted() -> None:
    point = Point(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x


def test_compares_the_class_and_the_compared_fields() -> None:
    assert Point(1, label="a") == Point(1, label="b")
    assert Point(1) != Point(2)
    assert NamedPoint(1) != Point(1)
    assert Point(1) != (1, 0, [], "")


def test_hashes_the_compared_fields() -> None:
    first, second = (Point(1, notes=(), label=each) for each in "ab")  # type: ignore[arg-type]
    assert hash(first) == hash(second)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point(1))


def test_prints_its_fields() -> None:
    assert repr(NamedPoint(1, 2)) == "NamedPoint(x=1, y=2, notes=[], name='origin')"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_copies_are_equal(copied: Callable[[Point], Point]) -> None:
    point = Point(1, notes=["a"], label="b")
    assert copied(point) == point
    assert copied(point).label == "b"


def test_is_a_dataclass() -> None:
    assert [each.name for each in fields(NamedPoint)] == ["x", "y", "notes", "label", "name"]
    assert asdict(Point(1)) == {"x": 1, "y": 0, "notes": [], "label": ""}
    assert is_dataclass(Point)


def test_matches_by_position() -> None:
    match NamedPoint(1, 2):
        case NamedPoint(x, y):
            assert (x, y) == (1, 2)
