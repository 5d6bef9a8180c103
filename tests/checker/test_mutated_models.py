"""Mutated and legal models, of which `tools/compare_check.py` compares many more."""

from __future__ import annotations

import pytest

from compare_check import MAX_MISSES, run_cases


def _counts(cases: int) -> tuple[int, int, int]:
    mutated = [outcome.kind for _, outcome in run_cases("mutated", 0, range(cases))]
    legal = [outcome.kind for _, outcome in run_cases("legal", 0, range(cases))]
    return mutated.count("miss"), mutated.count("rejected"), legal.count("false alarm")


def test_reports_what_runtimes_reject() -> None:
    misses, rejected, alarms = _counts(60)
    assert rejected > 10
    assert misses <= 1
    assert alarms == 0


@pytest.mark.full
def test_reports_what_runtimes_reject_in_many_models() -> None:
    misses, rejected, alarms = _counts(1500)
    assert misses <= MAX_MISSES * (misses + rejected)
    assert alarms == 0
