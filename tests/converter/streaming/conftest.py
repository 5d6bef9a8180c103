"""Small models are treated as large ones are."""

from __future__ import annotations

import pytest

LEAST = 100


@pytest.fixture(autouse=True)
def _thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opshift.converter.streaming.weights.SMALL_FILE", 0)
    monkeypatch.setattr("opshift.converter.streaming.weights.LEAST", LEAST)
