"""Lower the size limits, so that small models are streamed as well."""

from __future__ import annotations

import pytest

MIN_PAYLOAD = 100


@pytest.fixture(autouse=True)
def _thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opshift.converter.streaming.weights.SMALL_FILE", 0)
    monkeypatch.setattr("opshift.converter.streaming.weights.LEAST", MIN_PAYLOAD)
