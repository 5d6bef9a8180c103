"""Files that a batch writes: no two sources may have one destination."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple
from unicodedata import normalize

from opshift.converter.streaming.external_data import ExternalHandling, external_locations
from opshift.model.atomic_files import temporary_files
from opshift.model.errors import OpshiftError, UsageError


class Job(NamedTuple):
    """File to read and file to write."""

    source: Path
    out: Path


class _Transfer(NamedTuple):
    """File that a job reads, and the file that it becomes, if any; both without symbolic links."""

    source: str
    destination: str


def groups_of_jobs(jobs: Sequence[Job], external: ExternalHandling) -> list[list[Job]]:
    """Return the jobs in groups that write the same data files, which must run one after the other.

    Raises:
        UsageError: two sources have the same destination, or a destination is also an input.
    """
    names: dict[str, str] = {}
    transfers = [
        [_Transfer(*(_one_spelling(path, names) for path in pair)) for pair in _transfers(job, external)]
        for job in jobs
    ]
    inputs = {each.source: job for job, found in zip(jobs, transfers, strict=True) for each in found}
    claims: dict[str, tuple[str, int]] = {}
    shared: list[tuple[int, int]] = []
    for position, found in enumerate(transfers):
        for source, destination in found:
            if not destination:
                continue
            owner, first = claims.setdefault(destination, (source, position))
            if owner != source:
                reason = (
                    f"{jobs[first].source} and {jobs[position].source} write different files to this path"
                )
                raise UsageError(reason, place=destination, remedy="convert them into separate folders")
            if destination in inputs and destination != source:
                reason = f"is also an input file, of {inputs[destination].source}"
                raise UsageError(reason, place=destination, remedy="name another folder with --out")
            if first != position:
                shared.append((first, position))
    if not shared:
        return [[job] for job in jobs]
    import networkx as nx  # slow to import

    graph = nx.empty_graph(len(jobs))
    graph.add_edges_from(shared)
    return [[jobs[each] for each in sorted(group)] for group in nx.connected_components(graph)]


def _transfers(job: Job, external: ExternalHandling) -> Iterator[_Transfer]:
    source, out = (Path(os.path.realpath(each)) for each in job)
    yield _Transfer(str(source), str(out))
    # locations are relative to the paths as given, also where these are symbolic links
    folder, target = (os.path.realpath(each.parent) for each in job)
    is_written = external != "keep" and folder != target
    for location in _locations(job.source):
        destination = os.path.realpath(os.path.join(target, location)) if is_written else ""
        yield _Transfer(os.path.realpath(os.path.join(folder, location)), destination)


def _one_spelling(path: str, names: dict[str, str]) -> str:
    """Return the first spelling of a path among those that a file system takes for one path."""
    first = names.setdefault(normalize("NFC", path).casefold(), path)
    return first if first != path and _ignores_case(os.path.commonpath((first, path))) else path


def _ignores_case(folder: str) -> bool:
    """Return whether the file system of a folder, which may not exist yet, ignores the case of names."""
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    prefix, suffix = temporary_files(os.getpid()).split("*")
    try:
        with NamedTemporaryFile(prefix=prefix, suffix=suffix, dir=folder) as file:
            return os.path.exists(os.path.join(folder, os.path.basename(file.name).swapcase()))
    except OSError:  # no file can be written to this folder
        return False


def _locations(source: Path) -> Sequence[str]:
    if not source.is_file():  # reading a pipe would consume it
        return ()
    try:
        return external_locations(source)
    except (OpshiftError, OSError):  # reported by the conversion
        return ()
