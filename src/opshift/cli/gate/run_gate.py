"""Run of a command over several models."""

import os
import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from io import TextIOWrapper
from itertools import chain

import typer

from opshift.batch.run_chunks import WORKER_LOST, LostTask, run_chunks
from opshift.cli.errors import EXIT_FINDINGS
from opshift.cli.findings.formats import findings_writer, open_sarif
from opshift.cli.gate.inspect_file import GateResult, Inspect, failure, inspect_file
from opshift.cli.gate.several import GateOptions
from opshift.cli.gate.writers import MAX_ROWS, FindingsOutput, JsonLinesWriter, Summary, TextWriter, Writer
from opshift.cli.options import Format
from opshift.cli.output import page_for
from opshift.cli.page import Page
from opshift.cli.paths import DASH, require_file
from opshift.cli.progress import show_progress
from opshift.model.errors import OpshiftError, UsageError
from opshift.model.process_state import signals_deferred
from opshift.stores.find_models import LIST, FoundModel, find_models


def run_gate(names: Sequence[str], options: GateOptions, inspect: Inspect, columns: Sequence[str]) -> None:
    """Inspect all models and print each result as it arrives; exit with 1 if the command fails on a model.

    After an interruption the summary is printed, too.
    """
    if LIST in names:  # other processes cannot read standard input
        options = options._replace(jobs=1)
    with models_named(names, options.files_from, allow_empty=options.allow_empty) as models:
        results = _results(models, options, inspect)
        show_results(results, options, columns, "Inspecting", common_folder(names, options.files_from))


@contextmanager
def models_named(
    names: Sequence[str], files_from: str | None, *, allow_empty: bool = False
) -> Iterator[Iterator[FoundModel]]:
    """Yield the models of a command line, with those in a list; or the model on standard input for `-`.

    Raises a UsageError for `-` and other models, or if a file does not exist.
    """
    if [*names] == [LIST] and files_from is None:
        yield iter([FoundModel(require_file(LIST), LIST)])
        return
    if LIST in names:
        reason, remedy = "is a model on standard input", "read a list of models with --files-from -"
        raise UsageError(reason, place=LIST, remedy=remedy)
    with _names_listed(files_from) as lines:
        listed = [LIST] if files_from else []
        yield find_models([*names, *listed], lines=lines, allow_empty=allow_empty)


def show_results(
    results: Generator[GateResult], options: GateOptions, columns: Sequence[str], task: str, folder: str = ""
) -> None:
    """Print each result as it arrives, and a summary, also if interrupted; exit with 1 after a failure.

    Texts print the names of models without `folder`.
    """
    page, summary = page_for(), Summary()
    is_quiet = options.quiet or (page.is_terminal and options.form is not Format.TEXT)
    progress_bar = show_progress(task, quiet=is_quiet, unit="models", page=page)
    with ExitStack() as stack:
        writers: list[Writer] = []
        if options.sarif:
            sarif = stack.enter_context(open_sarif(options.sarif, options.command))
            writers.append(FindingsOutput(sarif))
        writers.append(_writer(options, summary, page, columns, folder))
        try:
            with progress_bar as progress, closing(results):
                for result in results:
                    with signals_deferred():  # a line is printed and counted, or neither
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


def common_folder(names: Sequence[str], files_from: str | None) -> str:
    """Return the only folder that is named, with a slash at its end; empty if other models may be named."""
    if len(names) != 1 or files_from is not None or not os.path.isdir(names[0]):
        return ""
    return os.path.join(os.path.normpath(names[0]), "") if os.path.normpath(names[0]) != os.curdir else ""


def _writer(
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
def _names_listed(files_from: str | None) -> Iterator[Iterable[str]]:
    """Yield the lines of the list of models, with names of any encoding."""
    if files_from is None:
        yield ()
    elif files_from == DASH:
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(errors="surrogateescape")
        yield sys.stdin
    else:
        with open(require_file(files_from), encoding="utf-8", errors="surrogateescape") as lines:
            yield lines


def _results(models: Iterator[FoundModel], options: GateOptions, inspect: Inspect) -> Generator[GateResult]:
    function = partial(inspect_file, inspect, options.adapters or ())
    locations = (each.location for each in models)
    if options.ledger is not None:
        yield from _recorded_results(locations, options, inspect, options.ledger)
        return
    with closing(run_chunks(function, locations, jobs=options.jobs)) as chunks:
        for file, result in chain.from_iterable(chunks):
            yield _lost(file, result) if isinstance(result, LostTask) else result


def _recorded_results(
    files: Iterable[str], options: GateOptions, inspect: Inspect, ledger: str
) -> Generator[GateResult]:
    from opshift.cli.gate.ledger import GateLedger, digest_of, inspect_task

    adapters = options.adapters or ()
    function = partial(inspect_task, inspect, adapters)
    digest = digest_of(inspect, (*(options.folders or ()), *adapters))
    with (
        closing(GateLedger(ledger, digest)) as record,
        closing(run_chunks(function, record.tasks(files), jobs=options.jobs)) as chunks,
    ):
        for task, found in chain.from_iterable(chunks):
            yield _lost(task.file, found) if isinstance(found, LostTask) else record.result(task, found)


def _lost(file: str, reason: LostTask) -> GateResult:
    error = OpshiftError(f"the process that read the file ended: {reason}", remedy="use fewer --jobs")
    return failure(file, error, WORKER_LOST)
