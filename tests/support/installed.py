"""Packages with entry points, installed for the time of a test."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from opshift.registry import installed

if TYPE_CHECKING:
    import pytest


def install(
    monkeypatch: pytest.MonkeyPatch, folder: Path, files: Mapping[str, str], entry_points: str
) -> None:
    """Write a distribution with some files and the text of its entry points, and add it to `sys.path`."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    metadata = folder / "acme-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n", "utf-8")
    (metadata / "entry_points.txt").write_text(entry_points, "utf-8")
    monkeypatch.syspath_prepend(str(folder))
    importlib.invalidate_caches()
    forget_installed_packages()


def forget_installed_packages() -> None:
    """Clear the caches of installed packages."""
    installed.installed_entry_points.cache_clear()
    installed.installed_files.cache_clear()
