"""Atomic replacement of several files: all of them or none."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from opshift.model import atomic_files
from opshift.model.atomic_files import (
    AtomicFiles,
    destination_below,
    remove_abandoned_files,
    temporary_files,
    write_all,
    write_destination,
)
from opshift.model.errors import CannotWrite, UsageError


def write(
    files: AtomicFiles, path: Path, data: bytes = b"new", *, is_safe: bool = False, is_new: bool = False
) -> Path:
    with files.new(path, is_safe=is_safe, is_new=is_new) as (file, temporary):
        write_all(file, data)
    return temporary


PATHS = ("b", "a", "c/d/e")


def write_files(folder: Path, count: int, error: type[BaseException] | None = None) -> None:
    """Write some files in one transaction, and optionally fail at its end."""
    with AtomicFiles() as files:
        for path in PATHS[:count]:
            write(files, folder / path)
        if error is not None:
            raise error


def contents(folder: Path) -> dict[str, bytes]:
    return {
        each.relative_to(folder).as_posix(): each.read_bytes() for each in folder.rglob("*") if each.is_file()
    }


def test_renames_files_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"old")
    with AtomicFiles() as files:
        first = write(files, tmp_path / "a")
        write(files, tmp_path / "b", is_safe=True)
        write(files, tmp_path / "c" / "d" / "e")
        files.link(first, tmp_path / "f")
        assert first.read_bytes() == b"new"
        assert (tmp_path / "b").read_bytes() == b"old"
        assert not (tmp_path / "a").exists()
    assert contents(tmp_path) == dict.fromkeys(["a", "b", "c/d/e", "f"], b"new")


def test_renames_first_file_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = []
    replace = os.replace

    def record_and_replace(source: Path, path: Path) -> None:
        order.append(path.name)
        replace(source, path)

    monkeypatch.setattr(os, "replace", record_and_replace)
    with AtomicFiles() as files:
        for name in "abc":
            write(files, tmp_path / name)
    assert order == ["c", "b", "a"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt], ids=["failure", "interruption"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_error_leaves_no_files(error: type[BaseException], count: int, tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"old")
    with pytest.raises(error):
        write_files(tmp_path, count, error)
    assert contents(tmp_path) == {"b": b"old"}
    assert os.listdir(tmp_path) == ["b"]


def raise_when_replacing(name: str) -> Callable[[Path, Path], None]:
    replace = os.replace

    def refuse(source: Path, path: Path) -> None:
        if path.name == name:
            raise OSError(28, "No space left on device")
        replace(source, path)

    return refuse


@pytest.mark.parametrize("name", ["a", "b", "e"])
def test_failed_rename_leaves_no_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", raise_when_replacing(name))
    with pytest.raises(CannotWrite, match="No space left on device") as caught:
        write_files(tmp_path, 3)
    assert str(caught.value.place).endswith(name)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("call", ["os.fsync", "os.open", "pathlib.Path.chmod"])
def test_system_error_keeps_old_file(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "a").write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr(call, refuse)
        with pytest.raises(PermissionError), AtomicFiles() as files:
            write(files, tmp_path / "a", is_safe=True)
    assert contents(tmp_path) == {"a": b"old"}


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o755], ids=oct)
def test_keeps_permissions_of_old_file(mode: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(mode)
    with AtomicFiles() as files, files.new(tmp_path / "a") as (_, temporary):
        assert stat.S_IMODE(temporary.stat().st_mode) == mode
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="changing the owner of a file requires the superuser")
def test_keeps_owner_of_old_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    os.chown(tmp_path / "a", 1234, 1234)
    with AtomicFiles() as files:
        write(files, tmp_path / "a")
    status = (tmp_path / "a").stat()
    assert (status.st_uid, status.st_gid) == (1234, 1234)


def test_accepts_longest_file_name(tmp_path: Path) -> None:
    with AtomicFiles() as files:
        write(files, tmp_path / ("a" * 255))
    assert contents(tmp_path) == {"a" * 255: b"new"}


def test_resolves_links(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert write_destination(tmp_path / "link") == tmp_path / "a"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        pytest.param("absent/a", UsageError, id="no such folder"),
        pytest.param("absent/", UsageError, id="name of a folder"),
        pytest.param(".", UsageError, id="folder"),
        pytest.param("/dev/null", UsageError, id="device"),
        pytest.param("circle", UsageError, id="circular link"),
        pytest.param("no\0name", CannotWrite, id="null character in the name"),
        pytest.param("a" * 300, CannotWrite, id="name too long"),
    ],
)
def test_refuses_invalid_target(name: str, error: type[Exception], tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(error):
        write_destination(os.path.join(tmp_path, name))


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("has_links", [True, False])
def test_failed_rename_restores_replaced_files(
    name: str, has_links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in PATHS:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(f"old {path}".encode())
    before = contents(tmp_path)
    if not has_links:
        monkeypatch.setattr(os, "link", _no_links)
    monkeypatch.setattr(os, "replace", raise_once_when_replacing(Path(name).name))
    with pytest.raises(CannotWrite, match="No space left on device"):
        write_files(tmp_path, 3)
    assert contents(tmp_path) == before


def _no_links(*_: object, **__: object) -> None:
    raise OSError(1, "Operation not permitted")


def raise_once_when_replacing(name: str) -> Callable[[Path, Path], None]:
    replace, refuse = os.replace, raise_when_replacing(name)
    failed: list[Path] = []

    def refuse_once(source: Path, path: Path) -> None:
        if path.name == name and not failed:
            failed.append(path)
            refuse(source, path)
        replace(source, path)

    return refuse_once


@pytest.mark.parametrize("exists", [True, False])
def test_refuses_two_names_of_one_file(tmp_path: Path, exists: bool) -> None:
    folder, alias = tmp_path / "folder", tmp_path / "alias"
    folder.mkdir()
    alias.symlink_to(folder)
    if exists:
        (folder / "x").write_bytes(b"before")
    texts = dict.fromkeys((folder / "x", folder / "y", alias / "x"), "after")
    with pytest.raises(CannotWrite, match="written twice: two output names"):
        atomic_files.write_files(texts)
    assert [each.name for each in folder.iterdir()] == (["x"] if exists else [])
    assert not exists or (folder / "x").read_bytes() == b"before"


def test_replaces_a_link_to_another_new_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("x")
    with AtomicFiles() as files:
        for name in ("link", "x"):
            with files.new(tmp_path / name) as (file, _):
                os.write(file, name.encode())
    assert (tmp_path / "link").read_bytes() == b"link"
    assert (tmp_path / "x").read_bytes() == b"x"


def test_success_leaves_no_backups(tmp_path: Path) -> None:
    for _ in range(2):
        write_files(tmp_path, 3)
    assert contents(tmp_path) == dict.fromkeys(PATHS, b"new")


def test_signal_while_files_are_moved_leaves_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def interrupt(source: Path, path: Path) -> None:
        replace(source, path)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_files(tmp_path, 3)
    assert contents(tmp_path) == dict.fromkeys(PATHS, b"new")


@pytest.mark.parametrize("has_links", [True, False])
def test_new_file_replaces_no_other(has_links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_links:
        monkeypatch.setattr(os, "link", _no_links)
    with AtomicFiles() as files, files.new(tmp_path / "a", is_new=True) as (file, _):
        write_all(file, b"new")
    with pytest.raises(CannotWrite), AtomicFiles() as files:
        write(files, tmp_path / "a", b"other", is_new=True)
    assert contents(tmp_path) == {"a": b"new"}


@pytest.mark.parametrize("fails", [True, False])
def test_new_file_may_have_been_written_by_another_process(fails: bool, tmp_path: Path) -> None:
    """Such as a data file of two models that are converted at the same time; it is not removed."""
    (tmp_path / "folder").mkdir()
    with suppress(CannotWrite), AtomicFiles() as files:
        write(files, tmp_path / "folder" if fails else tmp_path / "model")
        write(files, tmp_path / "w", b"shared", is_new=True)
        (tmp_path / "w").write_bytes(b"shared")
    (tmp_path / "folder").rmdir()
    assert contents(tmp_path) == {"w": b"shared"} | ({} if fails else {"model": b"new"})


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_abandoned_files_are_removed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    names = {each: temporary_files(each).replace("*", "1") for each in (ended.pid, os.getpid(), 1)}
    for name in (*names.values(), f".opshift-{ended.pid}-elsewhere-1.tmp", "mine.tmp"):
        (tmp_path / name).touch()
    remove_abandoned_files(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {names[os.getpid()], names[1], f".opshift-{ended.pid}-elsewhere-1.tmp", "mine.tmp"}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o400, 0o644])
def test_new_file_has_mode_of_source(mode: int, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"")
    source.chmod(mode)
    with AtomicFiles() as files, files.new(tmp_path / "a", source=source) as (_, temporary):
        assert stat.S_IMODE(temporary.stat().st_mode) == mode
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode


@pytest.mark.parametrize("parts", [("..", "a"), ("b", "../../a"), ("/a",), ("link", "a")], ids=str)
def test_refuses_destination_outside_of_folder(parts: tuple[str, ...], tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(UsageError, match="is outside of the folder"):
        destination_below(folder, *parts)
    assert destination_below(folder, "b", "a") == folder / "b" / "a"
