"""Inspect the only model of a command, and write its result to the files of `--sarif` and `--ledger`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import TypeVar

from opshift.cli.findings.formats import open_sarif
from opshift.cli.gate.inspect_file import Inspected, failure_of, inspected_result
from opshift.cli.gate.ledger import Inspection, InspectionTask, open_ledger, states_if_readable
from opshift.cli.gate.several import GateOptions

Found = TypeVar("Found", bound=Inspected)


def inspect_and_write(file: str, options: GateOptions, inspect: Callable[[str], Found]) -> Found:
    """Inspect a model, and write its result to the files of `--sarif` and `--ledger`; then raise its error.

    A recorded result is not reused, because the output for one model needs more than the ledger contains.
    """
    found: Found | None = None
    error: Exception | None = None
    with ExitStack() as stack:
        ledger = sarif = None
        if options.ledger is not None:
            ledger = stack.enter_context(closing(open_ledger(options.ledger, options, inspect)))
        if options.sarif is not None:
            sarif = stack.enter_context(open_sarif(options.sarif, options.command))
            stack.enter_context(sarif)
        # Read the states first: if a file changes during the inspection, a later run inspects it again.
        states = states_if_readable(file) if ledger else {}
        try:
            found = inspect(file)
            result = inspected_result(file, found)
        except Exception as raised:
            error, result = raised, failure_of(file, raised)
        if ledger:
            ledger.result(InspectionTask(file, {}), Inspection(result, states))
        if sarif:
            sarif.add(result.model)
    if found is None:
        assert error is not None
        raise error
    return found
