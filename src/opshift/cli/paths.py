"""Paths that a command reads and writes: checks, and `-` for standard input and output."""

import atexit
import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import BinaryIO

import typer

from opshift.cli.options import Format
from opshift.model.binary_files import path_to_write, read_blocks, regular_descriptor, temporary_copy
from opshift.model.errors import UsageError
from opshift.model.locations import is_missing, is_url
from opshift.model.stream_limits import limited
from opshift.stores.find_models import base_name
from opshift.stores.locations import exists

DASH = "-"

STDIN, STDOUT = "<stdin>", "<stdout>"
"""Locations that represent standard input and standard output, also in messages."""


def replace_closed_streams() -> None:
    """Open the null device for each standard stream that is closed, as by `>&-` in a shell.

    Without it, the next file that is opened would get the descriptor of the closed stream.
    """
    for name in "stdin", "stdout", "stderr":
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r" if name == "stdin" else "w"))


def require_no_terminal(stream: str, remedy: str) -> None:
    """Raise a UsageError if `STDIN` or `STDOUT` is closed, or is a terminal: models are binary."""
    file, original = (sys.stdin, sys.__stdin__) if stream == STDIN else (sys.stdout, sys.__stdout__)
    if original is None:
        raise UsageError("this stream is closed", place=stream, remedy=remedy)
    if file.isatty():
        raise UsageError("the content is binary, and this stream is a terminal", place=stream, remedy=remedy)


def model_input(source: str) -> str | BinaryIO:
    """Return `source`, or for `STDIN` standard input as a seekable file object at its start."""
    if source != STDIN:
        return source
    file = _seekable_stream(typer.get_binary_stream("stdin"))
    file.seek(0)
    return file


@cache  # a command may read its input several times
def _seekable_stream(stream: BinaryIO) -> BinaryIO:
    if regular_descriptor(stream) is not None:
        return stream
    file = io.FileIO(temporary_copy(limited(read_blocks(stream), STDIN)))
    file.name = STDIN
    atexit.register(file.close)
    return file


@contextmanager
def model_output(out: str) -> Iterator[str]:
    """Yield the path to write; for standard output, a temporary file that is copied to it at the end."""
    destination: str | BinaryIO = out
    if out == STDOUT:
        stream = typer.get_binary_stream("stdout")
        # Write to the raw stream: after an error, the interpreter would write the rest of a buffer again.
        destination = getattr(stream, "raw", stream)
    with path_to_write(destination) as path:
        yield os.fspath(path)


REPLACE, REPLACE_INPUT = (
    "replace it with --force, or name another file",
    "replace the input with --in-place, without OUT",
)
"""Remedies for an output that exists, and for an output that is the input."""


def require_file(source: str | Path) -> str:
    """Return the path or URL to read, `STDIN` for `-`; raise a UsageError for a missing file or a folder."""
    if str(source) in (DASH, STDIN):
        require_no_terminal(STDIN, "redirect it, as in opshift inspect - < model.onnx")
        return STDIN
    if is_url(source):
        return str(source)
    path = Path(source)
    if os.path.isdir(path):  # methods of Path raise an error for a name that is too long
        from opshift.model.file_formats import folder_problem  # imported here: few runs fail

        reason, remedy = folder_problem(path)
        raise UsageError(reason, place=str(path), remedy=remedy)
    if is_missing(path):
        raise UsageError("file does not exist", place=str(path), remedy="correct the path")
    return str(path)


def output_file(source: str, out: str | None, *, in_place: bool, force: bool, form: Format) -> str:
    """Return the file to write, which is `source` with --in-place, and `STDOUT` for `-`.

    Raises a UsageError if OUT is missing, contradicts --in-place, must not be written, or has no folder.
    """
    if in_place:
        if source == STDIN:
            raise UsageError("--in-place needs a file", place=source, remedy="write to OUT")
        if out is not None:
            raise UsageError("both OUT and --in-place are given", place=out, remedy="remove one of them")
        return source
    if out is None:
        raise UsageError("OUT is not given", remedy="name the file to write, or replace IN with --in-place")
    if out == DASH:
        require_no_terminal(STDOUT, "redirect it, or name a file to write")
        if form is Format.JSON:
            reason, remedy = "cannot receive both the model and JSON", "name a file to write"
            raise UsageError(reason, place=STDOUT, remedy=remedy)
        return STDOUT
    if is_url(out):
        return _object_to_write(source, out, force)
    path = Path(out)
    if out.endswith(os.sep) and not path.exists():  # the path has no separator at its end
        reason, remedy = "the folder of OUT does not exist", f"create {path}, and name a file in it"
        raise UsageError(reason, place=out, remedy=remedy)
    require_writable(source, path, force)
    folder = resolve_links(path).parent
    if not folder.is_dir():
        raise UsageError("the folder of OUT does not exist", place=str(path), remedy=f"create {folder}")
    return str(path)


def _object_to_write(source: str, out: str, force: bool) -> str:
    if out.endswith("/"):
        reason, remedy = "is a folder", f"name an object in it, such as {out}{base_name(source)}"
    elif out == source:
        reason, remedy = "is the input file", REPLACE_INPUT
    elif not force and exists(out):
        reason, remedy = "already exists", REPLACE
    else:
        return out
    raise UsageError(reason, place=out, remedy=remedy)


def require_writable(source: str, out: Path, force: bool) -> None:
    """Raise a UsageError if `out` is the input, a folder or a device, or exists and `force` is false."""
    if out.is_dir():
        reason, remedy = "is a folder", f"name a file in the folder, such as {out / base_name(source)}"
    elif not out.exists():
        return
    elif source != STDIN and not is_url(source) and out.samefile(source):
        reason, remedy = "is the input file", REPLACE_INPUT
    elif not out.is_file():
        reason, remedy = "exists and is not a regular file", "name another file, or - for stdout"
    elif not force:
        reason, remedy = "already exists", REPLACE
    else:
        return
    raise UsageError(reason, place=str(out), remedy=remedy)


def resolve_links(out: Path) -> Path:
    """Return a path with all symbolic links resolved; raise a UsageError if that fails, as for a cycle."""
    try:
        return out.resolve()
    except (RuntimeError, OSError) as error:  # RuntimeError: raised before Python 3.13
        reason = "is a symbolic link that cannot be resolved"
        raise UsageError(reason, place=str(out), remedy="remove the link") from error


def named_files(options: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Yield the name and the file of each `--input NAME=FILE`; raise UsageError if invalid or repeated."""
    names = set[str]()
    for each in options:
        name, _, file = each.partition("=")
        if not name or not file or name in names:
            reason = "is given twice" if name in names else "is not of the form NAME=FILE"
            raise UsageError(reason, place=f"--input {each}", remedy="name an input once, as in x=file.npy")
        names.add(name)
        yield name, Path(file)
