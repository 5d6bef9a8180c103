"""Locate the definition file of each operator in a list of folders."""

from pathlib import Path

from opshift.model.errors import Place
from opshift.registry.errors import DefinitionError

CONSUMERS, RELEASES, TYPES = "consumers.yaml", "releases.yaml", "types.yaml"
REVIEWERS = "reviewers.yaml"


def definition_files(folders: tuple[Path, ...]) -> dict[str, dict[str, Path]]:
    """Return the file of each operator, by domain and name.

    Raises:
        DefinitionError: a folder contains no definitions, or an operator is defined twice.
    """
    found: dict[str, dict[str, Path]] = {}
    for folder in folders:
        paths = sorted(folder.glob("*/*.yaml"))
        # A folder may contain nothing but a list of consumers, or of reviewers.
        if not paths and not any((folder / name).exists() for name in (CONSUMERS, REVIEWERS)):
            remedy = "name the files <domain>/<operator>.yaml"
            place = Place(str(folder))
            raise DefinitionError("contains no operator definitions", place=place, remedy=remedy)
        for path in paths:
            names = found.setdefault(path.parent.name, {})
            if path.stem in names:
                raise DefinitionError(f"is also defined in {names[path.stem]}", place=Place(str(path)))
            names[path.stem] = path
    return found
