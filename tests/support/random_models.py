"""Hypothesis strategy for random models over random opsets, with inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from random_graphs.models import MAX_OPSET, MIN_OPSET, Case, sample_case

DrawStrategy = Callable[[st.SearchStrategy[Any]], Any]


class HypothesisSampler:
    """Source of random choices that Hypothesis shrinks."""

    def __init__(self, draw: DrawStrategy) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        """Return an integer from low to high, both included."""
        found: int = self._draw(st.integers(low, high))
        return found

    def pick(self, choices: Sequence[Any]) -> Any:
        """Return one of the choices."""
        return self._draw(st.sampled_from(choices))

    def distinct(self, choices: Sequence[Any], least: int, most: int) -> list[Any]:
        """Return some of the choices in any order, each at most once."""
        found: list[Any] = self._draw(
            st.lists(st.sampled_from(choices), unique=True, min_size=least, max_size=most)
            if choices
            else st.just([])
        )
        return found


@st.composite
def cases(
    draw: DrawStrategy,
    oldest: int = MIN_OPSET,
    newest: int = MAX_OPSET,
    most: int = 6,
    *,
    empty: bool = False,
) -> Case:
    """Draw a model of a few nodes at an opset from a range."""
    return sample_case(HypothesisSampler(draw), (oldest, newest), (1, most), empty=empty)
