"""Standard input and output in place of files: commands accept `-` for each."""

import atexit
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import BinaryIO

import typer

from opshift.model.binary_files import path_to_write, read_blocks, regular_descriptor, temporary_copy
from opshift.model.errors import UsageError
from opshift.model.stream_limits import limited

DASH = "-"

STDIN, STDOUT = "<stdin>", "<stdout>"
"""Locations that represent the two streams, and name them in messages."""


def replace_closed_streams() -> None:
    """Open the null device for each standard stream that is closed, as by `>&-` in a shell.

    Python has no object for such a stream, and the next file that is opened would get its number.
    """
    for name in "stdin", "stdout", "stderr":
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r" if name == "stdin" else "w"))


def require_no_terminal(stream: str, remedy: str) -> None:
    """Raise a UsageError if a stream is closed, or is a terminal: the content is binary."""
    file, original = (sys.stdin, sys.__stdin__) if stream == STDIN else (sys.stdout, sys.__stdout__)
    if original is None:
        raise UsageError("this stream is closed", place=stream, remedy=remedy)
    if file.isatty():
        raise UsageError("the content is binary, and this stream is a terminal", place=stream, remedy=remedy)


def model_input(source: str) -> str | BinaryIO:
    """Return what a model is read from: for standard input, a file object at its start."""
    if source != STDIN:
        return source
    file = _seekable(typer.get_binary_stream("stdin"))
    file.seek(0)
    return file


@cache  # a command may read its input several times
def _seekable(stream: BinaryIO) -> BinaryIO:
    if regular_descriptor(stream) is not None:
        return stream
    file = io.FileIO(temporary_copy(limited(read_blocks(stream), STDIN)))
    file.name = STDIN
    atexit.register(file.close)
    return file


@contextmanager
def model_output(out: str) -> Iterator[str]:
    """Yield the path to write: for standard output, that of a temporary file, which is copied at the end."""
    destination: str | BinaryIO = out
    if out == STDOUT:
        stream = typer.get_binary_stream("stdout")
        # the interpreter would try again to write what is left in the buffer after an error
        destination = getattr(stream, "raw", stream)
    with path_to_write(destination) as path:
        yield os.fspath(path)
