"""Unpack folders at git revisions."""

import io
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from opshift.model.errors import UsageError


@contextmanager
def unpacked(revision: str, folder: Path) -> Iterator[Path]:
    """Yield a temporary folder with the files of `folder` at a git revision.

    Raises:
        UsageError: git is not installed, or the revision does not exist.
    """
    with tempfile.TemporaryDirectory(prefix="opshift-") as scratch:
        _unpack(revision, folder, Path(scratch))
        yield Path(scratch)


def _unpack(revision: str, folder: Path, destination: Path) -> None:
    """Write the files of `folder` at a git revision to another folder."""
    reason = f"{revision!r} is neither a folder nor a git revision of the tree"
    if revision.startswith("-"):  # git would read it as an option
        raise UsageError(reason, place=str(folder), remedy="pass a commit, a tag or a branch")
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
