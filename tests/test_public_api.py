"""What `import opshift` offers, and what it costs."""

from __future__ import annotations

import functools
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import opshift

HEAVY = ("pydantic", "networkx", "yaml", "google.protobuf", "typer", "rich", "onnx", "numpy")


@functools.cache
def modules_after(statement: str) -> set[str]:
    """What a fresh interpreter has loaded after a statement."""
    script = f"{statement}\nimport sys; print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_names_are_these() -> None:
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
def test_a_name_is_found_and_called_that(name: str) -> None:
    found = getattr(opshift, name)
    assert found.__name__ == name
    assert getattr(opshift, name) is found


def test_a_star_import_brings_them_all() -> None:
    names: dict[str, object] = {}
    exec("from opshift import *", names)
    assert set(opshift.__all__) <= set(names)


def test_dir_lists_them() -> None:
    assert set(opshift.__all__) <= set(dir(opshift))


def test_what_type_checkers_see_is_what_is_there() -> None:
    """The names imported under TYPE_CHECKING are those that are loaded on demand, from the same homes."""
    source = Path(opshift.__file__).read_text()
    imported = {
        (line.split()[-1], line.split()[1].removeprefix("opshift."))
        for line in source.splitlines()
        if line.startswith("    from opshift.")
    }
    assert imported == set(opshift._HOMES.items())


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'convert_vision'"):
        _ = opshift.convert_vision


def test_the_version_is_that_of_the_package() -> None:
    assert opshift.__version__ == metadata.version("opshift")


@pytest.mark.parametrize("module", HEAVY)
def test_importing_opshift_does_not_load(module: str) -> None:
    assert module not in modules_after("import opshift")


def test_no_part_of_opshift_is_loaded_before_it_is_used() -> None:
    loaded = {name for name in modules_after("import opshift") if name.startswith("opshift")}
    assert loaded == {"opshift"}


@pytest.mark.parametrize("module", ["onnx", "onnxruntime", "numpy", "typer"])
def test_using_the_registry_and_the_converter_does_not_load(module: str) -> None:
    assert module not in modules_after("import opshift; opshift.convert_version; opshift.default_registry()")
