"""Models that are written to stores."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.remote_models import model_bytes, open_uploads, received, s3
from support.unmeasured import unmeasured

import opshift
from opshift.model.errors import CannotWrite, InvalidModel, UsageError
from opshift.model.tensor_pieces import Piece, Range
from opshift.stores.locations import metadata_of
from opshift.stores.s3 import MAX_PARTS, MIN_PART, MultipartUpload
from opshift.stores.source_file import open_source
from opshift.stores.uploads import new_object, remove_unfinished
from zoos.s3_server import Server


@pytest.fixture(scope="module")
def large() -> bytes:
    """A model with weights of 22 MB."""
    return model_bytes(tensors=8, elements=700_000)


@pytest.fixture
def _in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send models in parts that are large enough for one request."""
    monkeypatch.setattr("opshift.stores.uploads.MAX_SINGLE_PUT", 8 << 20)
    monkeypatch.setattr("opshift.stores.s3.COPY_SIZE", MIN_PART)


def converted(data: bytes, folder: Path) -> bytes:
    (folder / "in.onnx").write_bytes(data)
    opshift.convert_file(folder / "in.onnx", folder / "expected.onnx", 17)
    return (folder / "expected.onnx").read_bytes()


def kinds(server: Server) -> list[str]:
    return [each.kind for each in server.requests()]


@pytest.mark.full
def test_copies_large_weights_in_the_store(bucket: str, server: Server, tmp_path: Path) -> None:
    large = model_bytes(tensors=10, elements=2_900_000)
    s3().pipe_file(f"{bucket}/in.onnx", large)
    server.log.write_text("")
    opshift.convert_file(f"{bucket}/in.onnx", f"{bucket}/out.onnx", 17)
    assert kinds(server).count("UploadPartCopy") == 1
    assert kinds(server).count("UploadPart") == 2
    assert received(server) < 0.05 * len(large)
    assert s3().cat_file(f"{bucket}/out.onnx") == converted(large, tmp_path)
    assert open_uploads(bucket) == []


@pytest.mark.usefixtures("_in_parts")
def test_replaces_the_source(bucket: str, large: bytes, tmp_path: Path) -> None:
    s3().pipe_file(f"{bucket}/m.onnx", large)
    opshift.convert_file(f"{bucket}/m.onnx", f"{bucket}/m.onnx", 17)
    assert s3().cat_file(f"{bucket}/m.onnx") == converted(large, tmp_path)


@pytest.mark.usefixtures("_in_parts")
def test_sends_a_local_model_in_parts(bucket: str, server: Server, large: bytes, tmp_path: Path) -> None:
    expected = converted(large, tmp_path)
    opshift.convert_file(tmp_path / "in.onnx", f"{bucket}/out.onnx", 17)
    sizes = [each.received for each in server.requests() if each.kind == "UploadPart"]
    assert all(size >= MIN_PART for size in sizes[:-1])
    assert s3().cat_file(f"{bucket}/out.onnx") == expected


@pytest.mark.some_cases(1)
@pytest.mark.parametrize("out", ["s3", "memory"])
@pytest.mark.parametrize("source", ["s3", "memory", "local"])
def test_converts_small_models_between_stores(
    source: str, out: str, bucket: str, memory: Any, server: Server, tmp_path: Path
) -> None:
    data = model_bytes()
    expected = converted(data, tmp_path)
    memory.pipe_file("/in.onnx", data)
    s3().pipe_file(f"{bucket}/in.onnx", data)
    server.log.write_text("")
    places = {"s3": bucket, "memory": "memory://", "local": str(tmp_path)}
    report = opshift.convert_file(f"{places[source]}/in.onnx", f"{places[out]}/new/out.onnx", 17)
    assert report.sizes == (len(data), len(expected))
    if out == "s3":
        assert kinds(server).count("PUT") == 1
        assert s3().cat_file(f"{bucket}/new/out.onnx") == expected
    else:
        assert memory.cat_file("/new/out.onnx") == expected


@pytest.mark.usefixtures("_in_parts")
def test_sends_the_whole_object_if_nothing_changes(bucket: str, server: Server, large: bytes) -> None:
    s3().pipe_file(f"{bucket}/in.onnx", large)
    server.log.write_text("")
    opshift.convert_file(f"{bucket}/in.onnx", f"{bucket}/out.onnx", 11, ir_version="keep")
    assert "UploadPart" not in kinds(server)
    assert s3().cat_file(f"{bucket}/out.onnx") == large


@pytest.mark.usefixtures("_in_parts")
def test_reads_the_weights_if_the_store_cannot_copy(
    bucket: str, large: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies: list[Range] = []
    request = MultipartUpload._send_request

    def refuse(self: MultipartUpload, method: str, **parameters: Any) -> dict[str, object]:
        if method == "upload_part_copy":
            copies.append(parameters["CopySourceRange"])
            raise OSError("not implemented")
        return request(self, method, **parameters)

    monkeypatch.setattr(MultipartUpload, "_send_request", refuse)
    s3().pipe_file(f"{bucket}/in.onnx", large)
    opshift.convert_file(f"{bucket}/in.onnx", f"{bucket}/out.onnx", 17)
    assert len(copies) == 1
    assert s3().cat_file(f"{bucket}/out.onnx") == converted(large, tmp_path)


@pytest.mark.usefixtures("_in_parts")
def test_sends_large_models_to_other_stores_from_a_file(
    memory: Any, large: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = converted(large, tmp_path)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    opshift.convert_file(tmp_path / "in.onnx", "memory://out.onnx", 17)
    assert memory.cat_file("/out.onnx") == expected
    with (
        pytest.raises(ZeroDivisionError),
        open_source(tmp_path / "in.onnx") as file,
        new_object("memory://lost.onnx", [Range(0, file.size)], file),
    ):
        raise ZeroDivisionError
    assert not memory.exists("/lost.onnx")
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.some_cases(2)
@pytest.mark.parametrize(
    ("moment", "error"),
    [
        ("upload_part", KeyboardInterrupt),
        ("upload_part", RuntimeError),
        ("upload_part_copy", KeyboardInterrupt),
        ("upload_part_copy", SystemExit),
        ("complete_multipart_upload", SystemExit),
        ("complete_multipart_upload", RuntimeError),
        ("block", KeyboardInterrupt),
        ("block", RuntimeError),
    ],
)
@pytest.mark.usefixtures("_in_parts")
def test_aborts_an_upload(
    moment: str, error: type[BaseException], bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3().pipe_file(f"{bucket}/in.onnx", bytes(12 << 20))
    store = type(s3())
    call = store.call_s3

    def fail(self: Any, method: str, **parameters: Any) -> Any:
        if method == moment:
            raise error("fails")
        return call(self, method, **parameters)

    monkeypatch.setattr(store, "call_s3", fail)

    def upload() -> None:
        pieces: list[Piece] = [b"new", Range(0, 12 << 20), b"end"]
        with open_source(f"{bucket}/in.onnx") as file, new_object(f"{bucket}/out.onnx", pieces, file):
            assert open_uploads(bucket) == ["out.onnx"]
            if moment == "block":
                raise error("fails")

    with pytest.raises((error, CannotWrite)):
        upload()
    assert open_uploads(bucket) == []
    assert not s3().exists(f"{bucket}/out.onnx")


@pytest.mark.full
def test_terminated_command_leaves_nothing(bucket: str, server: Server, tmp_path: Path) -> None:
    (tmp_path / "in.onnx").write_bytes(model_bytes(tensors=10, elements=6 << 20))
    command = [sys.executable, "-m", "opshift", "convert", "in.onnx", f"{bucket}/out.onnx", "-t", "17", "-q"]
    with subprocess.Popen(command, cwd=tmp_path, env=unmeasured()) as process:
        deadline = time.monotonic() + 60
        while "UploadPart" not in kinds(server) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
    assert open_uploads(bucket) == []
    assert not s3().exists(f"{bucket}/out.onnx")


@pytest.mark.usefixtures("_in_parts")
def test_refuses_a_source_that_changes(bucket: str, large: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    s3().pipe_file(f"{bucket}/in.onnx", large)
    request = MultipartUpload._send_request

    def change(self: MultipartUpload, method: str, **parameters: Any) -> dict[str, object]:
        if method == "upload_part_copy":
            s3().pipe_file(f"{bucket}/in.onnx", large[:-1] + b"?")
        return request(self, method, **parameters)

    monkeypatch.setattr(MultipartUpload, "_send_request", change)
    with pytest.raises(InvalidModel, match="changed while it was read"):
        opshift.convert_file(f"{bucket}/in.onnx", f"{bucket}/out.onnx", 17)
    assert not s3().exists(f"{bucket}/out.onnx")
    assert open_uploads(bucket) == []


def test_refuses_locations_that_cannot_be_written(bucket: str, tmp_path: Path, server: Server) -> None:
    path = tmp_path / "in.onnx"
    path.write_bytes(model_bytes(1, 10))
    for out, error, reason in (
        ("https://example.org/m.onnx", UsageError, "web servers are read-only"),
        ("s3://no-such-bucket/m.onnx", CannotWrite, "cannot be written"),
        ("nonsense://x/m.onnx", UsageError, "correct the URL"),
    ):
        with pytest.raises(error, match=reason) as raised:
            opshift.convert_file(path, out, 17)
        assert raised.value.remedy
        assert out in str(raised.value)


@pytest.mark.parametrize("size", [100, 9 << 20])
def test_stores_metadata(size: int, bucket: str, memory: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(size))
    entries = {"opshift-key": "12", "opshift-source-digest": "sha256:ab"}
    s3().pipe_file(f"{bucket}/source", bytes(size))
    for source in str(tmp_path / "file"), f"{bucket}/source":
        with open_source(source) as file:
            with new_object(f"{bucket}/m", [Range(0, size)], file, metadata=entries):
                pass
            with new_object("memory://m", [Range(0, size)], file, metadata=entries):
                pass
        assert metadata_of(f"{bucket}/m") == entries
        assert metadata_of("memory://m") is None
    assert metadata_of(f"{bucket}/source") is None


def test_keeps_the_limits_of_parts() -> None:
    class Store:
        def split_path(self, path: str) -> tuple[str, str, None]:
            return "bucket", path, None

        def call_s3(self, *_: object, **parameters: object) -> dict[str, str]:
            return {"UploadId": "1"}

    for size in (1, MIN_PART, 60 << 30, 5 << 40):
        for copies in (True, False):
            upload = MultipartUpload(Store(), "k", size, {}, copies=copies)  # type: ignore[arg-type]
            assert MIN_PART <= upload.least <= upload.most <= 5 << 30
            assert size // upload.least + 1 <= MAX_PARTS


def test_removes_unfinished_uploads_of_one_object(bucket: str) -> None:
    for key in ("m.onnx", "m.onnx", "m.onnx.data"):
        s3().call_s3("create_multipart_upload", Bucket=bucket.removeprefix("s3://"), Key=key)
    remove_unfinished(f"{bucket}/m.onnx")
    assert open_uploads(bucket) == ["m.onnx.data"]
    remove_unfinished("memory://m.onnx")
    with pytest.raises(CannotWrite):
        remove_unfinished("s3://no-such-bucket/m.onnx")


@pytest.mark.usefixtures("_in_parts")
def test_aborts_what_a_killed_process_left_of_the_object(bucket: str, large: bytes) -> None:
    name = bucket.removeprefix("s3://")
    for key in "out.onnx", "out.onnx.data":
        s3().call_s3("create_multipart_upload", Bucket=name, Key=key)
    s3().pipe_file(f"{bucket}/in.onnx", large)
    opshift.convert_file(f"{bucket}/in.onnx", f"{bucket}/out.onnx", 17)
    left = s3().call_s3("list_multipart_uploads", Bucket=name)["Uploads"]
    assert [each["Key"] for each in left] == ["out.onnx.data"]


@pytest.mark.usefixtures("_in_parts")
def test_needs_no_permission_to_list_uploads(
    bucket: str, large: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_s3 = type(s3()).call_s3

    def refuse(store: Any, method: str, **arguments: object) -> object:
        if method == "list_multipart_uploads":
            raise PermissionError("Access Denied")
        return call_s3(store, method, **arguments)

    monkeypatch.setattr(type(s3()), "call_s3", refuse)
    s3().pipe_file(f"{bucket}/in.onnx", large)
    opshift.convert_file(f"{bucket}/in.onnx", f"{bucket}/out.onnx", 17)
    assert s3().exists(f"{bucket}/out.onnx")
