"""Ranges of a file are copied by whatever the system has for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from opshift.converter.errors import InvalidModel
from opshift.converter.streaming import copying
from opshift.converter.streaming.copying import SHORT, copy_range, write_pieces
from opshift.converter.streaming.pieces import Piece, Range
from opshift.converter.streaming.source import Source

SIZE = 5 * SHORT
DATA = os.urandom(SIZE)


def failing(*_: object) -> int:
    raise OSError(95, "Operation not supported")


def giving_up(copy: Callable[..., int]) -> Callable[..., int]:
    """A way to copy that works once, and then not."""
    calls = iter([True])

    def once(source: int, target: int, start: int, count: int) -> int:
        return copy(source, target, start, min(count, 1000)) if next(calls, False) else failing()

    return once


WAYS = {
    "by the file system": (copying._copy_file_range,),
    "by the kernel": (failing, copying._sendfile),
    "through memory": (failing, failing),
    "through memory where there is nothing else": (),
    "by the file system until it cannot": (giving_up(copying._copy_file_range), copying._sendfile),
    "by the kernel until it cannot": (failing, giving_up(copying._sendfile)),
    "by something that says it is at the end": (lambda *_: 0, lambda *_: 0),
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


@pytest.mark.parametrize("way", WAYS)
def test_a_range_is_copied(way: str, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "KERNEL", WAYS[way])
    pieces: list[Piece] = [b"before", Range(3, SIZE - 5), b"after"]
    assert written(tmp_path, pieces, source) == b"before" + DATA[3:-5] + b"after"


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
    with pytest.raises(InvalidModel, match="got shorter while it was read"):
        written(tmp_path, [Range(0, SIZE)], source)


def test_a_full_disk_is_told_by_the_system(source: Source) -> None:
    with source, open("/dev/full", "wb", buffering=0) as full, pytest.raises(OSError, match="No space left"):
        copy_range(source, Range(0, SIZE), full.fileno())
