"""Files that once ended a public call without a result or an OpshiftError: findings of `tools/fuzz.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzzing.calls import CALLS, Case, case_at
from fuzzing.worker import Worker, is_finding

FOLDER = Path(__file__).with_name("regressions")
FILES = sorted(path for path in FOLDER.rglob("*.*") if path.is_file())


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    found = Worker()
    yield found
    found.close()


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(FOLDER)) for path in FILES])
def test_ends_with_result_or_opshift_error(path: Path, worker: Worker) -> None:
    call = path.parent.name.replace("-", " ")
    for seed in range(20):
        outcome = worker.run(Case(call, path.suffix, path.read_bytes(), str(seed)))
        assert not is_finding(outcome), outcome.details


def test_folders_have_the_names_of_calls() -> None:
    assert {path.parent.name.replace("-", " ") for path in FILES} <= set(CALLS)


@pytest.mark.parametrize("seed", [1, 2])
def test_generated_cases(seed: int, worker: Worker) -> None:
    """A short part of what CI runs for a minute."""
    for index in range(60):
        outcome = worker.run(case_at(seed, index))
        assert not is_finding(outcome), f"{outcome.case.call} {seed}:{index}: {outcome.details}"


def test_cases_depend_on_the_seed_only() -> None:
    assert [case_at(3, index) for index in range(20)] == [case_at(3, index) for index in range(20)]
    assert case_at(3, 0) != case_at(4, 0)


ENDINGS = {
    "a crash": ("kill", "crash"),
    "an endless loop": ("sleep", "timeout"),
    "an error": ("raise", "finding KeyError"),
}


@pytest.mark.full
@pytest.mark.parametrize(("action", "expected"), ENDINGS.values(), ids=ENDINGS)
def test_worker_reports(action: str, expected: str, worker: Worker) -> None:
    outcome = worker.run(Case("self-test", "", action.encode(), ""), seconds=2)
    assert outcome.outcome == expected
    assert is_finding(outcome)
    # The worker, or a new one, runs the next case.
    assert worker.run(Case("plan", ".onnx", b"", "")).outcome == "InvalidModel"
