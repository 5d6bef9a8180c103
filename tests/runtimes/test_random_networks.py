"""Predictions for random networks; `tools/measure_runs.py` compares many more, in several releases."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

import measure_runs


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    """Enable the warnings that the tools of onnxruntime would print."""
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(
    ("count", "seed"), [(8, 1), pytest.param(100, 2, marks=pytest.mark.full)], ids=["few", "many"]
)
def test_predictions_for_random_networks_are_right(
    capsys: pytest.CaptureFixture[str], count: int, seed: int
) -> None:
    assert measure_runs.main(["--count", str(count), "--seed", str(seed)]) == 0, capsys.readouterr().out
