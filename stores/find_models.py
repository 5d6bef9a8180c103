"""Model files that a command line names: files, folders, globs, and a list on standard input."""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from opshift.model.errors import UsageError

MODEL_PATTERN = "*.onnx"
"""Names of the files that are models in a folder."""

LIST = "-"
"""Name that represents a list of names on standard input, one in each line."""

MAGIC = re.compile(r"[*?[]")
"""Characters of a glob."""

ANY_FOLDERS = "**"
"""Part of a glob that matches any number of folders."""


class FoundModel(NamedTuple):
    """Model file.

    `relative` is its path below the folder that was named, or below the folders of a glob before the first
    wildcard, with slashes. For a file it is the name, and for a file of a list the path without the root.
    """

    location: str
    relative: str


def find_models(
    names: Iterable[str], pattern: str = MODEL_PATTERN, *, lines: Iterable[str] | None = None
) -> Iterator[FoundModel]:
    """Return the models that are named, in the order of the names, and in folders in that of their paths.

    The iterator lists folders as it proceeds. Files of a list need not exist: reading them raises an error
    that names one model, and does not end the list.

    Args:
        names: files, folders, globs such as `zoo/**/*.onnx`, and `-` for a list on standard input.
        pattern: the names of the files that are models in a folder.
        lines: the list that `-` stands for, by default that on standard input.

    Raises:
        UsageError: a file does not exist, or a folder or glob has no models; or, later, a folder cannot be
            listed.
    """
    given = list(names)
    for name in given:
        if name != LIST and not os.path.lexists(name) and not MAGIC.search(name):
            raise UsageError("file does not exist", place=name, remedy="correct the path")
    return _found(given, pattern, sys.stdin if lines is None else lines)


def _found(names: Iterable[str], pattern: str, lines: Iterable[str]) -> Iterator[FoundModel]:
    for name in names:
        if name == LIST:
            yield from _listed(lines, pattern)
        elif os.path.isdir(name):
            yield from _require_any(_below(name, pattern), name, f"contains no {pattern} files")
        elif os.path.lexists(name):
            yield FoundModel(name, os.path.basename(name))
        else:
            yield from _require_any(_matching(name), name, "matches no files")


def _listed(lines: Iterable[str], pattern: str) -> Iterator[FoundModel]:
    for line in lines:
        name = line.rstrip("\r\n")
        if os.path.isdir(name):
            yield from _below(name, pattern)
        elif name:
            path = Path(os.path.abspath(name) if ".." in Path(name).parts else name)
            yield FoundModel(name, path.relative_to(path.anchor).as_posix())


def _require_any(found: Iterator[FoundModel], place: str, problem: str) -> Iterator[FoundModel]:
    first = next(found, None)
    if first is None:
        raise UsageError(problem, place=place, remedy="correct the path, or name the model files")
    yield first
    yield from found


def _below(folder: str, pattern: str) -> Iterator[FoundModel]:
    for relative in _files(Path(folder)):
        if fnmatch(os.path.basename(relative), pattern):
            yield FoundModel(str(Path(folder, relative)), relative)


def _matching(glob: str) -> Iterator[FoundModel]:
    parts = Path(glob).parts
    first = next(position for position, part in enumerate(parts) if MAGIC.search(part))
    folder, wanted = Path(*parts[:first]), parts[first:]
    for relative in _files(folder, sys.maxsize if ANY_FOLDERS in wanted else len(wanted)):
        if _matches(relative.split("/"), wanted):
            yield FoundModel(str(folder / relative), relative)


def _matches(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    if not wanted or not parts:
        return not wanted and not parts
    if wanted[0] == ANY_FOLDERS:
        rest = wanted[1:] or ("*",)
        return any(_matches(parts[skipped:], rest) for skipped in range(len(parts)))
    return fnmatch(parts[0], wanted[0]) and _matches(parts[1:], wanted[1:])


def _files(folder: Path, depth: int = sys.maxsize) -> Iterator[str]:
    """Yield the files in a folder, and in its folders up to a depth, in the order of their paths.

    Links to folders are not followed: they may form cycles.
    """
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as error:
        reason = f"cannot be listed: {error.strerror}"
        raise UsageError(reason, place=str(folder), remedy="correct the path, or its permissions") from error
    for entry in entries:
        if entry.is_file():
            yield entry.name
        elif depth > 1 and entry.is_dir(follow_symlinks=False):
            for relative in _files(Path(entry.path), depth - 1):
                yield f"{entry.name}/{relative}"
