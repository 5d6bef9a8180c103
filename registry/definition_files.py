"""Which files of some folders define what."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from opshift import opsets
from opshift.registry.errors import DefinitionError, Place

OPSETS: Final = Path(opsets.__path__[0])
"""The folder of the project's own definitions."""
CONSUMERS, RELEASES, TYPES = "consumers.yaml", "releases.yaml", "types.yaml"


def definition_files(folders: tuple[Path, ...]) -> dict[str, dict[str, Path]]:
    """The file of each operator, by domain and name.

    Raises:
        DefinitionError: a folder holds none, or two define one operator.
    """
    found: dict[str, dict[str, Path]] = {}
    for folder in folders:
        paths = sorted(folder.glob("*/*.yaml"))
        if not paths and not (folder / CONSUMERS).exists():
            raise DefinitionError(
                "holds no operator definitions",
                place=Place(str(folder)),
                remedy="lay them out as <domain>/<operator>.yaml",
            )
        for path in paths:
            names = found.setdefault(path.parent.name, {})
            if path.stem in names:
                raise DefinitionError(f"is defined in {names[path.stem]} too", place=Place(str(path)))
            names[path.stem] = path
    return found
