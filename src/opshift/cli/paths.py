"""Checks of the paths that a command reads and writes."""

from __future__ import annotations

from pathlib import Path

from opshift.model.errors import UsageError


def require_file(source: Path) -> None:
    """Check that a path is an existing file.

    Raises:
        UsageError: it is a folder or does not exist.
    """
    if source.is_dir():
        raise UsageError("is a folder", place=str(source), remedy="name a file in the folder")
    if not source.exists():
        raise UsageError("file does not exist", place=str(source), remedy="correct the path")


def output_file(source: Path, out: Path | None, *, in_place: bool, force: bool) -> Path:
    """Return the file to write, which is `source` with --in-place.

    Raises:
        UsageError: OUT is missing, is given with --in-place or must not be written, or its folder does not
            exist.
    """
    if in_place:
        if out is not None:
            raise UsageError("both OUT and --in-place are given", place=str(out), remedy="remove one of them")
        return source
    if out is None:
        raise UsageError("OUT is not given", remedy="name the file to write, or replace IN with --in-place")
    require_writable(source, out, force)
    path = resolve_links(out)
    if not path.parent.is_dir():
        raise UsageError("the folder of OUT does not exist", place=str(out), remedy=f"create {path.parent}")
    return out


def require_writable(source: Path, out: Path, force: bool) -> None:
    """Check that a command may write a file.

    Raises:
        UsageError: the file is the input, a folder or a device, or it exists and `force` is false.
    """
    if out.is_dir():
        raise UsageError(
            "is a folder", place=str(out), remedy=f"name a file in the folder, such as {out / source.name}"
        )
    if not out.exists():
        return
    if out.samefile(source):
        raise UsageError(
            "is the input file", place=str(out), remedy="replace the input with --in-place, without OUT"
        )
    if not out.is_file():
        raise UsageError("exists and is not a regular file", place=str(out), remedy="name another file")
    if not force:
        raise UsageError(
            "already exists", place=str(out), remedy="replace it with --force, or name another file"
        )


def resolve_links(out: Path) -> Path:
    """Return a path with all symbolic links resolved.

    Raises:
        UsageError: the links cannot be resolved, such as links in a cycle.
    """
    try:
        return out.resolve()
    except (RuntimeError, OSError) as error:  # RuntimeError before Python 3.13
        raise UsageError(
            "is a symbolic link that cannot be resolved", place=str(out), remedy="remove the link"
        ) from error
