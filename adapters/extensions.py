"""Adapters from elsewhere: of installed packages, by entry point, and of folders that somebody names."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final

from opshift.registry.errors import OpshiftError, Place

GROUP: Final = "opshift.adapters"
"""The entry points that name modules with adapters."""


class UnusableAdapters(OpshiftError):
    """Adapters from elsewhere cannot be loaded; the place is their file or entry point."""


def load_installed() -> None:
    """Import the modules that installed packages name as entry points of the group `opshift.adapters`.

    Raises:
        UnusableAdapters: one cannot be imported.
        DuplicateAdapter: two functions claim one step.
    """
    for each in entry_points(group=GROUP):
        _load_entry(each)


def load_adapters(path: Path | str) -> tuple[str, ...]:
    """Run a Python file with adapters, or all in a folder but those that begin with `_`; give their modules.

    This runs their code. Each file is a module of its own, and is run once.

    Raises:
        UnusableAdapters: there are none, or one cannot be run.
        DuplicateAdapter: two functions claim one step.
    """
    from opshift.adapters.table import adapter_table

    adapter_table()  # so that a step which opshift has itself is claimed already
    given = Path(path)
    files = sorted(given.glob("[!_]*.py")) if given.is_dir() else [given] if given.is_file() else []
    if not files:
        raise UnusableAdapters("there are no adapters", place=Place(str(path)), remedy="name a .py file")
    return tuple(_run(file) for file in files)


def _load_entry(entry: EntryPoint) -> None:
    try:
        entry.load()
    except OpshiftError:
        raise
    except Exception as error:
        place = f"{entry.name} = {entry.value}"
        raise UnusableAdapters(f"{type(error).__name__}: {error}", place=place) from error


def _run(file: Path) -> str:
    """Import a file under a name that no other file has."""
    from opshift.adapters.table import registered

    name = f"opshift_adapters_{hashlib.blake2b(str(file.resolve()).encode(), digest_size=6).hexdigest()}"
    if any(function.__module__ == name for function in registered().values()):
        return name
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UnusableAdapters("is no Python file", place=Place(str(file)))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, OpshiftError) or not isinstance(error, Exception):
            raise
        raise UnusableAdapters(f"{type(error).__name__}: {error}", place=Place(str(file))) from error
    return name
