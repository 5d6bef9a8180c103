"""Fixtures for all tests."""

from __future__ import annotations

import signal

import pytest
from hypothesis import HealthCheck, settings
from support.quick_tests import MAX_QUICK_CASES, slow_cases

# A busy machine must not fail a test.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(autouse=True, scope="session")
def handle_signals() -> None:
    """Handle signals that a shell ignores in background jobs; the tests send them."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark cases of test functions with many cases as `full`."""
    for item in slow_cases(items):
        item.add_marker(pytest.mark.full)


def pytest_report_header() -> str:
    return f"quick tests: at most {MAX_QUICK_CASES} cases of a function, drawn with its name as the seed"
