"""External adapters: loaded once from entry points and folders, and rejected as a whole."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.installed import forget_installed_packages, install

from opshift.adapters.core.adapter_table import (
    DuplicateAdapter,
    StepKey,
    UnusableAdapters,
    adapter,
    error_bound,
    load_adapters,
    load_installed_adapters,
    registered_adapters,
    temporary_adapters,
    unregister,
)

BLUR = StepKey("com.acme", "Blur", 1, 2)
CODE = """
from opshift.adapters import adapter

@adapter("Blur", 1, 2, domain="com.acme")
def repeat_size(node, out):
    '''Repeat the size for height and width.'''
    out.replace(node)
"""


@pytest.fixture(autouse=True)
def _temporary_table() -> Iterator[None]:
    """Discard the adapters that a test registers."""
    with temporary_adapters():
        yield


def _write_adapters(folder: Path, name: str = "blur.py", code: str = CODE) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(code, encoding="utf-8")
    return path


def test_loads_a_folder(tmp_path: Path) -> None:
    _write_adapters(tmp_path)
    _write_adapters(tmp_path, "glow.py", CODE.replace("Blur", "Glow"))
    _write_adapters(tmp_path, "_shared.py", "raise RuntimeError('not run')")
    assert len(load_adapters(tmp_path)) == 2
    assert registered_adapters()[BLUR].__name__ == "repeat_size"
    assert BLUR._replace(op_type="Glow") in registered_adapters()


def test_loads_a_file(tmp_path: Path) -> None:
    (module,) = load_adapters(str(_write_adapters(tmp_path)))
    assert registered_adapters()[BLUR].__module__ == module


def test_runs_a_file_once(tmp_path: Path) -> None:
    path = _write_adapters(tmp_path)
    assert load_adapters(path) == load_adapters(tmp_path)


def test_separates_modules_of_two_folders(tmp_path: Path) -> None:
    _write_adapters(tmp_path / "a")
    _write_adapters(tmp_path / "b", code=CODE.replace("Blur", "Glow"))
    assert load_adapters(tmp_path / "a") != load_adapters(tmp_path / "b")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        pytest.param("raise RuntimeError('broken')", "RuntimeError: broken", id="exception"),
        pytest.param("def (", "SyntaxError", id="syntax error"),
        pytest.param("import sys; sys.exit(3)", "SystemExit: 3", id="exit"),
        pytest.param("import nobody_has_this", "ModuleNotFoundError", id="missing module"),
    ],
)
def test_reports_code_that_fails(tmp_path: Path, code: str, message: str) -> None:
    path = _write_adapters(tmp_path, code=code)
    with pytest.raises(UnusableAdapters, match=message) as caught:
        load_adapters(path)
    assert caught.value.place.file == str(path)
    assert not [name for name in sys.modules if getattr(sys.modules[name], "__file__", None) == str(path)]


def test_failed_file_leaves_no_error_bound(tmp_path: Path) -> None:
    code = CODE.replace('domain="com.acme"', 'domain="com.acme", error="at most 2 units"')
    with pytest.raises(UnusableAdapters) as caught:
        load_adapters(_write_adapters(tmp_path, code=f"{code}\n1 / 0\n"))
    assert caught.value.remedy == "correct the file"
    assert error_bound(BLUR) == ""


def test_restores_error_bounds() -> None:
    for _ in range(2):
        with temporary_adapters():
            adapter("Blur", 1, 2, domain="com.acme", error="at most 2 units")(lambda node, out: None)
            assert error_bound(BLUR) == "at most 2 units"
        assert error_bound(BLUR) == ""
    adapter("Blur", 1, 2, domain="com.acme", error="at most 2 units")(lambda node, out: None)
    unregister("com.acme", "Blur", 2)
    assert (error_bound(BLUR), BLUR in registered_adapters()) == ("", False)


def test_reports_missing_code(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.py"):
        with pytest.raises(UnusableAdapters, match="found no Python file with adapters"):
            load_adapters(path)


def test_rejects_adapter_for_a_step_of_onnx(tmp_path: Path) -> None:
    code = CODE.replace('"Blur", 1, 2, domain="com.acme"', '"Clip", 6, 11')
    with pytest.raises(DuplicateAdapter, match=r"ai\.onnx\.Clip 6 -> 11"):
        load_adapters(_write_adapters(tmp_path, code=code))


def test_rejects_two_adapters_for_one_step(tmp_path: Path) -> None:
    load_adapters(_write_adapters(tmp_path / "a"))
    with pytest.raises(DuplicateAdapter, match=r"com\.acme\.Blur 1 -> 2"):
        load_adapters(_write_adapters(tmp_path / "b"))


# Entry points


@pytest.fixture(autouse=True)
def _no_packages() -> Iterator[None]:
    forget_installed_packages()
    yield
    forget_installed_packages()


def _install(monkeypatch: pytest.MonkeyPatch, folder: Path, module: str) -> None:
    install(monkeypatch, folder, {}, f"[opshift.adapters]\nacme = {module}\n")


def test_loads_an_installed_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _write_adapters(tmp_path, "acme_adapters_a.py")
    _install(monkeypatch, tmp_path, "acme_adapters_a")
    load_installed_adapters()
    assert BLUR in registered_adapters()


def test_reports_a_broken_installed_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _write_adapters(tmp_path, "acme_adapters_b.py", "raise RuntimeError('broken')")
    _install(monkeypatch, tmp_path, "acme_adapters_b")
    with pytest.raises(UnusableAdapters, match="broken") as caught:
        load_installed_adapters()
    assert str(caught.value.place) == "acme = acme_adapters_b"


def test_loads_nothing_without_entry_points() -> None:
    load_installed_adapters()
    assert BLUR not in registered_adapters()
