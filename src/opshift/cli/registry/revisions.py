"""Copy the content of folders at git revisions to temporary folders."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from opshift.model.atomic_files import destination_below, raising_cannot_write
from opshift.model.errors import UsageError
from opshift.registry.definition_files import CONSUMERS, RELEASES, REVIEWERS, TYPES

FILE_MODES = (b"100644", b"100755")
"""Modes of regular files in git trees; symbolic links and submodules have others."""

FILES = (CONSUMERS, RELEASES, REVIEWERS, TYPES)
"""Files at the top of a folder of definitions that commands read at a revision."""


@contextmanager
def unpacked(revision: str, folder: Path) -> Iterator[Path]:
    """Yield a temporary folder with the files of `folder` at a git revision, and with links to them.

    Raises:
        UsageError: git is not installed, the revision does not exist, a name leads out of the folder, or a
            definition is a link to a file that the folder lacks at the revision.
        CannotWrite: a file cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="opshift-") as scratch:
        _unpack_folder(revision, folder, Path(scratch).resolve())
        yield Path(scratch)


def _unpack_folder(revision: str, folder: Path, destination: Path) -> None:
    """Write the files and links of `folder` at a git revision to another folder."""
    links: dict[Path, str] = {}
    for name, mode, content in _git_entries(revision, folder):
        path = destination_below(destination, *name.split("/"))
        with raising_cannot_write(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if mode in FILE_MODES:
                path.write_bytes(content)
            else:
                links[path] = os.fsdecode(content)
    for path, target in links.items():  # last: no file may be written through a link
        with suppress(OSError, ValueError):  # ValueError: a null character in the target
            path.symlink_to(target)
    domains = {Path(os.path.realpath(each)) for each in destination.glob("[!.]*")}
    for path, target in links.items():
        if os.path.exists(path) and Path(os.path.realpath(path)).is_relative_to(destination):
            continue
        path.unlink(missing_ok=True)
        if path.parent == destination:
            present = folder / (target or path.name)  # a folder with definitions is a domain
            is_read = path.name in FILES or (os.path.isdir(present) and any(present.glob("*.yaml")))
        else:
            is_read = path.parent in domains and path.suffix == ".yaml"
        if is_read and not path.name.startswith("."):
            name = path.relative_to(destination).as_posix()
            reason = f"git revision {revision!r} lacks the content of {name}"
            reason += f", a link to {target!r}" if target else ", a submodule"
            remedy = "commit the files in the folder, or compare with a folder"
            raise UsageError(reason, place=str(folder), remedy=remedy)


def _git_entries(revision: str, folder: Path) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield the name, the mode and the content of each file, link and submodule at a git revision.

    The content of a link is its target; a submodule has no content. `git archive` would apply attributes such
    as `export-ignore`, so this function reads the stored content.
    """
    reason = f"{revision!r} is neither a folder nor a git revision of the tree"
    if revision.startswith("-"):  # git would read a name with a leading dash as an option
        raise UsageError(reason, place=str(folder), remedy="pass a commit, a tag or a branch")
    listed = _run_git(folder, reason, "ls-tree", "-r", "-z", revision)
    entries = [entry.partition(b"\t") for entry in listed.split(b"\0") if entry]
    if not entries:
        missing = f"git revision {revision!r} has no files of the folder"
        raise UsageError(missing, place=str(folder), remedy="name a revision that contains the folder")
    blobs = [head.split()[2] for head, _, _ in entries if b" blob " in head]
    contents = _run_git(folder, reason, "cat-file", "--batch", content=b"\n".join(blobs) + b"\n")
    start = 0
    for head, _, name in entries:
        mode, kind, identifier = head.split()
        if kind != b"blob":
            yield os.fsdecode(name), mode, b""
            continue
        end = contents.index(b"\n", start)
        found, *rest = contents[start:end].split()
        if found != identifier or len(rest) != 2:
            missing = f"git lacks the content of {name.decode(errors='replace')} at {revision!r}"
            raise UsageError(missing, place=str(folder), remedy="fetch the revision completely")
        start, end = end + 1, end + 1 + int(rest[1])
        yield os.fsdecode(name), mode, contents[start:end]
        start = end + 1  # a line break follows the content


def _run_git(folder: Path, reason: str, *arguments: str, content: bytes = b"") -> bytes:
    """Return the output of a git command in a folder; an error has `reason`, and git's message as remedy."""
    command = ["git", "-C", str(folder.resolve()), *arguments]
    try:
        return subprocess.run(command, capture_output=True, check=True, input=content).stdout
    except FileNotFoundError as error:
        raise UsageError("git is not installed", remedy="install git, or compare with a folder") from error
    except subprocess.CalledProcessError as error:
        messages = error.stderr.decode(errors="replace").strip().splitlines()
        raise UsageError(reason, place=str(folder), remedy=messages[-1] if messages else "") from error
