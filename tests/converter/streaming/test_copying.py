"""Ranges of a file are copied by whatever the system has for it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from opshift.converter.errors import InvalidModel
from opshift.converter.streaming import copying
from opshift.converter.streaming.copying import MOST_IN_MEMORY, PAGE, SHORT, Copy, copy_range, write_pieces
from opshift.converter.streaming.pieces import Piece, Range
from opshift.converter.streaming.source import Source

SIZE = 2 * MOST_IN_MEMORY + 5 * SHORT
DATA = os.urandom(SIZE)


def failing(*_: object) -> None:
    raise OSError(95, "Operation not supported")


def giving_up(copy: Copy) -> Copy:
    """A way to copy that gets some bytes over, and then fails."""

    def some(source: int, target: int, start: int, end: int) -> None:
        copy(source, target, start, min(start + 1000, end))
        failing()

    return some


def idle(*_: object) -> None:
    """A way to copy that says the file has ended."""


WAYS: dict[str, tuple[Copy, ...]] = {
    "by the file system": (copying._copy_in_file_system,),
    "by the kernel": (failing, copying._copy_in_kernel),
    "through memory": (failing, failing, failing),
    "through memory where there is nothing else": (),
    "by the file system until it cannot": (giving_up(copying._copy_in_file_system), copying._copy_in_kernel),
    "by the kernel until it cannot": (failing, giving_up(copying._copy_in_kernel)),
    "through memory after something that does nothing": (idle, idle),
}


@pytest.fixture
def source(tmp_path: Path) -> Source:
    path = tmp_path / "source"
    path.write_bytes(DATA)
    return Source(path)


def written(tmp_path: Path, pieces: list[Piece], source: Source) -> bytes:
    path = tmp_path / "target"
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    with source:
        write_pieces(pieces, source, file)
    os.close(file)
    return path.read_bytes()


@pytest.mark.parametrize(
    "before", [0, 3, 6, 3 + PAGE, 3 + PAGE - 1], ids=lambda count: f"{count} bytes before"
)
@pytest.mark.parametrize("way", WAYS)
def test_a_range_is_copied(
    way: str, before: int, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether its pages lie as they did, where three bytes are before it, or not."""
    monkeypatch.setattr(copying, "KERNEL", WAYS[way])
    pieces: list[Piece] = [bytes(before), Range(3, SIZE - 5), b"after"]
    assert written(tmp_path, pieces, source) == bytes(before) + DATA[3:-5] + b"after"


@pytest.mark.parametrize(("before", "expected"), [(0, ["kernel"]), (PAGE, ["kernel"]), (1, [])])
def test_the_kernel_is_for_pages_that_lie_alike(
    before: int, expected: list[str], source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = []

    def noted(*arguments: int) -> None:
        ways.append("kernel")
        copying._copy_in_kernel(*arguments)

    monkeypatch.setattr(copying, "KERNEL", (noted,))
    written(tmp_path, [bytes(before), Range(0, SIZE)], source)
    assert ways == expected


@pytest.mark.parametrize("error", [errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM])
@pytest.mark.parametrize("before", [3, 4], ids=lambda count: f"{count} bytes before")
@pytest.mark.parametrize("refused", [("copy_file_range",), ("copy_file_range", "sendfile")])
def test_what_the_system_refuses_is_copied_by_the_next_way(
    refused: tuple[str, ...],
    before: int,
    error: int,
    source: Source,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(error, os.strerror(error))

    for name in refused:
        monkeypatch.setattr(os, name, refuse, raising=False)
    assert written(tmp_path, [bytes(before), Range(3, SIZE)], source) == bytes(before) + DATA[3:]


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([], id="nothing"),
        pytest.param([Range(0, SIZE)], id="all"),
        pytest.param([Range(7, 7)], id="an empty range"),
        pytest.param([Range(SIZE - 10, SIZE), Range(0, 10)], id="short ranges in any order"),
        pytest.param([b"a", Range(0, SHORT), b"b", Range(0, SHORT - 1), b"c"], id="long and short ranges"),
        pytest.param([bytes(each) for each in range(1000)], id="many bytes"),
        pytest.param([Range(0, 2 * SHORT)] * 7, id="the same range again"),
    ],
)
def test_pieces_are_written_in_order(pieces: list[Piece], source: Source, tmp_path: Path) -> None:
    expected = b"".join(DATA[each.start : each.end] if isinstance(each, Range) else each for each in pieces)
    assert written(tmp_path, pieces, source) == expected


@pytest.mark.parametrize("way", WAYS)
def test_a_source_that_ends_too_early_is_told(
    way: str, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "KERNEL", WAYS[way])
    os.truncate(source.path, SIZE // 2)
    with pytest.raises(InvalidModel, match="was truncated while it was read"):
        written(tmp_path, [Range(0, SIZE)], source)


def test_a_full_disk_is_told_by_the_system(source: Source) -> None:
    with source, open("/dev/full", "wb", buffering=0) as full, pytest.raises(OSError, match="No space left"):
        copy_range(source, Range(0, SIZE), full.fileno())
