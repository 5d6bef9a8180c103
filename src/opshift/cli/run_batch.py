"""Convert several models to a folder, and print a row for each model."""

import os
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from opshift.batch.convert_many import Batch
from opshift.batch.outcome import ModelOutcome
from opshift.batch.settings import Settings
from opshift.cli.conversion_text import opsets_text
from opshift.cli.errors import error_data
from opshift.cli.findings.finding import EXTERNAL_DATA, FileFinding, refusal_findings, report_findings
from opshift.cli.gate.inspect_file import GateResult, result_of
from opshift.cli.gate.run_gate import common_folder, errors_as_lines, models_named, show_results
from opshift.cli.gate.several import GateOptions
from opshift.cli.options import Format
from opshift.converter.refusals import ConversionRefused
from opshift.converter.streaming.external_data import is_same_file
from opshift.model.errors import OpshiftError, UsageError
from opshift.model.locations import without_secrets
from opshift.stores.find_models import LIST

COLUMNS = ("opsets    ", " changed")
"""Columns before the name of the model; a leading space right-aligns the column."""


SECONDS_TO_CONNECT = 10
"""Timeout in seconds for the connection to the Dask scheduler."""


class BatchOptions(NamedTuple):
    """Options of `convert --out`, which converts several models; `dask` is a Dask scheduler's address."""

    out: str
    skip_existing: bool = False
    dask: str | None = None
    report: Path | None = None


def run_batch(names: Sequence[str], settings: Settings, batch: BatchOptions, gate: GateOptions) -> None:
    """Convert all models and print each result as it arrives; exit with 1 if a model is refused or fails."""
    if [*names] == [LIST] and not gate.files_from:
        reason = "standard input has no file name, which an output in the folder needs"
        raise UsageError(reason, place=LIST, remedy="name the file to write, without --out")
    if settings.force and batch.skip_existing:
        raise UsageError("both --force and --skip-existing are given", remedy="remove one of them")
    reported: list[tuple[ModelOutcome, GateResult]] = []
    with_data = gate.form is Format.JSON or batch.report is not None
    with (
        errors_as_lines(gate.form),
        models_named(names, gate.files_from) as models,
        _dask_executor(batch.dask) as (executor, slots),
    ):
        run = Batch(models, batch.out, settings, gate.ledger, batch.skip_existing).run(
            slots or gate.jobs, executor
        )
        try:
            results = _gate_results(run, settings, reported if batch.report else None, with_data=with_data)
            show_results(results, gate, COLUMNS, "Converting", common_folder(names, gate.files_from))
        finally:
            if batch.report is not None:
                from opshift.cli.report_files import write_batch_report

                write_batch_report(batch.report, batch.out, reported)


@contextmanager
def _dask_executor(address: str | None) -> Iterator[tuple[Executor | None, int]]:
    """Yield an executor on a Dask cluster and its number of concurrent chunks; without address, `None, 0`."""
    if address is None:
        yield None, 0
        return
    try:
        from distributed import Client
    except ImportError as error:
        remedy = "install it: pip install distributed"
        raise UsageError("requires the package distributed", place="--dask", remedy=remedy) from error
    try:
        client = Client(address, timeout=SECONDS_TO_CONNECT)
    except (OSError, ValueError) as error:
        reason = f"the scheduler cannot be reached: {error}"
        remedy = "start a cluster, and name its address, such as tcp://127.0.0.1:8786"
        shown = address if "://" in address else f"tcp://{address}"
        raise OpshiftError(reason, place=f"--dask {shown}", remedy=remedy) from error
    with client:
        threads: dict[str, int] = client.nthreads()  # pyright: ignore  # a coroutine only for asynchronous clients
        # two chunks for each thread: the second is ready when the first is finished
        yield client.get_executor(pure=False), 2 * max(1, sum(threads.values()))


def _gate_results(
    run: Generator[ModelOutcome],
    settings: Settings,
    reported: list[tuple[ModelOutcome, GateResult]] | None,
    *,
    with_data: bool,
) -> Generator[GateResult]:
    with closing(run):
        for each in run:
            result = _gate_result(each, settings, with_data=with_data)
            if reported is not None:
                reported.append((each, result))
            yield result


def _gate_result(outcome: ModelOutcome, settings: Settings, *, with_data: bool) -> GateResult:
    # Building the plain data of all changes takes as long as the conversion: omit the data if possible.
    cells, data = {}, outcome.as_dict() if with_data else {}
    if outcome.report is not None:
        cells = {"opsets": opsets_text(outcome.report), "changed": f"{len(outcome.report.changed):,}"}
    if outcome.error is not None and outcome.error.cause is not None:
        data |= error_data(outcome.error.cause, outcome.error.error)
    findings = tuple(_findings_of_outcome(outcome, settings))
    return result_of(outcome.source, outcome.status, findings, data, cells)


def _findings_of_outcome(outcome: ModelOutcome, settings: Settings) -> Iterator[FileFinding]:
    """Yield the findings of the report, or the error, and a finding for weights that are not a copy."""
    file, error = outcome.source, outcome.error
    if outcome.report is not None:
        yield from report_findings(outcome.report, file)
    if error is None and settings.external == "keep" and outcome.external_data:
        message = f"the output has weights in separate files: {', '.join(outcome.external_data)}"
        yield FileFinding(EXTERNAL_DATA, "note", message, file, "", "copy them to the folder of the output")
    elif error is None and settings.external == "link" and (linked := _linked_files(outcome)):
        files = ", ".join(linked)
        message = f"the output and the source share {files} by links; current releases of onnx refuse links"
        yield FileFinding(
            EXTERNAL_DATA, "note", message, file, "", "for copies, convert with --external copy"
        )
    elif error is not None and isinstance(error.cause, ConversionRefused):
        yield from refusal_findings(error.cause.refusals, file)
    elif error is not None:
        place = error.place.removeprefix(without_secrets(file)).removeprefix(": ")
        yield FileFinding(error.code or error.error, "error", error.reason, file, place, error.remedy)


def _linked_files(outcome: ModelOutcome) -> list[str]:
    """Return the data files of an output that are links to those of the source, relative to its folder."""
    folder = os.path.dirname(outcome.output)
    pairs = ((os.path.relpath(new, folder), Path(old), Path(new)) for new, old in outcome.output_data.items())
    return [name for name, old, new in pairs if is_same_file(old, new)]
