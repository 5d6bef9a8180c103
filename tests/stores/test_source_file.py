"""Random access to a file that must not change while it is read."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from opshift.model.errors import InvalidModel
from opshift.stores.source_file import SourceFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write a file of 100 bytes."""
    file = tmp_path / "file"
    file.write_bytes(bytes(range(100)))
    return file


@pytest.mark.parametrize(("start", "end"), [(0, 100), (10, 20), (99, 100), (50, 50), (0, 0)])
def test_reads_bytes(path: Path, start: int, end: int) -> None:
    with SourceFile(path) as source:
        assert source.size == 100
        for _ in range(2):
            assert source.read(start, end) == bytes(range(start, end))


def test_continues_after_short_reads(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = os.read
    monkeypatch.setattr(os, "read", lambda file, count: read(file, min(count, 7)))
    with SourceFile(path) as source:
        assert source.read(3, 97) == bytes(range(3, 97))


@pytest.mark.parametrize("name", ["absent", "no\0name"], ids=["no such file", "null character in the name"])
def test_refuses_missing_file(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match="cannot be read"):
        SourceFile(tmp_path / name)


def test_refuses_folder(tmp_path: Path) -> None:
    with SourceFile(tmp_path) as source, pytest.raises(InvalidModel, match="is a folder"):
        source.read(0, 1)


def test_reports_truncated_file(path: Path) -> None:
    with SourceFile(path) as source:
        os.truncate(path, 50)
        assert source.read(0, 50) == bytes(range(50))
        with pytest.raises(InvalidModel, match="was truncated while it was read") as caught:
            source.read(0, 60)
    assert str(caught.value.place) == str(path)


@pytest.mark.parametrize(
    "change", [b"x" * 100, b"x" * 99, b"x" * 101], ids=["same size", "shorter", "longer"]
)
def test_reports_changed_file(path: Path, change: bytes) -> None:
    os.utime(path, (1, 1))
    with SourceFile(path) as source:
        source.require_unchanged()
        path.write_bytes(change)
        with pytest.raises(InvalidModel, match="changed while it was read"):
            source.require_unchanged()


def test_reads_replaced_file_to_its_end(path: Path, tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"other")
    with SourceFile(path) as source:
        (tmp_path / "other").replace(path)
        assert source.read(0, 100) == bytes(range(100))
        source.require_unchanged()


def test_reads_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(b"0123456789"))
    writer.start()
    with SourceFile(path) as source:
        assert (source.size, source.read(2, 5), source.read(0, 1)) == (10, b"234", b"0")
        source.require_unchanged()
    writer.join()
