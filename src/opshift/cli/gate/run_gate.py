"""Run a command over several models, or over one model with the options `--sarif` or `--ledger`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from io import TextIOWrapper
from itertools import chain
from typing import TypeVar

import typer

from opshift.batch.run_chunks import WORKER_LOST, LostTask, run_chunks
from opshift.cli.errors import EXIT_FINDINGS, EXIT_WRONG_USAGE, error_data
from opshift.cli.findings.formats import findings_writer, open_sarif
from opshift.cli.gate.inspect_file import (
    GateResult,
    Inspect,
    Inspected,
    failure,
    failure_of,
    inspect_file,
    inspected_result,
)
from opshift.cli.gate.several import GateOptions
from opshift.cli.gate.writers import (
    MAX_ROWS,
    FindingsOutput,
    JsonLinesWriter,
    Summary,
    TextWriter,
    Writer,
    print_json_line,
)
from opshift.cli.options import Format
from opshift.cli.output import page_for
from opshift.cli.page import Page
from opshift.cli.paths import DASH, require_file
from opshift.cli.progress import show_progress
from opshift.model.errors import OpshiftError, UsageError
from opshift.model.process_state import signals_deferred
from opshift.stores.find_models import LIST, MODEL_PATTERN, FoundModel, find_models


def run_gate(names: Sequence[str], options: GateOptions, inspect: Inspect, columns: Sequence[str]) -> None:
    """Inspect all models and print each result as it arrives; exit with 1 if the command fails on a model.

    The summary is printed also after an interruption.
    """
    if LIST in names:  # worker processes cannot read standard input
        options = options._replace(jobs=1)
    with (
        errors_as_lines(options.form),
        models_named(names, options.files_from, allow_empty=options.allow_empty) as models,
    ):
        results = _inspect_models(models, options, inspect)
        show_results(results, options, columns, "Inspecting", common_folder(names, options.files_from))


@contextmanager
def errors_as_lines(form: Format) -> Iterator[None]:
    """With `--format json`, print an error that ends the command as one line, and exit with its exit code."""
    try:
        yield
    except OpshiftError as error:
        if form is not Format.JSON:
            raise
        print_json_line(error_data(error))
        raise typer.Exit(EXIT_WRONG_USAGE if isinstance(error, UsageError) else EXIT_FINDINGS) from error


@contextmanager
def models_named(
    names: Sequence[str], files_from: Sequence[str] | None, *, allow_empty: bool = False
) -> Iterator[Iterator[FoundModel]]:
    """Yield the models in the arguments and in the lists `files_from`; `-` is a model on standard input.

    Raises a UsageError for `-` together with other models, or if a file does not exist.
    """
    if [*names] == [LIST] and not files_from:
        yield iter([FoundModel(require_file(LIST), LIST)])
        return
    if LIST in names:
        reason, remedy = "is a model on standard input", "read a list of models with --files-from -"
        raise UsageError(reason, place=LIST, remedy=remedy)
    with ExitStack() as stack:
        # standard input is one list, even if it is named twice
        lists = {each: stack.enter_context(_names_listed(each)) for each in files_from or ()}
        named = find_models(names, allow_empty=allow_empty)
        listed = (_models_listed(name, lines, allow_empty=allow_empty) for name, lines in lists.items())
        yield chain(named, chain.from_iterable(listed))


def _models_listed(name: str, lines: Iterable[str], *, allow_empty: bool) -> Iterator[FoundModel]:
    """Yield the models that the lines of a list name.

    Raises:
        UsageError: without `allow_empty`, the list names no models, or a folder without models.
    """
    is_empty = True
    for line in lines:
        models = find_models([LIST], lines=[line])
        first = next(models, None)
        if first is not None:
            yield first
            yield from models
        elif line.strip("\r\n") and not allow_empty:
            remedy = "correct the path, or name the model files"
            raise UsageError(f"contains no {MODEL_PATTERN} files", place=line.strip("\r\n"), remedy=remedy)
        is_empty = is_empty and not line.strip("\r\n")
    if is_empty and not allow_empty:
        place = "standard input" if name == DASH else name
        raise UsageError("names no models", place=place, remedy="name models, one in each line")


def show_results(
    results: Generator[GateResult], options: GateOptions, columns: Sequence[str], task: str, folder: str = ""
) -> None:
    """Print each result as it arrives, then a summary, also if interrupted; exit with 1 if a model failed.

    In text, names of models are relative to `folder`.
    """
    page, summary = page_for(), Summary()
    is_quiet = options.quiet or (page.is_terminal and options.form is not Format.TEXT)
    progress_bar = show_progress(task, quiet=is_quiet, unit="models", page=page)
    with ExitStack() as stack:
        writers: list[Writer] = []
        if options.sarif:
            sarif = stack.enter_context(open_sarif(options.sarif, options.command))
            writers.append(FindingsOutput(sarif))
        writers.append(_results_writer(options, summary, page, columns, folder))
        try:
            with progress_bar as progress, closing(results):
                for result in results:
                    # an interrupt must not come between printing and counting of a result
                    with signals_deferred():
                        summary.add(result)
                        for writer in writers:
                            writer.add(result)
                    progress.done, progress.note = summary.models, f"{summary.failed:,} with errors"
        except BaseException as error:
            for writer in writers:
                writer.end(interrupted=True, reason=str(error) if isinstance(error, OpshiftError) else "")
            raise
        for writer in writers:
            writer.end(interrupted=False)
    if summary.failed:
        raise typer.Exit(EXIT_FINDINGS)


def common_folder(names: Sequence[str], files_from: Sequence[str] | None) -> str:
    """Return the folder, with a slash at its end, if it is the only argument and not `.`; otherwise empty."""
    if len(names) != 1 or files_from or not os.path.isdir(names[0]):
        return ""
    return os.path.join(os.path.normpath(names[0]), "") if os.path.normpath(names[0]) != os.curdir else ""


def _results_writer(
    options: GateOptions, summary: Summary, page: Page, columns: Sequence[str], folder: str
) -> Writer:
    findings = findings_writer(options.form, options.command)
    if findings:
        return FindingsOutput(findings)
    if options.form is Format.JSON:
        return JsonLinesWriter(summary)
    max_rows = MAX_ROWS if page.is_terminal and not options.verbose else None
    return TextWriter(
        summary, page, options.command, columns, quiet=options.quiet, max_rows=max_rows, folder=folder
    )


@contextmanager
def _names_listed(files_from: str) -> Iterator[Iterable[str]]:
    """Yield the lines of a list of models; names need not be valid UTF-8."""
    if files_from == DASH:
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(errors="surrogateescape")
        yield sys.stdin
    else:
        with open(require_file(files_from), encoding="utf-8", errors="surrogateescape") as lines:
            yield lines


def _inspect_models(
    models: Iterator[FoundModel], options: GateOptions, inspect: Inspect
) -> Generator[GateResult]:
    function = partial(inspect_file, inspect, options.adapters or ())
    unreadable: list[GateResult] = []
    locations = _readable_locations(models, unreadable)
    if options.ledger is not None:
        for result in _recorded_results(locations, options, inspect, options.ledger):
            yield from _drain_results(unreadable)
            yield result
    else:
        with closing(run_chunks(function, locations, jobs=options.jobs)) as chunks:
            for file, found in chain.from_iterable(chunks):
                yield from _drain_results(unreadable)
                if isinstance(found, LostTask):
                    yield failure(file, found.as_error(file), WORKER_LOST)
                else:
                    yield found
    yield from _drain_results(unreadable)


def _readable_locations(models: Iterable[FoundModel], unreadable: list[GateResult]) -> Iterator[str]:
    for each in models:
        if each.error is None:
            yield each.location
        else:
            unreadable.append(failure(each.location, each.error))


def _drain_results(results: list[GateResult]) -> Iterator[GateResult]:
    while results:
        yield results.pop(0)


def _recorded_results(
    files: Iterable[str], options: GateOptions, inspect: Inspect, ledger: str
) -> Generator[GateResult]:
    from opshift.cli.gate.ledger import inspect_task, open_ledger

    function = partial(inspect_task, inspect, options.adapters or ())
    with (
        closing(open_ledger(ledger, options, inspect)) as record,
        closing(run_chunks(function, record.tasks(files), jobs=options.jobs)) as chunks,
    ):
        for task, found in chain.from_iterable(chunks):
            yield (
                failure(task.file, found.as_error(task.file), WORKER_LOST)
                if isinstance(found, LostTask)
                else record.result(task, found)
            )


Found = TypeVar("Found", bound=Inspected)


def inspect_and_write(file: str, options: GateOptions, inspect: Callable[[str], Found]) -> Found:
    """Inspect a model, and write its result to the files of `--sarif` and `--ledger`; then raise its error.

    A recorded result is not reused, because the output for one model needs more than the ledger contains.
    """
    from opshift.cli.gate.ledger import Inspection, InspectionTask, open_ledger, states_if_readable

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
