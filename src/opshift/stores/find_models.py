"""Find the model files for names of files, folders, globs and URLs, and for lists of such names."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatch, fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from opshift.model.errors import OpshiftError, UsageError
from opshift.model.locations import is_missing, is_url, is_web_url, without_user_info
from opshift.stores.locations import address_of, url_below

if TYPE_CHECKING:
    from opshift.model.remote import StoreObject

MODEL_PATTERN = "*.onnx"
"""Glob for the names of model files in a folder; names are compared in lower case."""

LIST = "-"
"""Name that represents a list of names on standard input, one in each line."""

MAGIC = re.compile(r"[*?[]")
"""Wildcard characters of a glob."""

ANY_FOLDERS = "**"
"""Part of a glob that matches any number of folders."""


class FoundModel(NamedTuple):
    """Model file, or with an `error`, an entry or a folder that cannot be read.

    `relative` is the path, with slashes, of an output for this model in an output folder. In a named folder,
    it is the path below that folder; for a glob, the path below the last folder before the first wildcard;
    for a named file, the name; for a file in a list, the path without the root, or the URL without scheme
    and host. Paths of web servers end before the query, and those of S3 before the object version.
    """

    location: str
    relative: str
    error: OpshiftError | None = None


def find_models(
    names: Iterable[str],
    pattern: str = MODEL_PATTERN,
    *,
    lines: Iterable[str] | None = None,
    allow_empty: bool = False,
) -> Iterator[FoundModel]:
    """Return an iterator over the named models, in the order of the names; folders yield sorted paths.

    Folders are listed during the iteration. A file in a list may be missing: reading it later raises an error
    for this model only. An entry of a folder that cannot be read, such as a subfolder without permission,
    becomes a `FoundModel` with an error.

    Args:
        names: files, folders, globs such as `zoo/**/*.onnx`, URLs of these, and `-` for a list on standard
            input. In a list, the URL of a folder ends with a slash.
        pattern: glob for the names of model files in a folder, in lower case.
        lines: the list for `-`; by default the lines of standard input.
        allow_empty: whether to accept folders and globs without models.

    Raises:
        UsageError: a file does not exist. During the iteration: a folder or glob contains no models, a named
            folder cannot be listed, or a URL is not usable.
        InvalidModel: during the iteration, a store cannot be read.
    """
    given = list(names)
    for name in given:
        is_path = name != LIST and not is_url(name) and not MAGIC.search(name)
        if is_path and is_missing(name, follow_symlinks=False):
            raise UsageError("file does not exist", place=name, remedy="correct the path")
    require = _accept_none if allow_empty else _require_any
    return _find_each(given, pattern, sys.stdin if lines is None else lines, require)


def is_file_name(name: str) -> bool:
    """Return whether a name refers to one file, which may be missing, and not to a folder or a glob.

    Raises:
        UsageError: no installed package supports the URL, or its bucket has a wildcard.
        InvalidModel: the store cannot be read.
    """
    if is_url(name):
        from opshift.model.remote import StoreObject  # imported here: few names are URLs

        if is_web_url(name):  # `?` begins a query, and web servers do not list folders
            return True
        address = address_of(name)
        if MAGIC.search(address.partition("://")[2].partition("/")[0]):
            raise UsageError("has a wildcard in the bucket name", place=name, remedy="name the bucket")
        found = StoreObject.at(name)
        info = found.info()
        # Treat a missing object with a folder's name as a folder: listing reports that it is missing.
        return info["type"] == "file" if info else not (MAGIC.search(address) or _names_folder(name, found))
    return not os.path.isdir(name) and (os.path.lexists(name) or not MAGIC.search(name))


def _names_folder(url: str, found: StoreObject) -> bool:
    """Return whether a URL can only refer to a folder or a bucket, such as `s3://zoo/`."""
    from opshift.stores.s3 import s3_store

    s3 = s3_store(found.store)
    return url.endswith("/") or (s3 is not None and not s3.split_path(found.path)[1])


def _find_each(
    names: Iterable[str],
    pattern: str,
    lines: Iterable[str],
    require: Callable[[Iterator[FoundModel], str, str], Iterator[FoundModel]],
) -> Iterator[FoundModel]:
    for name in names:
        if name == LIST:
            yield from _models_in_list(lines, pattern)
        elif is_file_name(name):
            yield FoundModel(name, base_name(name))
        elif MAGIC.search(name) and not os.path.isdir(name):
            yield from require(_models_matching(name), name, "matches no files")
        else:
            yield from require(_models_below(name, pattern), name, f"contains no {pattern} files")


def _models_in_list(lines: Iterable[str], pattern: str) -> Iterator[FoundModel]:
    for line in lines:
        name = line.rstrip("\r\n")
        # a slash before a query, or at its end, does not mark a folder
        is_folder_url = is_url(name) and name.endswith("/") and address_of(name) == name
        if is_folder_url or os.path.isdir(name):
            try:
                yield from _models_below(name, pattern)
            except OpshiftError as error:  # an error in one line must not end the search
                yield FoundModel(name, base_name(name.rstrip("/")), error)
        elif is_url(name):
            yield FoundModel(name, _host_and_path(name).partition("/")[2])
        elif name:
            path = Path(os.path.abspath(name) if ".." in Path(name).parts else name)
            yield FoundModel(name, path.relative_to(path.anchor).as_posix())


def _accept_none(found: Iterator[FoundModel], place: str, problem: str) -> Iterator[FoundModel]:
    # git stores no empty folders: accept a glob below a missing folder, which matches nothing
    if (
        is_url(place)
        or os.path.isdir(place)
        or os.path.lexists(MAGIC.split(place)[0].rpartition("/")[0] or ".")
    ):
        yield from found


def _require_any(found: Iterator[FoundModel], place: str, problem: str) -> Iterator[FoundModel]:
    first = next(found, None)
    if first is None:
        raise UsageError(problem, place=place, remedy="correct the path, or name the model files")
    yield first
    yield from found


def _models_below(folder: str, pattern: str) -> Iterator[FoundModel]:
    for relative, error in _files_below(folder):
        if error or fnmatchcase(os.path.basename(relative).lower(), pattern):
            yield FoundModel(_join_path(folder, relative), relative, error)


def _models_matching(glob: str) -> Iterator[FoundModel]:
    parts = glob.partition("://")[2].split("/") if is_url(glob) else Path(glob).parts
    first = next(position for position, part in enumerate(parts) if MAGIC.search(part))
    if is_url(glob):
        folder = f"{glob.partition('://')[0]}://{'/'.join(parts[:first])}"
    else:
        folder = str(Path(*parts[:first]))
    wanted = parts[first:]
    for relative, error in _files_below(folder, sys.maxsize if ANY_FOLDERS in wanted else len(wanted)):
        if _leads_to(relative.split("/"), wanted) if error else _matches_glob(relative.split("/"), wanted):
            yield FoundModel(_join_path(folder, relative), relative, error)


def _matches_glob(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    if not wanted or not parts:
        return not wanted and not parts
    if wanted[0] == ANY_FOLDERS:
        rest = wanted[1:] or ("*",)
        return any(_matches_glob(parts[skipped:], rest) for skipped in range(len(parts)))
    return fnmatch(parts[0], wanted[0]) and _matches_glob(parts[1:], wanted[1:])


def _leads_to(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether a path below the folders `parts` can match a glob, as below `b` for `*/*.onnx`."""
    first = wanted[: len(parts)]
    return ANY_FOLDERS in first or _matches_glob(parts, first)


def base_name(location: str) -> str:
    """Return the last part of a location; for a URL, without query and credentials."""
    return _host_and_path(location).rpartition("/")[2] if is_url(location) else os.path.basename(location)


def _host_and_path(url: str) -> str:
    # Output files get these names: remove user and password, which may contain a `?`, from the URL.
    return address_of(f"{url.partition('://')[0]}://{without_user_info(url)}").partition("://")[2]


def _join_path(folder: str, relative: str) -> str:
    return url_below(folder, relative) if is_url(folder) else str(Path(folder, relative))


def _files_below(folder: str, depth: int = sys.maxsize) -> Iterator[tuple[str, OpshiftError | None]]:
    """Yield the relative paths of the files below a folder, sorted by path, each with an error or `None`.

    `depth` is the maximum number of parts of a path. An entry that cannot be examined, or a subfolder that
    cannot be listed, has an error. Links to folders are not followed: they may form cycles.

    Raises:
        UsageError: the folder itself cannot be listed.
    """
    if is_url(folder):
        from opshift.stores.list_objects import objects_below  # imported here: few names are URLs

        for name in objects_below(folder, depth):
            yield name, None
        return
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as error:
        raise _listing_error(folder, error) from error
    for entry in entries:
        try:
            # A link to a missing file counts as a file: reading it raises an error that names the link.
            is_file = entry.is_file() or (entry.is_symlink() and not os.path.exists(entry.path))
            is_folder = not is_file and entry.is_dir(follow_symlinks=False)
        except OSError as error:  # a cycle of links, or a link into a folder without permission
            from opshift.model.file_formats import unreadable  # imported here: few runs fail

            yield entry.name, unreadable(entry.path, error)
            continue
        if is_file:
            yield entry.name, None
        elif depth > 1 and is_folder:
            try:
                for relative, problem in _files_below(entry.path, depth - 1):
                    yield f"{entry.name}/{relative}", problem
            except UsageError as error:
                yield entry.name, error


def _listing_error(folder: str, error: OSError) -> UsageError:
    reason = f"cannot be listed: {error.strerror}"
    return UsageError(reason, place=folder, remedy="correct the path, or its permissions")
