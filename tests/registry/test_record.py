"""Records are frozen dataclasses that pydantic validates when they are read from a file."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import field
from typing import Annotated, Any

import pytest
from pydantic import ValidationError

from opshift.registry.record import Checked, Record, from_plain_data, to_plain_data


def doubled(value: Any) -> Any:
    return 2 * value


class Point(Record):
    x: Annotated[int, Checked(ge=0)]
    y: int = 0


class Shape(Record):
    name: str
    points: tuple[Point, ...] = ()
    notes: dict[str, str] = field(default_factory=dict)
    size: Annotated[int, Checked(before=doubled, le=10)] = 1


LINE = Shape(name="line", points=(Point(x=1), Point(x=1, y=2)))


def test_builds_a_record_from_plain_data() -> None:
    data = {"name": "line", "points": [{"x": 1}, {"x": 1, "y": 2}], "size": 0.5}
    assert from_plain_data(Shape, data) == LINE


INVALID: dict[str, tuple[dict[str, Any], tuple[int | str, ...]]] = {
    "a missing field": ({}, ("name",)),
    "an unknown field": ({"name": "dot", "colour": "red"}, ("colour",)),
    "a number below the minimum": ({"name": "dot", "points": [{"x": -1}]}, ("points", 0, "x")),
    "a number above the maximum after conversion": ({"name": "dot", "size": 6}, ("size",)),
}


@pytest.mark.parametrize(("data", "place"), INVALID.values(), ids=INVALID)
def test_refuses_invalid_data_with_its_path(data: dict[str, Any], place: tuple[int | str, ...]) -> None:
    with pytest.raises(ValidationError) as caught:
        from_plain_data(Shape, data)
    assert caught.value.errors()[0]["loc"] == place


PLAIN_DATA: dict[str, tuple[dict[str, Any], object]] = {
    "all fields": (
        {},
        {"name": "line", "points": [{"x": 1, "y": 0}, {"x": 1, "y": 2}], "notes": {}, "size": 1},
    ),
    "without defaults": (
        {"exclude_defaults": True},
        {"name": "line", "points": [{"x": 1}, {"x": 1, "y": 2}]},
    ),
    "without some fields": ({"exclude": {"points", "notes"}}, {"name": "line", "size": 1}),
}


@pytest.mark.parametrize(("options", "data"), PLAIN_DATA.values(), ids=PLAIN_DATA)
def test_converts_a_record_to_plain_data(options: dict[str, Any], data: object) -> None:
    assert to_plain_data(LINE, **options) == data


def test_records_do_not_import_pydantic() -> None:
    code = (
        "import sys; from opshift.registry.models import Parameter; Parameter(name='X', type='T');"
        "print('pydantic' in sys.modules)"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout == "False\n"
