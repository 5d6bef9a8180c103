"""Entry points of installed packages, and the definitions of private domains that packages provide."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache, cached_property
from importlib.machinery import PathFinder
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from opshift.model.errors import OpshiftError
from opshift.model.extensions import FAILURES
from opshift.registry.definition_files import RELEASES, TYPES, definition_files
from opshift.registry.errors import DefinitionError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

DEFINITIONS: Final = "opshift.opsets"
"""Entry point group for definitions. The name of an entry point is a domain; its value is a package
whose folder contains `<domain>/<operator>.yaml`. Importing the package registers its shape rules."""


@cache
def installed_entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group."""
    if not _may_exist(group):
        return ()
    # imported here: slow to import, and few environments have entry points
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


def _may_exist(group: str) -> bool:
    """Return whether an installed package may have entry points of a group.

    If not, the caller need not import `importlib.metadata`, which takes longer than converting a model.
    """
    if any(hasattr(each, "find_distributions") and each is not PathFinder for each in sys.meta_path):
        return True
    try:
        for folder in map(Path, sys.path):
            if folder.is_file():  # an archive on `sys.path` may contain packages
                return True
            for path in folder.glob("*-[iI][nN][fF][oO]/entry_points.txt"):
                if group.encode() in path.read_bytes():
                    return True
    except OSError:
        return True
    return False


def installed_domains() -> tuple[str, ...]:
    """Return the domains that installed packages define."""
    return tuple(dict.fromkeys(each.name for each in installed_entry_points(DEFINITIONS)))


@cache
def installed_files(domain: str) -> Mapping[str, str]:
    """Return the file of each operator that installed packages define in a domain, by operator name.

    Raises:
        DefinitionError: a package cannot be imported or has no definitions of the domain, or two packages
            define the same operator.
    """
    named = [each for each in installed_entry_points(DEFINITIONS) if each.name == domain]
    return MappingProxyType(definition_files(tuple(map(_definition_folder, named))).get(domain, {}))


def _definition_folder(entry_point: EntryPoint) -> Path:
    domain, place = entry_point.name, f"entry point {entry_point.name} = {entry_point.value}"
    try:
        package = entry_point.load()
    except OpshiftError:
        raise
    except FAILURES as error:
        reason = f"the package cannot be imported: {type(error).__name__}: {error}"
        raise DefinitionError(reason, place=place, remedy="correct or uninstall the package") from error
    for folder in map(Path, getattr(package, "__path__", ())):
        if any(folder.glob(f"{domain}/*.yaml")):
            return folder
    remedy = f"add files {domain}/<operator>.yaml to the package, and name it without a colon"
    raise DefinitionError(f"the package has no definitions of {domain}", place=place, remedy=remedy)


class DefinitionFiles(dict[str, Mapping[str, str]]):
    """Path of each operator's file, by domain and name.

    If `installed` is true, a domain that no folder defines is looked up in installed packages on first use.
    """

    def __init__(self, folders: tuple[Path, ...], *, installed: bool) -> None:
        super().__init__(definition_files(folders))
        self.installed = installed
        self._folders = folders

    @cached_property
    def common_sources(self) -> tuple[Path, ...]:
        """Files that all definitions depend on: `releases.yaml` of the first folder, `types.yaml` of each."""
        return self._folders[0] / RELEASES, *(folder / TYPES for folder in self._folders)

    def __missing__(self, domain: str) -> Mapping[str, str]:
        """Return the files in installed packages; none for an unknown domain."""
        return installed_files(domain) if self.installed else {}

    def domains(self) -> tuple[str, ...]:
        """Return all domains that have definitions."""
        return tuple(dict.fromkeys((*self, *(installed_domains() if self.installed else ()))))
