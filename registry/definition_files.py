"""Locate the definition file of each operator in folders; names of the other files there."""

import os
from contextlib import suppress
from pathlib import Path

from opshift.model.errors import Place, UsageError
from opshift.opsets import OPSETS
from opshift.registry.errors import DefinitionError

CONSUMERS, RELEASES, TYPES = "consumers.yaml", "releases.yaml", "types.yaml"
REVIEWERS = "reviewers.yaml"
RUNTIMES = "runtimes"
"""Folder with the files of runtimes, `<runtime>/<version>.yaml`."""


def definition_files(folders: tuple[Path, ...]) -> dict[str, dict[str, str]]:
    """Return the path of each operator's file, by domain and name.

    Raises:
        DefinitionError: a folder contains no definitions or other data, or an operator is defined twice.
        UsageError: a folder does not exist.
    """
    # Paths are strings, because hundreds of Path objects would take a tenth of the time of a first
    # conversion.
    found: dict[str, dict[str, str]] = {}
    for folder in folders:
        files = [
            (domain, file)
            for domain in _visible_names(folder)
            for file in _visible_names(os.path.join(folder, domain))
            if file.endswith(".yaml")
        ]
        # A folder without operators may contain `consumers.yaml`, `reviewers.yaml` or `runtimes/`.
        if not files and not any((folder / name).exists() for name in (CONSUMERS, REVIEWERS, RUNTIMES)):
            if not folder.exists():
                raise UsageError(
                    "does not exist", place=str(folder), remedy="correct the path of definitions"
                )
            remedy = "name the files <domain>/<operator>.yaml"
            place = Place(str(folder))
            raise DefinitionError("contains no operator definitions", place=place, remedy=remedy)
        for domain, file in files:
            names, path = found.setdefault(domain, {}), os.path.join(folder, domain, file)
            name = file.removesuffix(".yaml")
            if name in names:
                raise DefinitionError(f"is also defined in {names[name]}", place=Place(path))
            names[name] = path
    return found


def has_kernel_data(release: str) -> bool:
    """Return whether `opsets/runtimes` has a folder for a release: `onnxruntime` for `onnxruntime-1.20`."""
    product = release.rpartition("-")[0]
    return bool(product) and (OPSETS / RUNTIMES / product).is_dir()


def _visible_names(folder: Path | str) -> list[str]:
    """Return the sorted visible names in a folder, faster than `glob`; empty for other paths."""
    with suppress(OSError):
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    return []
