"""Sources of the definitions of a registry."""

from __future__ import annotations

from pathlib import Path
from typing import Final


class Sources:
    """Base of registries: the folders and documents that they read, which cannot be assigned."""

    def __init__(self, folders: tuple[Path, ...], documents: tuple[Path, ...]) -> None:
        self._folders: Final = folders
        self._documents: Final = documents

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders that definitions are read from; the project's own folder is first."""
        return self._folders

    @property
    def documents(self) -> tuple[Path, ...]:
        """The operator-set documents that were added to the folders."""
        return self._documents
