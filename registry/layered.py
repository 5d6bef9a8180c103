"""Combine the project's definitions with definitions from other folders."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from opshift.registry.catalogue import Registry, default_registry


def registry_over(folders: Iterable[Path]) -> Registry:
    """Return a registry of the project's definitions and those in `folders`.

    The first folder with a `releases.yaml` is a complete tree and replaces the project's definitions.

    Raises:
        DefinitionError: a folder contains no definitions, or redefines an operator.
    """
    paths = list(folders)
    base = next((each for each in paths if (each / "releases.yaml").exists()), None)
    registry = default_registry() if base is None else Registry((base,))
    for folder in paths:
        registry = registry if folder is base else registry.with_folder(folder)
    return registry
