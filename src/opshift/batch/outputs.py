"""Outputs of a batch: files below a folder, or objects in a store. No two models have the same output."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple
from unicodedata import normalize

from opshift.batch.ledger import LEDGER_FOLDER, Ledger
from opshift.converter.streaming.external_data import ExternalHandling
from opshift.model.atomic_files import remove_abandoned_files, temporary_files
from opshift.model.errors import CannotWrite, UsageError
from opshift.model.locations import is_url
from opshift.stores.list_objects import objects_below
from opshift.stores.locations import exists, join
from opshift.stores.uploads import remove_unfinished as abort_uploads


def output_location(out: str, relative: str) -> str:
    """Return the output of a model; `relative` is its path with slashes, or any key of an object store.

    Raises:
        UsageError: `relative` has an empty part, `.`, `..` or a null character, or a symbolic link is the
            output or leads out of `out`.
        CannotWrite: the path cannot be resolved, for example because a name is too long.
    """
    if not {"", ".", ".."}.isdisjoint(relative.split("/")) or "\0" in relative:
        reason = "has an empty part, a part `.` or `..`, or a null character"
        raise UsageError(reason, place=relative, remedy="correct the name, or convert it alone")
    output = join(out, relative)
    if not is_url(output):
        require_no_link(output)
    return output


def require_no_link(path: str) -> None:
    """Raise UsageError if an output path is a symbolic link, whose target would be replaced."""
    if os.path.islink(path):
        raise UsageError("is a symbolic link", place=path, remedy="remove the link")


def foreign_objects(out: str, ledger: Ledger) -> Container[str]:
    """Return the objects below a URL, except the ledger, that no run with this ledger wrote.

    The result is empty for a local folder.

    One request lists a thousand objects; without the listing, each object would need a request.
    """
    if not is_url(out) or not exists(out):
        return ()
    names = (name for name in objects_below(out) if not name.startswith(f"{LEDGER_FOLDER}/"))
    locations = (join(out, name) for name in names)
    owned = ((location, ledger.entry(location)) for location in locations)
    return {location for location, entry in owned if entry is None or not entry.owns_output}


def remove_unfinished(output: str) -> None:
    """Remove unfinished uploads or temporary files of killed processes; the output must not be in use."""
    if is_url(output):
        with suppress(CannotWrite):  # the store may forbid listing uploads
            abort_uploads(output)
    else:
        remove_abandoned_files(Path(output).parent)


class _Transfer(NamedTuple):
    """Input file, and its output file or `""` if it is not copied; symbolic links are resolved."""

    source: str
    destination: str


class Destinations:
    """Input and output files of a run, in a temporary database."""

    def __init__(self) -> None:
        self._files = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        # In the row of an output, `source` is the input file that becomes `path`, and `model` is the input
        # model.
        columns = "role TEXT, path BLOB, source BLOB, model BLOB, PRIMARY KEY (role, path)"
        self._files.execute(f"CREATE TABLE files ({columns})")

    def claim(
        self,
        source: str,
        output: str,
        data: Sequence[str],
        external: ExternalHandling,
        *,
        rewrites_data: bool,
    ) -> None:
        """Record the files of a model.

        Args:
            source: the model file.
            output: the converted model file.
            data: external data files of the model, relative to its folder.
            external: the handling of external data files.
            rewrites_data: whether element types are converted, which writes all data to one new file.

        Raises:
            UsageError: another source has the same destination, or a destination is also an input.
        """
        found = _file_transfers(source, output, data, external, rewrites_data=rewrites_data)
        transfers = [_Transfer(*map(self._one_spelling, each)) for each in found]
        if transfers[0].source == transfers[0].destination:
            raise UsageError("is the input file", place=output, remedy="name another folder with --out")
        for position, (read, written) in enumerate(transfers):
            first = self._record_file("output", written, read, source) if written else None
            # models may share a data file, but not a model file
            if first and (position == 0 or first[0] != read):
                reason = f"{first[1]} and {source} write different files to this path"
                if position == 0:
                    reason = f"{first[1]} and {source} have the same output file"
                raise UsageError(reason, place=written, remedy="convert them into separate folders")
            self._record_file("input", read, read, source)
        for read, written in transfers:
            for path, role in (read, "output"), (written, "input"):
                other = self._recorded_file(role, path)
                if other and other[0] != read:
                    reader = source if role == "output" else other[1]
                    reason, remedy = f"is also an input file of {reader}", "name another folder with --out"
                    raise UsageError(reason, place=path, remedy=remedy)

    def is_output(self, path: str) -> bool:
        """Return whether a recorded model or data file will be written to `path`."""
        return self._recorded_file("output", without_links(path)) is not None

    def _record_file(self, role: str, path: str, source: str, model: str) -> tuple[str, str] | None:
        """Record a file and return `None`; if it is already recorded, return its source and model instead."""
        # Paths are bytes, because they may have characters that are not Unicode.
        row = (role, *(each.encode(errors="surrogatepass") for each in (path, source, model)))
        if self._files.execute("INSERT OR IGNORE INTO files VALUES (?, ?, ?, ?)", row).rowcount:
            return None
        return self._recorded_file(role, path)

    def _recorded_file(self, role: str, path: str) -> tuple[str, str] | None:
        found = self._files.execute(
            "SELECT source, model FROM files WHERE role = ? AND path = ?",
            (role, path.encode(errors="surrogatepass")),
        ).fetchone()
        return found and (found[0].decode(errors="surrogatepass"), found[1].decode(errors="surrogatepass"))

    def _one_spelling(self, path: str) -> str:
        """Return the first recorded spelling of a path if the file system ignores case, else the path."""
        if is_url(path):
            return path
        first = self._record_file("spelling", normalize("NFC", path).casefold(), path, "")
        if not first or first[0] == path:
            return path
        return first[0] if _ignores_case(os.path.commonpath((first[0], path))) else path


def without_links(location: str) -> str:
    """Return the real path of a file, or a URL as it is."""
    return location if is_url(location) else os.path.realpath(location)


def _file_transfers(
    source: str, output: str, data: Sequence[str], external: ExternalHandling, *, rewrites_data: bool
) -> Iterator[_Transfer]:
    yield _Transfer(without_links(source), without_links(output))
    if is_url(source) or is_url(output):
        return  # the data files of objects are compared when they are written
    # external data is relative to the folder of the given path, even if this path is a symbolic link
    folder, target = (os.path.realpath(os.path.dirname(each)) for each in (source, output))
    is_copied = external != "keep" and folder != target and not rewrites_data
    for location in data:
        destination = os.path.realpath(os.path.join(target, location)) if is_copied else ""
        yield _Transfer(os.path.realpath(os.path.join(folder, location)), destination)
    if data and rewrites_data:
        new_file = os.path.join(target, f"{os.path.basename(output)}.data")
        yield _Transfer(os.path.realpath(source), os.path.realpath(new_file))


def _ignores_case(folder: str) -> bool:
    """Return whether the file system of a folder, which may not exist yet, is writable and ignores case."""
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    prefix, suffix = temporary_files(os.getpid()).split("*")
    try:
        with NamedTemporaryFile(prefix=prefix, suffix=suffix, dir=folder) as file:
            return os.path.exists(os.path.join(folder, os.path.basename(file.name).swapcase()))
    except OSError:  # no file can be written to this folder, so the case of names does not matter
        return False
