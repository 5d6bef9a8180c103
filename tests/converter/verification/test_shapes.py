"""Sizes for dimensions that a model leaves open."""

from __future__ import annotations

from itertools import islice

import pytest

from opshift.converter.verification.shapes import MOST_LAYOUTS, Dim, Input, layouts


def of(**dims: tuple[Dim, ...] | None) -> list[Input]:
    return [Input(name, "tensor(float)", "float", each) for name, each in dims.items()]


CASES = {
    "all is said": (of(x=(2, 5)), {}, [{"x": (2, 5)}]),
    "a scalar": (of(x=()), {}, [{"x": ()}]),
    "a size of 0 stays 0": (of(x=(0, 2)), {}, [{"x": (0, 2)}]),
    "one name, one size": (
        of(x=("N", "L"), y=("N", 4), z=("L",)),
        {},
        [{"x": (2, 2), "y": (2, 4), "z": (2,)}, {"x": (3, 3), "y": (3, 4), "z": (3,)}],
    ),
    "others differ, then are alike": (
        of(x=("N", "H", "W")),
        {},
        [{"x": (2, 3, 4)}, {"x": (2, 3, 3)}, {"x": (3, 3, 3)}, {"x": (1, 1, 1)}, {"x": (2, 8, 8)}],
    ),
    "dimensions without a name": (of(x=(None, 3, None)), {}, [{"x": (2, 3, 3)}, {"x": (3, 3, 3)}]),
    "a name that has a size": (of(x=("N", 3)), {"N": 7}, [{"x": (7, 3)}]),
}


@pytest.mark.parametrize(("inputs", "bound", "expected"), CASES.values(), ids=CASES)
def test_open_dimensions(
    inputs: list[Input], bound: dict[str, int], expected: list[dict[str, tuple[int, ...]]]
) -> None:
    assert list(islice(layouts(inputs, bound), len(expected))) == expected


def test_no_shape_comes_twice() -> None:
    assert len(list(layouts(of(x=(1, 2)), {}))) == 1
    several = list(layouts(of(x=("N", "H")), {}))
    assert len(several) == len({each["x"] for each in several}) == 6


def test_without_a_rank_several_are_tried() -> None:
    found = list(layouts(of(x=None), {}))
    assert len(found) <= MOST_LAYOUTS
    assert {len(each["x"]) for each in found} >= {2, 1, 3}
