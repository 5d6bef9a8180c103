"""A tree of definitions to compare with: another folder, or the same one in git's history."""

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
    """The tree at a path if there is such a folder, else `folder` as git has it at a commit, branch or tag.

    Raises:
        UsageError: it is neither.
        DefinitionError: a definition in it is wrong.
    """
    from opshift.registry.changes.trees import read_tree

    if Path(named).is_dir():
        return read_tree(Path(named))
    with tempfile.TemporaryDirectory() as scratch:
        _unpack(named, folder, Path(scratch))
        return read_tree(Path(scratch))


def _unpack(ref: str, folder: Path, into: Path) -> None:
    """Write the files of `folder` at a git ref."""
    wrong = f"{ref!r} is neither a folder nor a revision that git has of it"
    if ref.startswith("-"):
        raise UsageError(wrong, place=str(folder))
    command = ["git", "-C", str(folder.resolve()), "archive", "--format=tar", ref]
    try:
        done = subprocess.run(command, capture_output=True, check=True)
    except FileNotFoundError as error:
        raise UsageError("git is not installed", remedy="compare with a folder") from error
    except subprocess.CalledProcessError as error:
        told = error.stderr.decode(errors="replace").strip().splitlines()
        raise UsageError(wrong, place=str(folder), remedy=told[-1] if told else "") from error
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(into, filter="data")
