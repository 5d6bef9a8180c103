"""Tree of definitions to compare with: another folder, or an earlier revision of the same folder."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from opshift.converter.errors import UsageError

if TYPE_CHECKING:
    from opshift.registry.changes.trees import Tree


def tree_against(named: str, folder: Path) -> Tree:
    """Return the tree in folder `named` if it exists, else `folder` at the git revision `named`.

    Raises:
        UsageError: `named` is neither a folder nor a revision of `folder`.
        DefinitionError: a definition in the tree is invalid.
    """
    from opshift.registry.changes.trees import read_tree

    if Path(named).is_dir():
        return read_tree(Path(named))
    with tempfile.TemporaryDirectory() as scratch:
        _unpack(named, folder, Path(scratch))
        return read_tree(Path(scratch))


def _unpack(revision: str, folder: Path, destination: Path) -> None:
    """Write the files of `folder` at a git revision to another folder."""
    reason = f"{revision!r} is neither a folder nor a git revision of the tree"
    if revision.startswith("-"):  # git would read it as an option
        raise UsageError(reason, place=str(folder))
    command = ["git", "-C", str(folder.resolve()), "archive", "--format=tar", revision]
    try:
        archived = subprocess.run(command, capture_output=True, check=True)
    except FileNotFoundError as error:
        raise UsageError("git is not installed", remedy="install git, or compare with a folder") from error
    except subprocess.CalledProcessError as error:
        messages = error.stderr.decode(errors="replace").strip().splitlines()
        raise UsageError(reason, place=str(folder), remedy=messages[-1] if messages else "") from error
    with tarfile.open(fileobj=io.BytesIO(archived.stdout)) as archive:
        archive.extractall(destination, filter="data")
