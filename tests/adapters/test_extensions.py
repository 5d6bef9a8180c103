"""Adapters from elsewhere: found by entry point and in folders, run once, and refused whole."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from opshift.adapters import extensions
from opshift.adapters.extensions import UnusableAdapters, load_adapters, load_installed
from opshift.adapters.table import DuplicateAdapter, Pair, registered, registering

BLUR = Pair("com.acme", "Blur", 1, 2)
CODE = """
from opshift.adapters.table import adapter

@adapter("Blur", 1, 2, domain="com.acme")
def sizes_are_said_twice(node, out):
    '''The size is said for height and width.'''
    out.become(node)
"""


@pytest.fixture(autouse=True)
def _table() -> Iterator[None]:
    """What a test registers is gone after it."""
    with registering():
        yield


def _file(folder: Path, name: str = "blur.py", code: str = CODE) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(code, encoding="utf-8")
    return path


def test_a_folder(tmp_path: Path) -> None:
    _file(tmp_path)
    _file(tmp_path, "glow.py", CODE.replace("Blur", "Glow"))
    _file(tmp_path, "_shared.py", "raise RuntimeError('not run')")
    assert len(load_adapters(tmp_path)) == 2
    assert registered()[BLUR].__name__ == "sizes_are_said_twice"
    assert BLUR._replace(op_type="Glow") in registered()


def test_a_file(tmp_path: Path) -> None:
    (module,) = load_adapters(str(_file(tmp_path)))
    assert registered()[BLUR].__module__ == module


def test_a_file_is_run_once(tmp_path: Path) -> None:
    path = _file(tmp_path)
    assert load_adapters(path) == load_adapters(tmp_path)


def test_two_folders_do_not_mix(tmp_path: Path) -> None:
    _file(tmp_path / "a")
    _file(tmp_path / "b", code=CODE.replace("Blur", "Glow"))
    assert load_adapters(tmp_path / "a") != load_adapters(tmp_path / "b")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        pytest.param("raise RuntimeError('broken')", "RuntimeError: broken", id="it raises"),
        pytest.param("def (", "SyntaxError", id="it is no Python"),
        pytest.param("import nobody_has_this", "ModuleNotFoundError", id="it lacks a module"),
    ],
)
def test_code_that_cannot_be_run(tmp_path: Path, code: str, message: str) -> None:
    path = _file(tmp_path, code=code)
    with pytest.raises(UnusableAdapters, match=message) as caught:
        load_adapters(path)
    assert caught.value.place.file == str(path)
    assert not [name for name in sys.modules if getattr(sys.modules[name], "__file__", None) == str(path)]


def test_no_code_at_all(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.py"):
        with pytest.raises(UnusableAdapters, match="found no Python file with adapters"):
            load_adapters(path)


def test_a_step_of_onnx_is_claimed_already(tmp_path: Path) -> None:
    code = CODE.replace('"Blur", 1, 2, domain="com.acme"', '"Clip", 6, 11')
    with pytest.raises(DuplicateAdapter, match=r"ai\.onnx\.Clip 6 -> 11"):
        load_adapters(_file(tmp_path, code=code))


def test_two_files_claim_one_step(tmp_path: Path) -> None:
    load_adapters(_file(tmp_path / "a"))
    with pytest.raises(DuplicateAdapter, match=r"com\.acme\.Blur 1 -> 2"):
        load_adapters(_file(tmp_path / "b"))


# Entry points


def _install(monkeypatch: pytest.MonkeyPatch, folder: Path, module: str) -> None:
    monkeypatch.syspath_prepend(str(folder))
    entries = (EntryPoint("acme", module, "opshift.adapters"),)
    monkeypatch.setattr(
        extensions, "entry_points", lambda group: entries if group == "opshift.adapters" else ()
    )


def test_an_installed_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _file(tmp_path, "acme_adapters_a.py")
    _install(monkeypatch, tmp_path, "acme_adapters_a")
    load_installed()
    assert BLUR in registered()


def test_an_installed_package_that_is_broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _file(tmp_path, "acme_adapters_b.py", "raise RuntimeError('broken')")
    _install(monkeypatch, tmp_path, "acme_adapters_b")
    with pytest.raises(UnusableAdapters, match="broken") as caught:
        load_installed()
    assert str(caught.value.place) == "acme = acme_adapters_b"


def test_nothing_is_installed_here() -> None:
    load_installed()
    assert BLUR not in registered()
