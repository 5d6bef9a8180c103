"""Copy folders at git revisions."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from opshift.model.atomic_files import destination_below, raising_cannot_write
from opshift.model.errors import UsageError

FILE_MODES = ("100644", "100755")
"""Modes of regular files in git trees; symbolic links and submodules have others."""


@contextmanager
def unpacked(revision: str, folder: Path) -> Iterator[Path]:
    """Yield a temporary folder with the regular files of `folder` at a git revision.

    Raises:
        UsageError: git is not installed, the revision does not exist, or a name leads out of the folder.
        CannotWrite: a file cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="opshift-") as scratch:
        _unpack(revision, folder, Path(scratch))
        yield Path(scratch)


def _unpack(revision: str, folder: Path, destination: Path) -> None:
    """Write the regular files of `folder` at a git revision to another folder.

    Their content is read as it is stored: `git archive` would apply attributes such as `export-ignore`.
    """
    reason = f"{revision!r} is neither a folder nor a git revision of the tree"
    if revision.startswith("-"):  # git would read it as an option
        raise UsageError(reason, place=str(folder), remedy="pass a commit, a tag or a branch")
    listed = _git(folder, reason, "ls-tree", "-r", "-z", revision)
    entries = (entry.partition(b"\t") for entry in listed.split(b"\0") if entry)
    files = {name: head.split()[2] for head, _, name in entries if head.split()[0].decode() in FILE_MODES}
    if not files:
        missing = f"git revision {revision!r} has no files of the folder"
        raise UsageError(missing, place=str(folder), remedy="name a revision that contains the folder")
    contents = _git(folder, reason, "cat-file", "--batch", content=b"\n".join(files.values()) + b"\n")
    start = 0
    for name, identifier in files.items():
        end = contents.index(b"\n", start)
        found, *rest = contents[start:end].split()
        if found != identifier or len(rest) != 2:
            missing = f"git lacks the content of {name.decode(errors='replace')} at {revision!r}"
            raise UsageError(missing, place=str(folder), remedy="fetch the revision completely")
        start, end = end + 1, end + 1 + int(rest[1])
        path = destination_below(destination, *os.fsdecode(name).split("/"))
        with raising_cannot_write(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents[start:end])
        start = end + 1  # a line break follows the content


def _git(folder: Path, reason: str, *arguments: str, content: bytes = b"") -> bytes:
    """Return the output of a git command in a folder; an error has `reason`, and git's message as remedy."""
    command = ["git", "-C", str(folder.resolve()), *arguments]
    try:
        return subprocess.run(command, capture_output=True, check=True, input=content).stdout
    except FileNotFoundError as error:
        raise UsageError("git is not installed", remedy="install git, or compare with a folder") from error
    except subprocess.CalledProcessError as error:
        messages = error.stderr.decode(errors="replace").strip().splitlines()
        raise UsageError(reason, place=str(folder), remedy=messages[-1] if messages else "") from error
