"""`opshift site`: the folder, the summary, and refusals."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from opshift.catalogue import site as catalogue_site
from opshift.catalogue.browser import bundle
from opshift.registry.runtimes.files import runtime_files

Run = Callable[..., Result]
ACME = Path(__file__).parents[3] / "examples" / "acme" / "acme_operators"


@pytest.fixture
def tree(folder: Path) -> Path:
    """Return a complete tree with one private domain, whose site is small."""
    shutil.copytree(ACME / "com.acme", folder / "tree" / "com.acme")
    (folder / "tree" / "releases.yaml").write_text("onnx: {}\n", "utf-8")
    return folder / "tree"


@pytest.fixture
def one_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build sites with the pages of one release of a runtime: those of all take seconds."""
    name, path = next(iter(runtime_files().items()))
    monkeypatch.setattr(catalogue_site, "runtime_files", lambda: {name: path})


@pytest.mark.full
def test_writes_a_site(run: Run, tree: Path) -> None:
    result = run("site", "out", "--opsets", "tree")
    assert (result.exit_code, result.stderr) == (0, "")
    summary, hint, missing = result.stdout.splitlines()
    assert summary.startswith("out: ")
    assert hint == f"open {Path('out', 'index.html')} in a browser"
    assert "--converter" in missing
    assert Path("out/operators/com.acme/index.html").exists()
    assert not Path("out/sitemap.xml").exists()


@pytest.mark.usefixtures("one_runtime")
def test_json_counts_the_files(run: Run, tree: Path) -> None:
    arguments = ("site", "out", "--opsets", "tree", "--url", "https://example.com", "--format", "json")
    data = json.loads(run(*arguments).stdout)
    files = [each for each in Path("out").rglob("*") if each.is_file()]
    assert data == {
        "folder": "out",
        "pages": sum(each.suffix == ".html" for each in files),
        "files": len(files),
        "bytes": sum(each.stat().st_size for each in files),
    }
    assert "https://example.com/operators/com.acme/index.html" in Path("out/sitemap.xml").read_text("utf-8")


@pytest.mark.full
@pytest.mark.usefixtures("one_runtime")
def test_adds_the_page_that_converts(run: Run, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "converter_files", lambda _: {"converter/packages.bin": b"\0"})
    result = run("site", "out", "--opsets", "tree", "--converter")
    assert result.exit_code == 0, result.stderr
    assert "http.server" in result.stdout
    assert Path("out/converter/packages.bin").read_bytes() == b"\0"
    assert bundle.digest({"converter/packages.bin": b"\0"}) in Path("out/convert.html").read_text("utf-8")


@pytest.mark.full
@pytest.mark.usefixtures("one_runtime")
def test_quiet_prints_nothing(run: Run, tree: Path) -> None:
    assert run("site", "out", "--opsets", "tree", "--quiet").output == ""


@pytest.mark.full
@pytest.mark.usefixtures("one_runtime")
def test_keeps_a_folder_with_files_unless_forced(run: Run, tree: Path) -> None:
    Path("out").mkdir()
    for name in ("CNAME", "index.html"):
        Path("out", name).write_text("mine", "utf-8")
    result = run("site", "out", "--opsets", "tree")
    assert result.exit_code == 2
    assert "out: is not empty" in result.stderr
    assert "--force" in result.stderr
    assert sorted(each.name for each in Path("out").iterdir()) == ["CNAME", "index.html"]
    assert run("site", "out", "--opsets", "tree", "--force").exit_code == 0
    assert Path("out/CNAME").read_text("utf-8") == "mine"
    assert Path("out/index.html").read_text("utf-8").startswith("<!doctype html>")


def test_refuses_a_file_as_folder(run: Run, tree: Path) -> None:
    Path("out").write_text("mine", "utf-8")
    result = run("site", "out", "--force")
    assert (result.exit_code, Path("out").read_text("utf-8")) == (2, "mine")
    assert "name a folder to write" in result.stderr


def test_names_the_missing_package(run: Run, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = run("site", "out", "--opsets", "tree", "--format", "json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["remedy"] == "pip install 'opshift[site]'"
    assert not Path("out").exists()
