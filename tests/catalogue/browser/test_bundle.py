"""Files of the page that converts: their origin, content and size."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from urllib.error import URLError

import pytest

import opshift
from opshift.catalogue.browser import bundle
from opshift.catalogue.browser.bundle import converter_files, digest
from opshift.catalogue.rendering import Renderer
from opshift.catalogue.site import ALLOWED, converter_page
from opshift.converter.options import ALLOW_VALUES
from opshift.model.errors import UsageError
from opshift.registry.registry import default_registry

RUNTIMES = bundle._runtime_files
PYODIDE = {
    "pyodide.mjs": b"loader",
    "pyodide.asm.mjs": b"module",
    "pyodide.asm.wasm": b"\0asm",
    "python_stdlib.zip": b"library",
    "pyodide-lock.json": b'{"info": {"python": "3.14.0"}, "packages": {"numpy": {}}}',
}


def _archive(files: Mapping[str, bytes]) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return written.getvalue()


@pytest.fixture(scope="module")
def compiled() -> Mapping[str, bytes]:
    """Return the files of opshift, which take seconds to compile."""
    return bundle._opshift_files()


@pytest.fixture(autouse=True)
def pyodide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Serve a small archive in place of Pyodide's."""
    content = _archive(PYODIDE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(bundle, "PYODIDE_SHA512", hashlib.sha512(content).hexdigest())
    monkeypatch.setattr(bundle, "urlopen", lambda *_, **__: io.BytesIO(content))
    monkeypatch.setattr(
        bundle, "_opshift_files", lambda: {"opshift/__init__.py": b"", bundle.PATTERNS: b"{}"}
    )
    monkeypatch.setattr(bundle, "_runtime_files", lambda: {"opshift/opsets/runtimes/a.yaml": b""})
    return content


def unpacked(archive: bytes) -> dict[str, bytes]:
    data = gzip.decompress(archive)
    end = 4 + int.from_bytes(data[:4], "little")
    files = {}
    for path, size in json.loads(data[4:end]):
        files[path] = data[end : end + size]
        end += size
    assert end == len(data)
    return files


@pytest.mark.full
def test_contains_pyodide_and_a_package_that_converts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: Mapping[str, bytes]
) -> None:
    monkeypatch.setattr(bundle, "_opshift_files", lambda: compiled)
    files = converter_files(opshift.__version__)
    assert files["converter/pyodide.mjs"] == b"loader"
    assert gzip.decompress(files["converter/pyodide.asm.wasm.bin"]) == b"\0asm"
    info = {"python": "3.14.0"}
    assert json.loads(files["converter/pyodide-lock.json"]) == {"info": info, "packages": {}}
    bill = json.loads(files["converter/opshift.cdx.json"])
    licences = {each["name"]: str(each["licenses"]) for each in bill["components"]}
    assert {"pyodide", "cpython", "protobuf", "markdown-it-py", "mdurl", "networkx"} == set(licences)
    assert "unknown" not in "".join(licences.values())
    assert len(files["converter/packages.bin"]) < 1_500_000
    packages = unpacked(files["converter/packages.bin"])
    assert "opshift/registry/compiled.json" in packages
    assert not any(path.startswith(("opshift/cli/", "opshift/batch/")) for path in packages)
    _unpack(files["converter/packages.bin"], tmp_path / "site")
    # an interpreter without other packages, as in the browser
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from opshift.catalogue.browser.session import run; "
        "answer = run('convert', [sys.argv[2]], '{\"target\": [\"11\"]}'); print(answer['possible'])"
    )
    arguments = [sys.executable, "-I", "-S", "-c", script, str(tmp_path / "site")]
    completed = subprocess.run(
        [*arguments, str(_model(tmp_path))], capture_output=True, text=True, check=False
    )
    assert (completed.stdout, completed.stderr) == ("True\n", "")


def _model(folder: Path) -> Path:
    from onnx import parser

    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Clip (x) }'
    path = folder / "model.onnx"
    path.write_bytes(parser.parse_model(text).SerializeToString())
    return path


@pytest.mark.full
@pytest.mark.parametrize(
    ("missing", "command", "settings"),
    [
        pytest.param("runtimes", "runs", "{}", id="runtimes"),
        pytest.param("patterns", "convert", '{"target": ["24"], "recognize": true}', id="patterns"),
    ],
)
def test_data_is_read_on_demand_without_further_packages(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    compiled: Mapping[str, bytes],
    missing: str,
    command: str,
    settings: str,
) -> None:
    monkeypatch.setattr(bundle, "_opshift_files", lambda: compiled)
    monkeypatch.setattr(bundle, "_runtime_files", RUNTIMES)
    files = converter_files(opshift.__version__)
    site = tmp_path / "site"
    _unpack(files["converter/packages.bin"], site)
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from opshift.catalogue.browser.session import run; "
        "answer = run(sys.argv[3], [sys.argv[2]], sys.argv[4]); "
        "print(answer.get('missing'), answer.get('possible'))"
    )
    arguments = [sys.executable, "-I", "-S", "-c", script, str(site), str(_model(tmp_path))]
    for expected in (f"{missing} None\n", "None True\n"):
        completed = subprocess.run(
            [*arguments, command, settings], capture_output=True, text=True, check=False
        )
        assert (completed.stdout, completed.stderr) == (expected, "")
        _unpack(files[f"converter/{missing}.bin"], site)


def _unpack(archive: bytes, folder: Path) -> None:
    for path, content in unpacked(archive).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


@pytest.mark.full
def test_is_reproducible() -> None:
    files = converter_files(opshift.__version__)
    assert digest(files) == digest(converter_files(opshift.__version__))
    assert digest(files) != digest({**files, "converter/worker.js": b""})


@pytest.mark.full
def test_downloads_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = converter_files(opshift.__version__)
    monkeypatch.setattr(bundle, "urlopen", None)
    assert converter_files(opshift.__version__) == first


def test_refuses_other_content(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "urlopen", lambda *_, **__: io.BytesIO(b"other"))
    with pytest.raises(UsageError, match="expected content") as caught:
        converter_files(opshift.__version__)
    assert "without the page that converts" in caught.value.remedy


def test_replaces_a_damaged_copy(tmp_path: Path, pyodide: bytes) -> None:
    path = tmp_path / "cache" / "opshift" / bundle.PYODIDE_URL.rpartition("/")[2]
    path.parent.mkdir(parents=True)
    path.write_bytes(pyodide[:-1])
    converter_files(opshift.__version__)
    assert path.read_bytes() == pyodide


def test_names_the_remedy_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise URLError("no network")

    monkeypatch.setattr(bundle, "urlopen", fail)
    with pytest.raises(UsageError, match="no network") as caught:
        converter_files(opshift.__version__)
    assert caught.value.remedy


def test_page_offers_all_targets_and_loads_its_version_of_the_worker() -> None:
    page = dict(converter_page(Renderer(converter=True), "0123"))["convert.html"]
    assert 'data-worker="converter/worker.js?0123"' in page
    assert "worker-src 'self'" in page
    for product, releases in default_registry().releases.products.items():
        assert all(f'value="{product}-{each}"' in page for each in releases)
    assert set(ALLOWED) == set(ALLOW_VALUES) - {"clamp"}  # the page converts no element types
    assert 'href="convert.html"' in page
