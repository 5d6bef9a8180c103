"""Threads: first calls of a process, and objects that all threads share."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest
from support import cold_threads

from opshift import default_registry
from opshift.model.process_state import WARNINGS_IGNORED
from opshift.model.shared_data import FrozenRecord, ReadOnlyDict, share_results
from opshift.registry.explanations import refusal_causes, tool_errors
from opshift.registry.installed import installed_files
from opshift.registry.ir_versions import ir_versions
from opshift.registry.onnx_defs import onnx_defs
from opshift.registry.runtimes.files import get_runtime, runtime_files

ROOT = Path(__file__).parents[1]

IMMUTABLE = (str, bytes, int, float, frozenset, Path, type(None))


@pytest.mark.some_cases(1)
@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize("seed", [1, 2])
def test_first_calls_in_threads_equal_later_ones(threads: int, seed: int, tmp_path: Path) -> None:
    command = [sys.executable, cold_threads.__file__, str(tmp_path), str(threads), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"calls": list(cold_threads.calls(tmp_path)), "faults": []}


def mutable_parts(value: object, path: str) -> Iterator[str]:
    """Yield the paths of the parts of a shared object that a caller can modify."""
    if isinstance(value, FrozenRecord):
        for field in fields(value):
            yield from mutable_parts(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, tuple):
        for position, each in enumerate(value):
            yield from mutable_parts(each, f"{path}[{position}]")
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from mutable_parts(key, f"{path} key {key!r}")
            yield from mutable_parts(each, f"{path}[{key!r}]")
        if hasattr(value, "__setitem__") and not isinstance(value, ReadOnlyDict):
            yield path
    elif not isinstance(value, IMMUTABLE):
        yield f"{path} ({type(value).__name__})"


def test_operators_are_deeply_immutable() -> None:
    registry = default_registry()
    found = [part for each in registry.operators() for part in mutable_parts(each, str(each.name))]
    assert found == []
    assert [p for each in registry.operators() for p in mutable_parts(each.compatible_steps, "steps")] == []


def test_releases_and_other_data_are_deeply_immutable() -> None:
    registry = default_registry()
    shared = {
        "releases": registry.releases,
        "folders": registry.folders,
        "documents": registry.documents,
        "ir_versions": ir_versions().versions,
        "refusal_causes": refusal_causes(),
        "tool_errors": tool_errors(),
        "onnx_defs": onnx_defs(),
        "runtime_files": runtime_files(),
        "installed_files": installed_files("com.acme"),
    }
    assert [part for name, each in shared.items() for part in mutable_parts(each, name)] == []


def test_runtimes_are_deeply_immutable() -> None:
    names = {each.rpartition("-")[0]: each for each in runtime_files()}.values()
    assert [part for each in names for part in mutable_parts(get_runtime(each), each)] == []


def test_objects_of_the_registry_refuse_changes() -> None:
    registry = default_registry()
    schema = registry.get_schema("Softmax", 13)
    with pytest.raises(TypeError, match=r"read-only; copy it with dict\(\.\.\.\)"):
        schema.attributes["x"] = schema.attributes["axis"]
    with pytest.raises(FrozenInstanceError):
        schema.attributes["axis"].required = True  # type: ignore[misc]
    with pytest.raises(AttributeError):
        registry.folders = ()  # type: ignore[misc]
    assert list(dict(schema.attributes)) == ["axis"]


@pytest.mark.parametrize(
    "change",
    ["d['a'] = 2", "del d['a']", "d.clear()", "d.pop('a')", "d.popitem()", "d.setdefault('b', 1)",
     "d.update(b=1)", "d |= {'b': 1}"],
)  # fmt: skip
def test_read_only_dict_refuses_changes(change: str) -> None:
    values = ReadOnlyDict(a=1)
    with pytest.raises(TypeError, match="read-only"):
        exec(change, {"d": values})
    assert values == {"a": 1}
    assert type(values | {"b": 2}) is dict


def test_threads_get_the_first_of_two_results() -> None:
    calls = []

    @share_results
    def result(number: int) -> list[int]:
        calls.append(number)
        if len(calls) == 1:  # another thread calls and finishes in the meantime
            result(number)
        return [number]

    assert result(1) is result(1)
    assert calls == [1, 1]
    result.cache_clear()
    assert result(1) == [1]
    assert calls == [1, 1, 1]


def test_overlapping_blocks_restore_the_filter_of_warnings() -> None:
    import warnings

    before = list(warnings.filters)
    first, second = WARNINGS_IGNORED, WARNINGS_IGNORED
    first.__enter__()
    second.__enter__()
    first.__exit__()
    assert warnings.filters[0][0] == "ignore"
    second.__exit__()
    assert list(warnings.filters) == before


def package_files() -> Iterator[Path]:
    """Yield the `__init__.py` of each package of the project."""
    for folder in (ROOT / "src/opshift").iterdir():
        if folder.is_dir():
            yield from folder.resolve().rglob("__init__.py")


def test_packages_do_not_import_their_modules() -> None:
    # A thread that imports a package would hold its lock and wait for a module in it, while another thread
    # imports that module and waits for the package: Python then continues with an incomplete module.
    found = []
    for file in package_files():
        imports = [each for each in ast.parse(file.read_text()).body if isinstance(each, ast.ImportFrom)]
        found += [f"{file}: {each.module}" for each in imports if str(each.module).startswith("opshift")]
    assert found == []
