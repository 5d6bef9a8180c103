"""Lower the size limits, so that small models are streamed as well."""

from __future__ import annotations

import pytest

MIN_PAYLOAD = 100


@pytest.fixture(autouse=True)
def _thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opshift.converter.streaming.weights.MIN_STREAMED_FILE", 0)
    monkeypatch.setattr("opshift.converter.streaming.weights.MIN_EXTRACTED_TENSOR", MIN_PAYLOAD)
