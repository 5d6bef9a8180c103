"""Digests of the files and options on which a result depends, to detect changes in a later run.

For an object in a store, one request returns a digest, a version or a time. If the store sends none of these,
the content is read.
"""

import errno
import json
import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import file_digest, sha256
from pathlib import Path
from typing import NamedTuple

from opshift.adapters.core.adapter_table import ENTRY_POINT_GROUP
from opshift.batch.settings import Settings
from opshift.model.errors import OpshiftError
from opshift.model.locations import is_url
from opshift.registry.installed import DEFINITIONS, installed_entry_points


class FileState(NamedTuple):
    """Digest and metadata (`report`) of a file: while `report` is unchanged, the file is not read again."""

    digest: str
    report: str


FileStates = Mapping[str, FileState]
"""State of each file, by its full name."""


def states_of(locations: Iterable[str]) -> dict[str, FileState]:
    """Return the states of files; raise OSError or InvalidModel if a file or object cannot be read."""
    found = {}
    for location in map(full_name, locations):
        report = _report_of(location)
        found[location] = FileState(_digest_of(location, report), report)
    return found


def full_name(location: str) -> str:
    """Return the absolute path of a local file, or a URL as it is."""
    return location if is_url(location) else os.path.abspath(location)


def are_unchanged(states: FileStates) -> bool:
    """Return whether all files still have their recorded content; false if one cannot be read."""
    try:
        return all(
            (report := _report_of(location)) == state.report or _digest_of(location, report) == state.digest
            for location, state in states.items()
        )
    # ValueError: a null character in a ledger that another tool wrote
    except (OSError, ValueError, OpshiftError):
        return False


def _report_of(path: str) -> str:
    """Return the size, times and inode of a file as text, or the state that a store reports for an object."""
    if is_url(path):
        from opshift.stores.locations import object_state  # imported here: few locations are URLs

        state = object_state(path)
        if state is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return state
    found = os.stat(path)
    # a program can set the modification time, but not the time of the inode change (ctime)
    return f"{found.st_size}-{found.st_mtime_ns}-{found.st_ctime_ns}-{found.st_ino}"


@lru_cache(1_000)  # cached, because many models may share a data file
def _digest_of(path: str, report: str) -> str:
    if is_url(path):
        return report
    with open(path, "rb") as file:
        return f"sha256:{file_digest(file, 'sha256').hexdigest()}"


def options_digest(settings: Settings) -> str:
    """Return a digest of the options, their files, and the plugins, on which results depend."""
    target = settings.read().target
    code = (*settings.opsets, *settings.adapters, *map(Path, settings.references), *settings.custom_ops)
    inputs = (*filter(None, [settings.inputs]), *(path for _, path in settings.input_files))
    content = [
        sorted(target.opsets.items()),
        sorted(target.limits.items()),
        [target.ir_version, target.requested_ir_version],
        # `force` determines which files may be replaced, but not their content
        settings._replace(target=(), ir_version=None, force=False),
        list(content_digests((*code, *inputs))),
        plugins(),
    ]
    return sha256(json.dumps(content, default=str).encode()).hexdigest()[:16]


def content_digests(paths: Iterable[Path]) -> Iterable[str]:
    """Yield the SHA-256 digests of files, and of all files in folders except `__pycache__`."""
    for path in paths:
        for each in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if each.is_file() and "__pycache__" not in each.parts:
                with each.open("rb") as file:
                    yield file_digest(file, "sha256").hexdigest()


def plugins() -> list[str]:
    """Return names and versions of the installed packages that provide definitions or adapters."""
    found = (
        each.dist for group in (DEFINITIONS, ENTRY_POINT_GROUP) for each in installed_entry_points(group)
    )
    return sorted({f"{each.name} {each.version}" for each in found if each is not None})
