"""Checks of the paths that a command reads and writes."""

from pathlib import Path

from opshift.model.errors import UsageError
from opshift.model.file_formats import folder_problem


def require_file(source: Path) -> None:
    """Raise a UsageError unless a path is an existing file."""
    if source.is_dir():
        reason, remedy = folder_problem(source)
        raise UsageError(reason, place=str(source), remedy=remedy)
    if not source.exists():
        raise UsageError("file does not exist", place=str(source), remedy="correct the path")


def output_file(source: Path, out: Path | None, *, in_place: bool, force: bool) -> Path:
    """Return the file to write, which is `source` with --in-place.

    Raises a UsageError if OUT is missing, contradicts --in-place, must not be written, or has no folder.
    """
    if in_place:
        if out is not None:
            raise UsageError("both OUT and --in-place are given", place=str(out), remedy="remove one of them")
        return source
    if out is None:
        raise UsageError("OUT is not given", remedy="name the file to write, or replace IN with --in-place")
    require_writable(source, out, force)
    folder = resolve_links(out).parent
    if not folder.is_dir():
        raise UsageError("the folder of OUT does not exist", place=str(out), remedy=f"create {folder}")
    return out


def require_writable(source: Path, out: Path, force: bool) -> None:
    """Raise a UsageError if a file is the input, a folder or a device, or exists and `force` is false."""
    if out.is_dir():
        reason, remedy = "is a folder", f"name a file in the folder, such as {out / source.name}"
    elif not out.exists():
        return
    elif out.samefile(source):
        reason, remedy = "is the input file", "replace the input with --in-place, without OUT"
    elif not out.is_file():
        reason, remedy = "exists and is not a regular file", "name another file"
    elif not force:
        reason, remedy = "already exists", "replace it with --force, or name another file"
    else:
        return
    raise UsageError(reason, place=str(out), remedy=remedy)


def resolve_links(out: Path) -> Path:
    """Return a path with all symbolic links resolved; raise a UsageError if they form a cycle."""
    try:
        return out.resolve()
    except (RuntimeError, OSError) as error:  # RuntimeError before Python 3.13
        reason = "is a symbolic link that cannot be resolved"
        raise UsageError(reason, place=str(out), remedy="remove the link") from error
