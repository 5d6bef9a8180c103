"""Models that are read from stores."""

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fsspec
import pytest
from support.remote_models import model_bytes, received, s3
from typer.testing import CliRunner

import opshift
from opshift.cli.main import app
from opshift.model.errors import InvalidModel, UsageError
from opshift.model.remote import open_url
from opshift.model.stream_limits import HOSTS_VARIABLE
from opshift.stores.find_models import find_models
from opshift.stores.source_file import open_source
from zoos.s3_server import Server


@pytest.fixture(scope="module")
def large() -> bytes:
    return model_bytes()


def test_plans_and_inspects_a_model_without_its_weights(bucket: str, server: Server, large: bytes) -> None:
    url = f"{bucket}/large.onnx"
    fsspec.filesystem("s3").pipe_file(url, large)
    for command in ("plan", url, "-t", "17"), ("inspect", url), ("doctor", url), ("textconv", url):
        server.log.write_text("")
        result = CliRunner().invoke(app, [*command, "--format", "json"])
        assert result.exit_code in (0, 1), result.output
        assert json.loads(result.stdout)["input"] == url
        if command[0] in ("plan", "inspect"):
            assert received(server) < len(large) / 50


def test_converts_from_a_store_as_from_a_file(
    bucket: str, server: Server, large: bytes, tmp_path: Path
) -> None:
    local = tmp_path / "large.onnx"
    local.write_bytes(large)
    fsspec.filesystem("s3").pipe_file(f"{bucket}/large.onnx", large)
    server.log.write_text("")
    expected = opshift.convert_file(local, tmp_path / "expected.onnx", 17)
    report = opshift.convert_file(f"{bucket}/large.onnx", tmp_path / "out.onnx", 17)
    assert report == expected
    assert (tmp_path / "out.onnx").read_bytes() == (tmp_path / "expected.onnx").read_bytes()
    assert received(server) < 1.05 * len(large)


@pytest.mark.parametrize("call", [opshift.convert_version, opshift.plan_version])
def test_reads_urls_in_python(memory: Any, call: Any) -> None:
    memory.pipe_file("/m.onnx", model_bytes(1, 10))
    assert call("memory://m.onnx", 17)
    assert opshift.check("memory://m.onnx") == opshift.check(model_bytes(1, 10))


def test_reads_a_small_model_with_one_request(bucket: str, server: Server) -> None:
    fsspec.filesystem("s3").pipe_file(f"{bucket}/m.onnx", model_bytes(1, 10))
    server.log.write_text("")
    opshift.plan_version(f"{bucket}/m.onnx", 17)
    assert [each.kind for each in server.requests()] == ["GET"]


def test_refuses_an_object_that_changes(bucket: str, large: bytes, tmp_path: Path) -> None:
    store = fsspec.filesystem("s3")
    url = f"{bucket}/m.onnx"
    store.pipe_file(url, large)
    with open_source(url) as file:
        file.read(0, 100)
        store.pipe_file(url, large[:-1] + b"x")
        with pytest.raises(InvalidModel, match="changed while it was read"):
            file.read(2_000_000, 8_000_000)
    with open_source(url) as file:
        file.read(0, 100)
        store.rm(url)
        with pytest.raises(InvalidModel, match="changed while it was read"):
            file.read(2_000_000, 8_000_000)


def test_reports_objects_that_cannot_be_read(bucket: str, memory: Any) -> None:
    memory.pipe_file("/zoo/m.onnx", b"")
    for url, reason in {
        f"{bucket}/missing.onnx": "object does not exist",
        "s3://no-such-bucket/m.onnx": "object does not exist",
        "memory://zoo": "does not exist|is a folder",
        "memory://zoo/m.onnx": "is empty",
        "http://127.0.0.1:9/m.onnx": "cannot be read: Cannot connect to host 127.0.0.1:9 .*call failed",
    }.items():
        with pytest.raises(InvalidModel, match=reason) as raised:
            opshift.plan_version(url, 17)
        assert raised.value.remedy
        assert url in str(raised.value)


def test_refuses_to_read_beyond_the_end(bucket: str, memory: Any) -> None:
    for url in f"{bucket}/m", "memory://m":
        fsspec.open(url).fs.pipe_file(url, bytes(1000))
        with open_source(url) as file:
            assert file.read(990, 1000) == bytes(10)
            assert file.read(1000, 1000) == b""
            with pytest.raises(InvalidModel, match="truncated"):
                file.read(990, 1001)


def test_reads_versions_of_objects(bucket: str, tmp_path: Path) -> None:
    name = bucket.removeprefix("s3://")
    status = {"Status": "Enabled"}
    s3().call_s3("put_bucket_versioning", Bucket=name, VersioningConfiguration=status)
    url, versions = f"{bucket}/m.onnx", []
    for tensors in (1, 2):
        data = model_bytes(tensors, 200_000)
        versions.append(s3().call_s3("put_object", Bucket=name, Key="m.onnx", Body=data)["VersionId"])
    assert len(opshift.read_model(url).graph.initializer) == 4
    old = f"{url}?versionId={versions[0]}"
    assert len(opshift.read_model(old).graph.initializer) == 2
    opshift.convert_file(old, f"{bucket}/out.onnx", 17)
    assert len(opshift.read_model(f"{bucket}/out.onnx").graph.initializer) == 3
    assert [each.status for each in opshift.convert_many([old], 17, tmp_path)] == ["converted"]
    assert len(opshift.read_model(tmp_path / "m.onnx").graph.initializer) == 3
    missing = f"{url}?versionId={versions[0][::-1]}"
    assert [each.relative for each in find_models([old, missing])] == ["m.onnx", "m.onnx"]
    with pytest.raises(UsageError, match="have the same output file"):
        opshift.convert_many([old, url], 17, tmp_path)
    with pytest.raises(UsageError, match="is a version of an object"):
        opshift.convert_file(url, f"{bucket}/out.onnx?versionId={versions[0]}", 17)


def test_refuses_urls_of_local_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is the URL of a local file") as raised:
        opshift.plan_version(f"file://{tmp_path}/m.onnx", 17)
    assert raised.value.remedy == f"write its path: {tmp_path}/m.onnx"


def test_ignores_the_case_of_schemes(memory: Any) -> None:
    memory.pipe_file("/m.onnx", model_bytes(1, 10))
    assert opshift.plan_version("MEMORY://m.onnx", 17).refusals == ()


def test_names_the_packages_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="correct the URL"):
        open_url("nonsense://x/y.onnx")
    with pytest.raises(UsageError, match="pip install gcsfs"):
        open_url("gs://x/y.onnx")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(UsageError, match=r"pip install 'opshift\[stores\]'"):
        open_url("s3://x/y.onnx")


def test_does_not_follow_a_chain_to_another_store(memory: Any, tmp_path: Path) -> None:
    (tmp_path / "secret.onnx").write_bytes(model_bytes(1, 10))
    with pytest.raises(InvalidModel, match="does not exist"):
        opshift.plan_version(f"memory://x::file://{tmp_path}/secret.onnx", 17)


class RangeHandler(BaseHTTPRequestHandler):
    """Server of one file; `ranges` decides whether it sends ranges."""

    content = b""
    ranges = True
    length = True
    sent = 0

    def do_HEAD(self) -> None:
        self._answer(b"")

    def do_GET(self) -> None:
        self._answer(self.content)

    def _answer(self, body: bytes) -> None:
        status, size = 200, len(self.content)
        if self.path.partition("?")[0] != "/m.onnx":
            self.send_error(404)
            return
        head: dict[str, str] = {}
        if self.ranges and "Range" in self.headers:
            first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
            status, head = 206, {"Content-Range": f"bytes {first}-{last}/{size}"}
            body = body[int(first) : int(last) + 1]
            size = int(last) + 1 - int(first)
        self.send_response(status)
        for name, value in head.items():
            self.send_header(name, value)
        if self.length:
            self.send_header("Content-Length", str(size))
        self.end_headers()
        type(self).sent += len(body)
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(params=[(True, True), (False, True), (False, False)], ids=["ranges", "length", "plain"])
def website(request: pytest.FixtureRequest, large: bytes) -> Iterator[tuple[str, type[RangeHandler]]]:
    ranges, length = request.param
    handler = type("Handler", (RangeHandler,), {"content": large, "ranges": ranges, "length": length})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as started:
        thread = threading.Thread(target=started.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{started.server_port}/m.onnx", handler
        started.shutdown()
        thread.join()


@pytest.mark.some_cases(1)
def test_reads_from_any_web_server(
    website: tuple[str, type[RangeHandler]], large: bytes, tmp_path: Path
) -> None:
    url, handler = website
    (tmp_path / "large.onnx").write_bytes(large)
    expected = opshift.convert_file(tmp_path / "large.onnx", tmp_path / "expected.onnx", 17)
    result = CliRunner().invoke(app, ["plan", f"{url}?signature=a%2Fb", "-t", "17", "--format", "json"])
    assert json.loads(result.stdout).get("possible"), result.stdout
    if handler.ranges:
        assert handler.sent < len(large) / 20
    assert opshift.convert_file(url, tmp_path / "out.onnx", 17) == expected
    assert (tmp_path / "out.onnx").read_bytes() == (tmp_path / "expected.onnx").read_bytes()
    assert opshift.convert_version(url, 17).opset_import[0].version == 17


@pytest.mark.parametrize("hosts", ["", "other,127.0.0.1", "*"])
def test_follows_redirects_to_allowed_hosts(
    website: tuple[str, type[RangeHandler]], hosts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOSTS_VARIABLE, hosts)

    class Redirect(RangeHandler):
        def _answer(self, body: bytes) -> None:
            self.send_response(302)
            self.send_header("Location", website[0])
            self.send_header("Content-Length", "0")
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Redirect) as started:
        threading.Thread(target=started.serve_forever).start()
        url = f"http://127.0.0.1:{started.server_port}/m.onnx"
        if hosts:
            opshift.plan_version(url, 17)
        else:
            with pytest.raises(InvalidModel, match=r"redirects to another server: 127\.0\.0\.1:"):
                opshift.plan_version(url, 17)
        started.shutdown()
    assert (website[1].sent > 0) == bool(hosts)


def test_reports_missing_pages_and_truncated_answers(website: tuple[str, type[RangeHandler]]) -> None:
    url, handler = website
    with pytest.raises(InvalidModel, match="object does not exist"):
        opshift.plan_version(url.replace("m.onnx", "missing.onnx"), 17)
    handler.content = handler.content[:1_000_000]
    with pytest.raises(InvalidModel, match="byte"):
        opshift.plan_version(url, 17)
