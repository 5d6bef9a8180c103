"""File objects to read models from and to write them to."""

from __future__ import annotations

import gzip
import io
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto
from support.large_models import model, raw

from opshift.converter.convert import convert_version, plan_version
from opshift.converter.streaming.convert_file import convert_file
from opshift.converter.streaming.weights import open_without_weights
from opshift.model.errors import CannotWrite, InvalidModel, OpshiftError, UsageError
from opshift.model.files import read_model, write_model
from opshift.model.messages import ModelProto

LARGE = model(initializers=[raw("w", bytes(3 << 20))]).SerializeToString()
"""Serialized model that is large enough for streaming."""


class MinimalFile:
    """File object that returns small pieces, and has only the method that is needed."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def read(self, size: int = -1) -> bytes:
        return self._data.read(min(size, 100_000))


def pipe_with(data: bytes) -> Any:
    """Return the end of a socket that delivers the bytes in small pieces, and cannot seek."""
    ours, theirs = socket.socketpair()

    def send() -> None:
        with closing(theirs):
            theirs.sendall(data)

    threading.Thread(target=send, daemon=True).start()
    with ours:  # the file keeps the connection open
        return ours.makefile("rb", buffering=0)


def compressed(path: Path) -> gzip.GzipFile:
    path.write_bytes(gzip.compress(LARGE, 1))
    return gzip.open(path)


def positioned(path: Path) -> io.BufferedReader:
    path.write_bytes(b"header" + LARGE)
    file = path.open("rb")
    file.read(6)
    return file


def temporary() -> Any:
    file = tempfile.TemporaryFile()  # noqa: SIM115
    file.write(LARGE)
    file.seek(0)
    return file


def plain(path: Path, **options: Any) -> Any:
    path.write_bytes(LARGE)
    return path.open("rb", **options)


SOURCES: dict[str, Callable[[Path], Any]] = {
    "file": plain,
    "unbuffered file": lambda path: plain(path, buffering=0),
    "file after a header": positioned,
    "temporary file": lambda path: temporary(),
    "memory": lambda path: io.BytesIO(LARGE),
    "compressed file": compressed,
    "pipe": lambda path: pipe_with(LARGE),
    "minimal object": lambda path: MinimalFile(LARGE),
}


@pytest.fixture
def opened() -> Iterator[Callable[[Any], Any]]:
    """Return a function that keeps a file until the end of the test, and returns it."""
    with ExitStack() as files:

        def keep(file: Any) -> Any:
            files.callback(getattr(file, "close", bool))
            return file

        yield keep


@pytest.mark.parametrize("kind", SOURCES)
def test_reads_and_converts_file_objects(kind: str, tmp_path: Path, opened: Callable[[Any], Any]) -> None:
    expected = convert_version(ModelProto.FromString(LARGE), 17)

    def source() -> Any:
        return opened(SOURCES[kind](tmp_path / "source"))

    assert read_model(source()).SerializeToString() == LARGE
    assert convert_version(source(), 17) == expected
    assert not plan_version(source(), 17).refusals
    with open_without_weights(source()) as skeleton:
        assert len(skeleton.SerializeToString()) < 1000
    for out in tmp_path / "out.onnx", io.BytesIO():
        convert_file(source(), out, 17)
        assert read_model(out if isinstance(out, Path) else io.BytesIO(out.getvalue())) == expected


def test_regular_file_is_read_without_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.TemporaryFile", None)
    with plain(tmp_path / "in.onnx") as file:
        convert_file(file, tmp_path / "out.onnx", 17)
        assert file.read() == LARGE  # the position of the caller's file did not move


def test_appends_to_the_position_of_a_file(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        out.write(b"header")
        convert_file(io.BytesIO(LARGE), out, 17)
        write_model(ModelProto.FromString(LARGE), out)
        out.write(b"end")
    expected = convert_version(LARGE, 17)
    assert (tmp_path / "out").read_bytes() == b"header" + expected + LARGE + b"end"


def test_writes_all_bytes_to_an_unbuffered_file() -> None:
    class SlowFile(io.RawIOBase):
        """Unbuffered file that writes at most 1,000 bytes at once."""

        written = bytearray()

        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            self.written += data[:1000]
            return min(len(data), 1000)

    out = SlowFile()
    write_model(ModelProto.FromString(LARGE), out)
    assert out.written == LARGE
    assert not out.closed


BROKEN: dict[str, tuple[Callable[[Path], Any], str]] = {
    "text file": (lambda path: path.open(encoding="latin-1"), "expected a file of bytes, got str"),
    "text": (lambda path: io.StringIO("model"), "expected a file of bytes, got str"),
    "text that cannot be decoded": (lambda path: path.open(encoding="utf-8"), "cannot be read"),
    "closed file": (lambda path: closed(path), "cannot be read"),
    "write-only file": (lambda path: path.open("ab"), "cannot be read"),
    "empty file": (lambda path: io.BytesIO(), "is empty"),
    "file without a model": (lambda path: io.BytesIO(b"\xff" * 100), "is not an ONNX model"),
}


def closed(path: Path) -> Any:
    with path.open("rb") as file:
        return file


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("call", ["read_model", "convert_version", "convert_file"])
def test_refuses_files_that_cannot_be_read(
    kind: str, call: str, tmp_path: Path, opened: Callable[[Any], Any]
) -> None:
    path, out = tmp_path / "in.onnx", io.BytesIO()
    path.write_bytes(b"\xff" + LARGE)
    open_file, reason = BROKEN[kind]
    calls: dict[str, Callable[[Any], object]] = {
        "read_model": read_model,
        "convert_version": lambda file: convert_version(file, 17),
        "convert_file": lambda file: convert_file(file, out, 17),
    }
    with pytest.raises(InvalidModel, match=reason):
        calls[call](opened(open_file(path)))
    assert out.getvalue() == b""


def test_refuses_other_types() -> None:
    with pytest.raises(InvalidModel, match="expected a ModelProto, bytes, a path or a binary file, got int"):
        convert_version(3, 17)  # type: ignore[call-overload]
    for out in io.StringIO(), 3:
        with pytest.raises(UsageError, match="open for writing in binary mode") as caught:
            convert_file(io.BytesIO(LARGE), out, 17)  # type: ignore[arg-type]
        assert "wb" in caught.value.remedy


def test_writes_nothing_after_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    out = io.BytesIO()
    with pytest.raises(OpshiftError):
        convert_file(io.BytesIO(LARGE), out, 99)
    assert out.getvalue() == b""
    assert not list(tmp_path.iterdir())


def test_reports_errors_of_the_file() -> None:
    with open("/dev/full", "wb") as full, pytest.raises(CannotWrite, match="/dev/full: cannot be written"):
        write_model(ModelProto.FromString(LARGE), full)
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(CannotWrite, match="Broken pipe"), open(writing, "wb", buffering=0) as pipe:
        write_model(ModelProto.FromString(LARGE), pipe)


def test_weights_in_other_files_need_a_path(tmp_path: Path) -> None:
    tensor = TensorProto(name="w", data_type=1, dims=[1], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="w.bin")
    data, out = model(initializers=[tensor]).SerializeToString(), tmp_path / "out.onnx"
    with pytest.raises(InvalidModel, match="has weights in separate files") as caught:
        convert_file(io.BytesIO(data), out, 17)
    assert "keep" in caught.value.remedy
    assert not out.exists()
    convert_file(io.BytesIO(data), out, 17, external="keep")
    written = io.BytesIO()
    convert_file(io.BytesIO(data), written, 17)
    assert written.getvalue() == out.read_bytes() == convert_version(data, 17)
