"""Public names of `opshift`, and the modules that importing it loads."""

from __future__ import annotations

import functools
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import opshift

HEAVY = ("pydantic", "networkx", "yaml", "google.protobuf", "typer", "rich", "onnx", "numpy", "fsspec")


@functools.cache
def modules_after(statement: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after a statement."""
    script = f"{statement}\nimport sys; print(*sys.modules, sep='\\n')"
    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(completed.stdout.split())


def test_exports_public_names() -> None:
    assert set(opshift.__all__) >= {
        "CannotConvert",
        "Conversion",
        "ConversionRefused",
        "InvalidModel",
        "ModelProto",
        "OperatorId",
        "OperatorVersion",
        "OpshiftError",
        "Registry",
        "Report",
        "ResolveError",
        "UsageError",
        "adapter",
        "convert",
        "convert_file",
        "convert_version",
        "default_registry",
        "plan_version",
        "read_model",
        "write_model",
    }
    assert opshift.__all__ == sorted(opshift.__all__)


@pytest.mark.parametrize("name", opshift.__all__)
def test_exported_object_has_its_public_name(name: str) -> None:
    attribute = getattr(opshift, name)
    assert attribute.__name__ == name
    assert getattr(opshift, name) is attribute


def test_star_import_imports_all_names() -> None:
    names: dict[str, object] = {}
    exec("from opshift import *", names)
    assert set(opshift.__all__) <= set(names)


def test_dir_lists_all_names() -> None:
    assert set(opshift.__all__) <= set(dir(opshift))


def test_type_checkers_see_the_lazy_names() -> None:
    """The names imported under TYPE_CHECKING are the lazily loaded names, from the same modules."""
    source = Path(opshift.__file__).read_text()
    imported = {
        (line.split()[-1], line.split()[1].removeprefix("opshift."))
        for line in source.splitlines()
        if line.startswith("    from opshift.")
    }
    assert imported == set(opshift._HOMES.items())


def test_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'convert_vision'"):
        _ = opshift.convert_vision  # type: ignore[attr-defined]  # type checkers reject it, too


def test_version_equals_that_of_the_package() -> None:
    assert opshift.__version__ == metadata.version("opshift")


@pytest.mark.parametrize("module", HEAVY)
def test_import_does_not_load(module: str) -> None:
    assert module not in modules_after("import opshift")


def test_import_loads_one_small_module() -> None:
    loaded = {name for name in modules_after("import opshift") if name.startswith("opshift")}
    assert loaded == {"opshift", "opshift.registry", "opshift.registry.function_builder"}


@pytest.mark.parametrize("module", ["onnx", "onnxruntime", "numpy", "typer"])
def test_registry_and_converter_do_not_load(module: str) -> None:
    assert module not in modules_after("import opshift; opshift.convert_version; opshift.default_registry()")
