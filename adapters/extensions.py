"""Load adapters from installed packages (entry points) and from user-supplied files and folders."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final

from opshift.registry.errors import OpshiftError, Place

GROUP: Final = "opshift.adapters"
"""Entry point group of modules with adapters."""


class UnusableAdapters(OpshiftError):
    """External adapters cannot be loaded. The place is their file or entry point."""


def load_installed() -> None:
    """Import the modules that installed packages name as entry points of the group `opshift.adapters`.

    Raises:
        UnusableAdapters: a module cannot be imported.
        DuplicateAdapter: two functions are registered for the same step.
    """
    for entry_point in entry_points(group=GROUP):
        _load_entry_point(entry_point)


def load_adapters(path: Path | str) -> tuple[str, ...]:
    """Load adapters from a Python file, or from all Python files of a folder that do not begin with `_`.

    This executes the files. Each becomes a separate module and is executed once per process.

    Returns:
        The names of the modules.

    Raises:
        UnusableAdapters: there is no file, or a file cannot be executed.
        DuplicateAdapter: two functions are registered for the same step.
    """
    from opshift.adapters.table import adapter_table

    # Register the built-in adapters first, so that a duplicate is blamed on the external file.
    adapter_table()
    source = Path(path)
    files = sorted(source.glob("[!_]*.py")) if source.is_dir() else [source] if source.is_file() else []
    if not files:
        raise UnusableAdapters(
            "found no Python file with adapters",
            place=Place(str(path)),
            remedy="pass a .py file or a folder with .py files",
        )
    return tuple(_import_file(file) for file in files)


def _load_entry_point(entry_point: EntryPoint) -> None:
    try:
        entry_point.load()
    except OpshiftError:
        raise
    except Exception as error:
        place = f"{entry_point.name} = {entry_point.value}"
        raise UnusableAdapters(f"{type(error).__name__}: {error}", place=place) from error


def _import_file(file: Path) -> str:
    """Import a file and return the name of its module."""
    from opshift.adapters.table import registered

    # Files of different folders may share a name, so the module name contains a hash of the path.
    name = f"opshift_adapters_{hashlib.blake2b(str(file.resolve()).encode(), digest_size=6).hexdigest()}"
    if any(function.__module__ == name for function in registered().values()):
        return name
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UnusableAdapters("expected a Python file (.py)", place=Place(str(file)))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        # Do not leave a partly initialized module behind.
        del sys.modules[name]
        if isinstance(error, OpshiftError) or not isinstance(error, Exception):
            raise
        raise UnusableAdapters(f"{type(error).__name__}: {error}", place=Place(str(file))) from error
    return name
