"""Processes that run cases, each with a limit of time and memory."""

from __future__ import annotations

import faulthandler
import gc
import resource
import signal
import traceback
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import NamedTuple

from fuzzing.calls import MODEL_CALLS, Case, case_at, large_case_at, run_case, text_case_at
from fuzzing.corpus import text_models
from opshift.converter.recognition.load import operator_names, pattern_groups
from opshift.registry.registry import default_registry

SECONDS = 600.0
"""Maximum duration of a case in seconds, for cases that wait without using the CPU."""


class Limits(NamedTuple):
    """Maximum CPU time of a case in seconds, and maximum memory in bytes.

    CPU time does not depend on what else the machine does. Memory is in addition to that of the worker.
    """

    cpu: float
    memory: int


MUTATED = Limits(10.0, 1 << 30)
"""Limits for mutated files, some of which are large."""

LARGE = Limits(2.0, 500 << 20)
"""Limits for models and texts of at most 100 KB."""

FACTORS = {
    "round trip": 3,
    **dict.fromkeys(
        ("reach", "common opset", "fit", "fit provider", "runs", "command reach", "command runs"), 5
    ),
}
"""Factor for the CPU time of calls that convert a model three times, or to up to 26 opsets; 1 by default."""


class Outcome(NamedTuple):
    """Outcome of a case: `result`, the class of an OpshiftError, or a finding with its details."""

    case: Case
    outcome: str
    details: str = ""


def is_finding(outcome: Outcome) -> bool:
    """Return whether a case did not end with a result or an OpshiftError within the limits."""
    return " " in outcome.outcome or outcome.outcome in ("timeout", "crash", "memory")


class Worker:
    """Process that runs one case at a time, and is replaced if a case ends it."""

    def __init__(self, limits: Limits = MUTATED) -> None:
        self._limits = limits
        self._start_process()

    def _start_process(self) -> None:
        context = get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve_cases, args=(theirs, self._limits), daemon=True)
        self._process.start()
        theirs.close()
        # The time limit excludes the imports of the new process and the compilation of definitions.
        self._connection.recv()

    def run(self, case: Case, seconds: float = SECONDS) -> Outcome:
        """Run a case within the limits."""
        self._connection.send(case)
        try:
            if self._connection.poll(seconds):
                outcome, details = self._connection.recv()
                return Outcome(case, outcome, details)
            self.close()
            finding = Outcome(case, "timeout", f"no result within {seconds:g} seconds")
        except (EOFError, ConnectionError):
            self._process.join()
            if self._process.exitcode == -signal.SIGPROF:
                finding = Outcome(case, "timeout", "no result within the CPU time")
            else:
                finding = Outcome(case, "crash", f"the process ended with exit code {self._process.exitcode}")
        self._start_process()
        return finding

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._connection.close()


class Kind(NamedTuple):
    """Kind of cases: a function that returns a case by seed and number, and the limits of the cases."""

    case_at: Callable[[int, int], Case]
    limits: Limits


MUTATED_FILES = Kind(case_at, MUTATED)
LARGE_FILES = Kind(large_case_at, LARGE)
TEXTS = Kind(text_case_at, MUTATED)


def run_cases(kind: Kind, seed: int, start: int, step: int, is_over: Callable[[], bool]) -> Iterator[Outcome]:
    """Run the cases `start`, `start + step` and so on in one process until the time is over."""
    worker, index = Worker(kind.limits), start
    try:
        while not is_over():
            yield worker.run(kind.case_at(seed, index))
            index += step
    finally:
        worker.close()


def _serve_cases(connection: Connection, limits: Limits) -> None:
    # A valid model first, because the first model compiles the definitions.
    run_case(Case("plan", ".onnx", text_models()[0], "start"))
    _compile_patterns()
    # The garbage of the compilation is large: collect it before the first case.
    gc.collect()
    # prints a traceback, which shows where the time was spent, and then ends the process
    faulthandler.register(signal.SIGPROF, chain=True)
    connection.send(None)
    started: set[str] = set()
    while True:
        try:
            case = connection.recv()
        except EOFError:
            return
        # The first run of a call imports modules and reads definitions, which is not part of a case.
        if case.call in MODEL_CALLS and case.call not in started:
            _unlimited_memory()
            for seed in range(3):
                run_case(Case(case.call, ".onnx", text_models()[0], f"start:{seed}"))
        started.add(case.call)
        _limit_memory(limits.memory)
        signal.setitimer(signal.ITIMER_PROF, limits.cpu * FACTORS.get(case.call, 1))
        outcome = _outcome_of(case)
        signal.setitimer(signal.ITIMER_PROF, 0)
        connection.send(outcome)


def _compile_patterns() -> None:
    """Compile the patterns of recognition, which wheels contain, and a checkout compiles once."""
    registry = default_registry()
    for name in operator_names(registry):
        pattern_groups(name, "ai.onnx", registry)


def _unlimited_memory() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _limit_memory(memory: int) -> None:
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[0])
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (limit if hard < 0 else min(limit, hard), hard))


def _outcome_of(case: Case) -> tuple[str, str]:
    try:
        return run_case(case), ""
    except MemoryError:
        return "memory", "".join(traceback.format_exc(limit=-4))
    except BaseException as error:  # any other error is a finding
        return f"finding {type(error).__name__}", "".join(traceback.format_exc(limit=-6))
