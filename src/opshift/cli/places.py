"""Which files a command may read and write."""

from __future__ import annotations

from pathlib import Path

from opshift.converter.errors import UsageError


def require_file(source: Path) -> None:
    """Check that there is a file to read.

    Raises:
        UsageError: there is none.
    """
    if source.is_dir():
        raise UsageError("is a folder", place=str(source), remedy="name the model file in it")
    if not source.exists():
        raise UsageError("there is no such file", place=str(source), remedy="check the path")


def destination(source: Path, out: Path | None, *, in_place: bool, force: bool) -> Path:
    """The file to write, as the command line names it.

    Raises:
        UsageError: it is not said, not allowed, or not there.
    """
    if in_place:
        if out is not None:
            raise UsageError(
                "both OUT and --in-place are given", place=str(out), remedy="leave one of them out"
            )
        return source
    if out is None:
        raise UsageError("OUT is not given", remedy="name the file to write, or replace IN with --in-place")
    require_free(source, out, force)
    path = without_links(out)
    if not path.parent.is_dir():
        raise UsageError("its folder does not exist", place=str(out), remedy=f"create {path.parent} first")
    return out


def require_free(source: Path, out: Path, force: bool) -> None:
    """Check that a file may be written.

    Raises:
        UsageError: it is the input, a folder or a device, or there already and not to be replaced.
    """
    if out.is_dir():
        raise UsageError(
            "is a folder", place=str(out), remedy=f"name a file in it, such as {out / source.name}"
        )
    if not out.exists():
        return
    if out.samefile(source):
        raise UsageError(
            "is the input itself", place=str(out), remedy="to replace it say --in-place, without OUT"
        )
    if not out.is_file():
        raise UsageError("is there and no regular file", place=str(out), remedy="name another file")
    if not force:
        raise UsageError(
            "is there already", place=str(out), remedy="replace it with --force, or name another"
        )


def without_links(out: Path) -> Path:
    """The file that a path leads to.

    Raises:
        UsageError: it leads nowhere.
    """
    try:
        return out.resolve()
    except (RuntimeError, OSError) as error:  # Python 3.13 made it an OSError
        raise UsageError("is a link that leads nowhere", place=str(out), remedy="remove it") from error
