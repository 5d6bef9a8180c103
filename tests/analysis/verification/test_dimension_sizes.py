"""Sizes for the unknown dimensions of inputs."""

from __future__ import annotations

from itertools import islice

import pytest

from opshift.analysis.verification.inputs import MAX_CANDIDATES, ModelInput, candidate_shapes
from opshift.model.types import Dim


def inputs_of(**dims: tuple[Dim, ...] | None) -> list[ModelInput]:
    return [ModelInput(name, "tensor(float)", "float", each) for name, each in dims.items()]


LAYOUT_CASES = {
    "known shape": (inputs_of(x=(2, 5)), {}, [{"x": (2, 5)}]),
    "scalar": (inputs_of(x=()), {}, [{"x": ()}]),
    "size 0": (inputs_of(x=(0, 2)), {}, [{"x": (0, 2)}]),
    "one size for each name": (
        inputs_of(x=("N", "L"), y=("N", 4), z=("L",)),
        {},
        [{"x": (2, 2), "y": (2, 4), "z": (2,)}, {"x": (3, 3), "y": (3, 4), "z": (3,)}],
    ),
    "unequal sizes, then equal sizes": (
        inputs_of(x=("N", "H", "W")),
        {},
        [
            {"x": each}
            for each in ((2, 3, 4), (2, 3, 3), (3, 3, 3), (1, 3, 4), (1, 3, 3), (2, 8, 8), (2, 1, 1))
        ],
    ),
    "dimensions without a name": (inputs_of(x=(None, 3, None)), {}, [{"x": (2, 3, 3)}, {"x": (3, 3, 3)}]),
    "bound name": (inputs_of(x=("N", 3)), {"N": 7}, [{"x": (7, 3)}]),
}


@pytest.mark.parametrize(("inputs", "bound", "expected"), LAYOUT_CASES.values(), ids=LAYOUT_CASES)
def test_fills_unknown_dimensions(
    inputs: list[ModelInput], bound: dict[str, int], expected: list[dict[str, tuple[int, ...]]]
) -> None:
    assert list(islice(candidate_shapes(inputs, bound), len(expected))) == expected


def test_layouts_are_unique() -> None:
    assert len(list(candidate_shapes(inputs_of(x=(1, 2)), {}))) == 1
    several = list(candidate_shapes(inputs_of(x=("N", "H")), {}))
    assert len(several) == len({each["x"] for each in several}) == 8


def test_tries_several_ranks_if_rank_is_unknown() -> None:
    shapes = list(candidate_shapes(inputs_of(x=None), {}))
    assert len(shapes) <= MAX_CANDIDATES
    assert {len(each["x"]) for each in shapes} >= {2, 1, 3}
