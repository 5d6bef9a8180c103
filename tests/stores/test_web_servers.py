"""Models of web servers: names of data files, and servers that send no digest and no time."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote

import numpy as np
import onnx
import onnxruntime
import pytest
from support.remote_models import model_bytes
from support.small_models import save
from typer.testing import CliRunner

import opshift
from opshift.cli.main import app

X = np.array([-9, -2, 0, 1, 2, 3], np.float32)


class Handler(BaseHTTPRequestHandler):
    """Server of ranges of the files in `folder`; the headers describe a file by its size only."""

    folder = Path()
    successor = b""
    """Content that replaces `m.onnx` after the first response with a large part of it."""
    sent: ClassVar[list[tuple[str, int]]] = []
    """Paths of all requests for content, and the number of bytes in the response."""

    def do_HEAD(self) -> None:
        self._answer(sends_body=False)

    def do_GET(self) -> None:
        self._answer(sends_body=True)

    def _answer(self, *, sends_body: bool) -> None:
        file = self.folder / unquote(self.path.partition("?")[0]).lstrip("/")
        if not file.is_file():
            self.send_error(404)
            return
        body = file.read_bytes()
        size = len(body)
        if "Range" in self.headers:
            first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
            body = body[int(first) : int(last) + 1]
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{int(first) + len(body) - 1}/{size}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if sends_body:
            self.sent.append((self.path, len(body)))
            if self.successor and len(body) > 1 << 20:
                file.write_bytes(self.successor)
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def website(tmp_path: Path) -> Iterator[tuple[str, type[Handler]]]:
    handler = type("Handler", (Handler,), {"folder": tmp_path / "site", "sent": []})
    (tmp_path / "site").mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as started:
        thread = threading.Thread(target=started.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{started.server_port}", handler
        started.shutdown()
        thread.join()


def run(model: Path) -> list[float]:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": X})[0].tolist()  # type: ignore[no-any-return]


DATA = {
    "no query": ("m.onnx", "w.bin"),
    "slash in the query": ("m.onnx?Signature=ab/cd", "w.bin"),
    "slash in the fragment": ("m.onnx#ab/cd", "w.bin"),
    "slash at the end of the query": ("m.onnx?Signature=ab/", "deep/w.bin"),
    "number sign": ("m.onnx", "w#2.bin"),
    "question mark": ("m.onnx?v=1", "w?2.bin"),
    "percent sign": ("m.onnx", "a%20b.bin"),
    "space": ("m.onnx", "a b.bin"),
    "umlaut": ("m.onnx", "ä.bin"),
}


@pytest.mark.every_case
@pytest.mark.parametrize(("name", "data"), DATA.values(), ids=DATA)
def test_copies_data_files(name: str, data: str, website: tuple[str, type[Handler]], tmp_path: Path) -> None:
    (tmp_path / "site/zoo/deep").mkdir(parents=True)
    source = save(tmp_path / "site/zoo/m.onnx", fill=3, data=data)
    (tmp_path / "out").mkdir()
    opshift.convert_file(f"{website[0]}/zoo/{name}", tmp_path / "out/m.onnx", 17)
    assert run(tmp_path / "out/m.onnx") == run(source) == [3, 3, 3, 4, 5, 6]


def test_batch_converts_changed_files_of_equal_size(
    website: tuple[str, type[Handler]], tmp_path: Path
) -> None:
    source, out = tmp_path / "site/m.onnx", tmp_path / "out"

    def statuses() -> list[str]:
        return [each.status for each in opshift.convert_many([f"{website[0]}/m.onnx?v=1"], 17, out)]

    for op_type, fill, result in (("Relu", 1, 1), ("Tanh", 1, 0), ("Tanh", 5, 4)):
        save(source, op_type, fill, data="w.bin")
        assert statuses() == ["converted"]
        assert run(out / "m.onnx") == run(source)
        assert int(run(out / "m.onnx")[0]) == result
        assert statuses() == ["skipped"]


@pytest.mark.parametrize("data", ["w.bin", "a b.bin", "w#2.bin"])
def test_batch_replaces_data_files_with_unchanged_sources(
    data: str, website: tuple[str, type[Handler]], tmp_path: Path
) -> None:
    (site, _), out = website, tmp_path / "out"

    def results(*names: str) -> list[float]:
        urls = [f"{site}/{each}.onnx" for each in names]
        assert {each.status for each in opshift.convert_many(urls, 17, out)} == {"converted"}
        return [run(out / f"{each}.onnx")[-1] for each in names]

    sources = [save(tmp_path / f"site/{each}.onnx", data=data) for each in ("m1", "m2")]
    assert results("m1", "m2") == [4, 4]
    save(sources[0], fill=5, data=data)
    assert results("m1") == [8]
    assert results("m2") == [8]


def test_receives_data_files_without_identity_once(
    website: tuple[str, type[Handler]], memory: Any, tmp_path: Path
) -> None:
    source = save(tmp_path / "site/m.onnx", fill=3, data="w.bin")
    opshift.convert_file(f"{website[0]}/m.onnx", "memory://o/m.onnx", 17)
    assert memory.cat_file("/o/w.bin") == (tmp_path / "site/w.bin").read_bytes()
    assert sum(size for path, size in website[1].sent if path == "/w.bin") == 24
    opshift.convert_file("memory://o/m.onnx", tmp_path / "m.onnx", 18)
    assert run(tmp_path / "m.onnx") == run(source)


def test_ledger_of_a_command_notices_changed_files_of_equal_size(
    website: tuple[str, type[Handler]], tmp_path: Path
) -> None:
    local = save(tmp_path / "local.onnx")  # results of one model alone are not reused

    def recorded() -> list[str]:
        names, ledger = (f"{website[0]}/m.onnx?token=a/b", str(local)), tmp_path / "ledger.jsonl"
        result = CliRunner().invoke(app, ["plan", *names, "-t", "17", "--ledger", str(ledger)])
        assert result.exit_code == 0, result.output
        return ledger.read_text().splitlines()

    save(tmp_path / "site/m.onnx", data="w.bin")
    states = json.loads(recorded()[0])["states"]
    assert [name.rpartition("/")[2] for name in states] == ["m.onnx?token=***", "w.bin"]
    assert len(recorded()) == 2
    (tmp_path / "site/w.bin").write_bytes(bytes(24))
    assert len(recorded()) == 3
    save(tmp_path / "site/m.onnx", "Tanh", data="w.bin")
    assert len(recorded()) == 4


def test_conversion_does_not_mix_two_contents(website: tuple[str, type[Handler]], tmp_path: Path) -> None:
    content = model_bytes(2)
    other = onnx.load_model_from_string(content)
    for weight in other.graph.initializer:
        weight.raw_data = bytes(len(weight.raw_data))
    website[1].successor = other.SerializeToString()
    assert len(website[1].successor) == len(content)
    (tmp_path / "site/m.onnx").write_bytes(content)
    opshift.convert_file(f"{website[0]}/m.onnx", tmp_path / "out.onnx", 17)
    weights = onnx.load(tmp_path / "out.onnx").graph.initializer
    assert len({any(each.raw_data) for each in weights if each.name[0] in "wb"}) == 1
