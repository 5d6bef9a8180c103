"""The project's definitions with those of other folders, or others in their place."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from opshift.registry.catalogue import Registry, default_registry


def registry_over(folders: Iterable[Path]) -> Registry:
    """The project's definitions and those in `folders`.

    A folder that has a `releases.yaml` is a whole tree of its own: it takes the place of the project's.

    Raises:
        DefinitionError: a folder holds none, or defines what another does.
    """
    given = list(folders)
    base = next((each for each in given if (each / "releases.yaml").exists()), None)
    registry = default_registry() if base is None else Registry((base,))
    for folder in given:
        registry = registry if folder is base else registry.with_folder(folder)
    return registry
