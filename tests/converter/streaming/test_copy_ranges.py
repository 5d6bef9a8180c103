"""Copies of file ranges with the fastest available method, and the fallbacks."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest

from opshift.converter.streaming import copy_ranges as copying
from opshift.converter.streaming.copy_ranges import (
    MIN_DIRECT_COPY,
    PAGE_SIZE,
    CopyFunction,
    copy_range,
    write_pieces,
)
from opshift.model.errors import InvalidModel
from opshift.model.tensor_pieces import Piece, Range
from opshift.stores.source_file import SourceFile

SIZE = 2 * SourceFile.copy_size + 5 * MIN_DIRECT_COPY
DATA = os.urandom(SIZE)


def fail(*_: object) -> NoReturn:
    raise OSError(95, "Operation not supported")


def fail_after_some_bytes(copy: CopyFunction) -> CopyFunction:
    """Return a copy method that copies some bytes and then fails."""

    def copy_some(source: int, target: int, start: int, count: int) -> NoReturn:
        copy(source, target, start, min(1000, count))
        fail()

    return copy_some


def copy_nothing(*_: object) -> int:
    """Copy nothing, as a system call does at the end of a file."""
    return 0


METHODS: dict[str, tuple[CopyFunction, ...]] = {
    "file system": (copying._copy_in_file_system,),
    "kernel": (fail, copying._copy_in_kernel),
    "memory": (fail, fail, fail),
    "memory, no other method": (),
    "file system fails after some bytes": (
        fail_after_some_bytes(copying._copy_in_file_system),
        copying._copy_in_kernel,
    ),
    "kernel fails after some bytes": (fail, fail_after_some_bytes(copying._copy_in_kernel)),
    "memory after methods that copy nothing": (copy_nothing, copy_nothing),
}


@pytest.fixture
def source(tmp_path: Path) -> SourceFile:
    path = tmp_path / "source"
    path.write_bytes(DATA)
    return SourceFile(path)


def write_target(tmp_path: Path, pieces: list[Piece], source: SourceFile) -> bytes:
    path = tmp_path / "target"
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    with source:
        write_pieces(pieces, source, file)
    os.close(file)
    return path.read_bytes()


@pytest.mark.parametrize(
    "before", [0, 3, 6, 3 + PAGE_SIZE, 3 + PAGE_SIZE - 1], ids=lambda count: f"{count} bytes before"
)
@pytest.mark.parametrize("method", METHODS)
def test_copies_range(
    method: str, before: int, source: SourceFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The range starts at byte 3 of the source; the bytes before it decide whether page offsets agree."""
    monkeypatch.setattr(copying, "KERNEL_COPIES", METHODS[method])
    pieces: list[Piece] = [bytes(before), Range(3, SIZE - 5), b"after"]
    assert write_target(tmp_path, pieces, source) == bytes(before) + DATA[3:-5] + b"after"


@pytest.mark.parametrize(("before", "expected"), [(0, ["kernel"]), (PAGE_SIZE, ["kernel"]), (1, [])])
def test_uses_kernel_only_for_equal_page_offsets(
    before: int, expected: list[str], source: SourceFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def record_call(source: int, target: int, start: int, count: int) -> int:
        calls.append("kernel")
        return copying._copy_in_kernel(source, target, start, count)

    monkeypatch.setattr(copying, "KERNEL_COPIES", (record_call,))
    write_target(tmp_path, [bytes(before), Range(0, SIZE)], source)
    assert calls == expected


@pytest.mark.parametrize("error", [errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM])
@pytest.mark.parametrize("before", [3, 4], ids=lambda count: f"{count} bytes before")
@pytest.mark.parametrize("failing_calls", [("copy_file_range",), ("copy_file_range", "sendfile")])
def test_falls_back_when_system_call_fails(
    failing_calls: tuple[str, ...],
    before: int,
    error: int,
    source: SourceFile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(error, os.strerror(error))

    for name in failing_calls:
        monkeypatch.setattr(os, name, refuse, raising=False)
    assert write_target(tmp_path, [bytes(before), Range(3, SIZE)], source) == bytes(before) + DATA[3:]


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([], id="no pieces"),
        pytest.param([Range(0, SIZE)], id="whole file"),
        pytest.param([Range(7, 7)], id="empty range"),
        pytest.param([Range(SIZE - 10, SIZE), Range(0, 10)], id="short ranges in any order"),
        pytest.param(
            [b"a", Range(0, MIN_DIRECT_COPY), b"b", Range(0, MIN_DIRECT_COPY - 1), b"c"],
            id="long and short ranges",
        ),
        pytest.param([bytes(each) for each in range(1000)], id="many byte strings"),
        pytest.param([Range(0, 2 * MIN_DIRECT_COPY)] * 7, id="repeated range"),
    ],
)
def test_writes_pieces_in_order(pieces: list[Piece], source: SourceFile, tmp_path: Path) -> None:
    expected = b"".join(DATA[each.start : each.end] if isinstance(each, Range) else each for each in pieces)
    assert write_target(tmp_path, pieces, source) == expected


@pytest.mark.parametrize("method", METHODS)
def test_reports_truncated_source(
    method: str, source: SourceFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "KERNEL_COPIES", METHODS[method])
    os.truncate(source.place, SIZE // 2)
    with pytest.raises(InvalidModel, match="was truncated while it was read"):
        write_target(tmp_path, [Range(0, SIZE)], source)


def test_reports_full_disk(source: SourceFile) -> None:
    with source, open("/dev/full", "wb", buffering=0) as full, pytest.raises(OSError, match="No space left"):
        copy_range(source, Range(0, SIZE), full.fileno())
