"""Conversion of several files, in several processes if requested."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from opshift.cli.batch.destinations import Job, groups_of_jobs
from opshift.cli.batch.workers import Lost, run_in_workers
from opshift.cli.conversion import ConversionSettings, ConvertedFile, convert_file
from opshift.cli.errors import error_data, operating_system_error
from opshift.cli.options import run_adapters
from opshift.cli.output import count_text
from opshift.cli.page import Column, Page, number
from opshift.cli.paths import require_file, require_writable, resolve_links
from opshift.cli.progress import byte_text, show_progress
from opshift.cli.streams import STDIN
from opshift.converter.streaming.external_data import ExternalHandling
from opshift.model.atomic_files import temporary_files
from opshift.model.errors import OpshiftError, UsageError

MODEL_PATTERN = "*.onnx"


class Batch(NamedTuple):
    """Jobs in the order of the command line; those of a group write the same data files."""

    jobs: Sequence[Job]
    groups: Sequence[list[Job]]


class FailedFile(NamedTuple):
    """File that was not converted, with the error as in JSON output."""

    source: Path
    error: dict[str, object]

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        return {"input": self.source, "output": None, **self.error}


Outcome = ConvertedFile | FailedFile


def jobs_for(sources: Sequence[str], folder: Path, force: bool, external: ExternalHandling = "copy") -> Batch:
    """Return a job for each model; models in a folder keep their paths relative to that folder.

    Raises a UsageError if an input is missing, or a file must not be written or would be written twice.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError("is not a folder", place=str(folder), remedy="name a folder with --out")
    jobs = [job for source in sources for job in _jobs(source, folder)]
    inputs = {job.source.resolve() for job in jobs}
    sources_by_output: dict[Path, Path] = {}
    for source, out in jobs:
        if out in sources_by_output:
            reason = f"{sources_by_output[out]} and {source} have the same output file"
            raise UsageError(reason, place=str(out), remedy="convert them into separate folders")
        sources_by_output[out] = source
        if resolve_links(out) in inputs and not (out.exists() and out.samefile(source)):
            raise UsageError("is also an input file", place=str(out), remedy="name another folder with --out")
        require_writable(str(source), out, force)
    return Batch(jobs, groups_of_jobs(jobs, external))


def _jobs(name: str, folder: Path) -> Iterator[Job]:
    source = Path(name)
    if not source.is_dir():
        if require_file(name) == STDIN:
            reason = "has no name for the file in the output folder"
            raise UsageError(reason, place=STDIN, remedy="name the file to write, without --out")
        yield Job(source, folder / source.name)
        return
    # if the output folder is inside the input folder, earlier results in it are not inputs
    outputs = folder.resolve()
    models = [model for model in sorted(source.rglob(MODEL_PATTERN)) if model.is_file()]
    is_nested = source.resolve() in outputs.parents
    files = [model for model in models if not (is_nested and outputs in model.resolve().parents)]
    if not files:
        reason = f"contains no {MODEL_PATTERN} files"
        raise UsageError(reason, place=str(source), remedy="name the model files")
    for model in files:
        yield Job(model, folder / model.relative_to(source))


def run_jobs(batch: Batch, settings: ConversionSettings, workers: int) -> list[Outcome]:
    """Convert all files; return the outcomes in the order of the jobs. Failures do not stop the others."""
    for folder in {job.out.parent for job in batch.jobs}:
        folder.mkdir(parents=True, exist_ok=True)
    outcomes: dict[Job, Outcome] = {}
    failed = size = 0
    workers = min(workers, len(batch.groups))
    with show_progress("Converting", quiet=settings.quiet, unit="models") as progress:
        progress.total = len(batch.jobs)
        for job, outcome in _outcomes(batch, settings._replace(quiet=True, report=None), workers):
            outcomes[job] = outcome
            if isinstance(outcome, FailedFile):
                failed += 1
            elif outcome.report.sizes:
                size += outcome.report.sizes[0]
            progress.done, progress.note = len(outcomes), f"{byte_text(size)}, {failed} failed"
    return [outcomes[job] for job in batch.jobs]


def _outcomes(batch: Batch, settings: ConversionSettings, workers: int) -> Iterator[tuple[Job, Outcome]]:
    if workers == 1:
        for job in batch.jobs:
            yield job, _try_convert(settings, job)
        return
    for job, outcome in run_in_workers(partial(_try_convert, settings), batch.groups, workers):
        if isinstance(outcome, Lost):
            _remove_temporary_files(job, outcome)
            reason = f"the process that converted the file ended: {outcome}"
            yield job, _failure(job, reason, "use fewer --jobs")
        else:
            yield job, outcome


def _remove_temporary_files(job: Job, lost: Lost) -> None:
    for path in job.out.parent.rglob(temporary_files(lost.process)):
        with suppress(OSError):
            path.unlink()


def _failure(job: Job, reason: str, remedy: str, name: str = "") -> FailedFile:
    error = OpshiftError(reason, place=str(job.source), remedy=remedy)
    return FailedFile(job.source, error_data(error, name))


def _try_convert(settings: ConversionSettings, job: Job) -> Outcome:
    """Convert one file; errors are part of the outcome."""
    try:
        # options and adapters are read per job: a spawned process has none
        options = settings.read()
        run_adapters(settings.adapters or [])
        return convert_file(str(job.source), str(job.out), settings, options)
    except OpshiftError as error:
        return FailedFile(job.source, error_data(error))
    except OSError as error:
        reported = operating_system_error(error, str(job.source))
        return FailedFile(job.source, error_data(reported, type(error).__name__))
    except Exception as error:  # a bug must not stop the other files
        return _failure(job, f"{type(error).__name__}: {error}", "report this as a bug", "InternalError")


def batch_data(folder: Path, outcomes: Sequence[Outcome]) -> dict[str, object]:
    """Return plain data for JSON."""
    failed = failures(outcomes)
    files = [each.as_dict() for each in outcomes]
    return {"output": folder, "converted": len(files) - len(failed), "failed": len(failed), "files": files}


def failures(outcomes: Sequence[Outcome]) -> list[FailedFile]:
    """Return the files that were not converted."""
    return [each for each in outcomes if isinstance(each, FailedFile)]


def write_batch(page: Page, outcomes: Sequence[Outcome]) -> None:
    """Print one row per file, then the numbers of converted and failed files."""
    failed = len(failures(outcomes))
    columns = (Column("model", "cyan"), "opsets", number("kept"), number("changed"), "result")
    page.table(columns, map(_row, outcomes))
    page.blank()
    counts = f"{count_text(len(outcomes) - failed, 'model')} converted, {failed} failed"
    page.line(counts, style="red" if failed else "green")
    for each in outcomes:
        if isinstance(each, ConvertedFile) and each.note:
            page.prose(each.note)


def write_batch_report(path: Path, folder: Path, outcomes: Sequence[Outcome]) -> None:
    """Write the results of all files, one row each, and the changes of each converted file."""
    from opshift.analysis.pages.conversion_page import changes_section
    from opshift.analysis.pages.document import Document
    from opshift.analysis.pages.markdown import escape_line, table
    from opshift.analysis.pages.write_report import write_page

    rows, parts = [], []
    for each in outcomes:
        remedy = each.error["remedy"] if isinstance(each, FailedFile) else ""
        rows.append(tuple(map(escape_line, (*_row(each), remedy))))
        if isinstance(each, ConvertedFile) and each.report.changed:
            parts += [f"## {escape_line(each.source)}", *changes_section(each.report)]
    results = table(("model", "opsets", "kept", "changed", "result", "what to do"), rows)
    text = "\n\n".join(filter(None, (f"# Conversion to {escape_line(folder)}", results, *parts)))
    write_page(path, batch_data(folder, outcomes), lambda: Document(f"{text}\n"))


def write_failures(page: Page, outcomes: Sequence[Outcome]) -> None:
    """Print the files that were not converted, with reasons and remedies."""
    rows = [(each.source, _reason(each), each.error["remedy"]) for each in failures(outcomes)]
    page.table((Column("model", "cyan"), Column("error", "red"), "help"), rows)


def _row(outcome: Outcome) -> tuple[object, ...]:
    if isinstance(outcome, FailedFile):
        return (outcome.source, "", "", "", f"failed: {_reason(outcome)}")
    report = outcome.report
    opsets = ", ".join(f"{each.domain} {each.source} -> {each.target}" for each in report.opsets)
    return (outcome.source, opsets or "unchanged", report.kept, len(report.changed), _result(outcome))


def _result(outcome: ConvertedFile) -> str:
    verification = outcome.verification
    if verification is None:
        return str(outcome.out)
    max_difference = max((each.absolute for each in verification.outputs), default=0.0)
    return f"{outcome.out}, equal{f' within {max_difference:.2g}' if max_difference else ''}"


def _reason(failed: FailedFile) -> str:
    """Return place and reason of an error, without the file: it has its own column."""
    place = str(failed.error["place"]).removeprefix(str(failed.source)).removeprefix(": ")
    return ": ".join(filter(None, (place, str(failed.error["reason"]))))
