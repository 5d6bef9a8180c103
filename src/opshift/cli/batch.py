"""Several files at once: where each goes, the work in several processes, and one summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from opshift.cli.conversion import Converted, Settings, convert_file
from opshift.cli.failing import error_data
from opshift.cli.options import registry_with, run_adapters
from opshift.cli.places import require_file, require_free, without_links
from opshift.converter.errors import UsageError
from opshift.registry.errors import OpshiftError

PATTERN = "*.onnx"


class Job(NamedTuple):
    """A file to read, and the one to write."""

    source: Path
    out: Path


class Failed(NamedTuple):
    """A file that was not written, and why, as `--format json` has it."""

    source: Path
    error: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {"input": self.source, "output": None, **self.error}


Outcome = Converted | Failed


def jobs_for(sources: Sequence[Path], folder: Path, *, force: bool) -> list[Job]:
    """Where each file goes; of a folder all models in it, under the names that they have there.

    Raises:
        UsageError: an input is not there, two would go to one file, or a file must not be written.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError("is no folder", place=str(folder), remedy="name a folder with --out")
    jobs = [job for source in sources for job in _jobs(source, folder)]
    inputs = {job.source.resolve() for job in jobs}
    seen: dict[Path, Path] = {}
    for source, out in jobs:
        if out in seen:
            both = f"{seen[out]} and {source} would both be written to it"
            raise UsageError(both, place=str(out), remedy="convert them into folders of their own")
        seen[out] = source
        if without_links(out) in inputs and not (out.exists() and out.samefile(source)):
            raise UsageError("is an input itself", place=str(out), remedy="name another folder with --out")
        require_free(source, out, force)
    return jobs


def _jobs(source: Path, folder: Path) -> Iterator[Job]:
    if not source.is_dir():
        require_file(source)
        yield Job(source, folder / source.name)
        return
    outputs = folder.resolve()
    found = [each for each in sorted(source.rglob(PATTERN)) if each.is_file()]
    is_within = source.resolve() in outputs.parents
    files = [each for each in found if not (is_within and outputs in each.resolve().parents)]
    if not files:
        raise UsageError(f"holds no {PATTERN}", place=str(source), remedy="name the files")
    for each in files:
        yield Job(each, folder / each.relative_to(source))


def run_jobs(jobs: Sequence[Job], settings: Settings, workers: int, *, quiet: bool) -> list[Outcome]:
    """Convert all files, in the order that they were named; what fails does not stop the others."""
    for folder in {job.out.parent for job in jobs}:
        folder.mkdir(parents=True, exist_ok=True)
    with _progress(len(jobs), quiet) as advance:
        if workers == 1 or len(jobs) == 1:
            found = []
            for job in jobs:
                found.append(attempt(job, settings))
                advance(job)
            return found
        return _run_in_processes(jobs, settings, min(workers, len(jobs)), advance)


def _run_in_processes(
    jobs: Sequence[Job], settings: Settings, workers: int, advance: Callable[[Job], None]
) -> list[Outcome]:
    found: dict[Job, Outcome] = {}
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(attempt, job, settings): job for job in jobs}
        try:
            for done in as_completed(waiting):
                job = waiting[done]
                found[job] = _outcome(done, job)
                advance(job)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [found[job] for job in jobs]


def _outcome(done: Future[Outcome], job: Job) -> Outcome:
    error = done.exception()
    if error is None:
        return done.result()
    reason = f"the process that converted it ended: {error}"
    return Failed(
        job.source, error_data(OpshiftError(reason, place=str(job.source), remedy="take fewer --jobs"))
    )


def attempt(job: Job, settings: Settings) -> Outcome:
    """Convert one file; whatever goes wrong is its outcome."""
    try:
        registry = registry_with(settings.folders)
        run_adapters(settings.adapters)
        return convert_file(job.source, job.out, settings, registry, quiet=True)
    except OpshiftError as error:
        return Failed(job.source, error_data(error))
    except OSError as error:
        wrong = OpshiftError(error.strerror or str(error), place=str(error.filename or job.source))
        return Failed(job.source, error_data(wrong, type(error).__name__))
    except Exception as error:  # the other files are converted all the same
        wrong = OpshiftError(f"{type(error).__name__}: {error}", place=str(job.source), remedy="report it")
        return Failed(job.source, error_data(wrong, "InternalError"))


@contextmanager
def _progress(count: int, quiet: bool) -> Iterator[Callable[[Job], None]]:
    """A bar on stderr, if somebody watches; what it yields is called after each file."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from opshift.cli.output import visible
    from opshift.cli.terminal import console_for

    console = console_for(on_stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(
        *columns, console=console, transient=True, disable=quiet or not console.is_terminal
    ) as progress:
        bar = progress.add_task("", total=count)
        yield lambda job: progress.update(bar, advance=1, description=visible(str(job.source)))
