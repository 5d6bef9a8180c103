"""New files take their places together, or none does."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from opshift.converter.errors import CannotWrite, UsageError
from opshift.converter.streaming.replacing import Replacing, place_of, write_all


def write(files: Replacing, place: Path, data: bytes = b"new", *, is_safe: bool = False) -> Path:
    with files.new(place, is_safe=is_safe) as (file, temporary):
        write_all(file, data)
    return temporary


PLACES = ("b", "a", "c/d/e")


def write_to(folder: Path, count: int, error: type[BaseException] | None = None) -> None:
    """Write some files together, and then fail."""
    with Replacing() as files:
        for place in PLACES[:count]:
            write(files, folder / place)
        if error is not None:
            raise error


def contents(folder: Path) -> dict[str, bytes]:
    return {
        each.relative_to(folder).as_posix(): each.read_bytes() for each in folder.rglob("*") if each.is_file()
    }


def test_files_get_to_their_places_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"old")
    with Replacing() as files:
        first = write(files, tmp_path / "a")
        write(files, tmp_path / "b", is_safe=True)
        write(files, tmp_path / "c" / "d" / "e")
        files.link(first, tmp_path / "f")
        assert first.read_bytes() == b"new"
        assert (tmp_path / "b").read_bytes() == b"old"
        assert not (tmp_path / "a").exists()
    assert contents(tmp_path) == dict.fromkeys(["a", "b", "c/d/e", "f"], b"new")


def test_the_first_one_is_placed_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = []
    replace = os.replace

    def noted(source: Path, place: Path) -> None:
        order.append(place.name)
        replace(source, place)

    monkeypatch.setattr(os, "replace", noted)
    with Replacing() as files:
        for name in "abc":
            write(files, tmp_path / name)
    assert order == ["c", "b", "a"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt], ids=["failure", "interruption"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_nothing_is_left_behind_after_an_error(
    error: type[BaseException], count: int, tmp_path: Path
) -> None:
    (tmp_path / "b").write_bytes(b"old")
    with pytest.raises(error):
        write_to(tmp_path, count, error)
    assert contents(tmp_path) == {"b": b"old"}
    assert os.listdir(tmp_path) == ["b"]


def failing_at(name: str) -> Callable[[Path, Path], None]:
    replace = os.replace

    def refuse(source: Path, place: Path) -> None:
        if place.name == name:
            raise OSError(28, "No space left on device")
        replace(source, place)

    return refuse


@pytest.mark.parametrize("name", ["a", "b", "e"])
def test_none_gets_to_its_place_if_one_does_not(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "replace", failing_at(name))
    with pytest.raises(CannotWrite, match="No space left on device") as caught:
        write_to(tmp_path, 3)
    assert str(caught.value.place).endswith(name)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("call", ["os.fsync", "os.open", "pathlib.Path.chmod"])
def test_an_error_of_the_system_leaves_the_old_file(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "a").write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr(call, refuse)
        with pytest.raises(PermissionError), Replacing() as files:
            write(files, tmp_path / "a", is_safe=True)
    assert contents(tmp_path) == {"a": b"old"}


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o755], ids=oct)
def test_permissions_of_the_old_file_are_kept_from_the_start(mode: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(mode)
    with Replacing() as files, files.new(tmp_path / "a") as (_, temporary):
        assert stat.S_IMODE(temporary.stat().st_mode) == mode
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser gives files away")
def test_the_owner_of_the_old_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    os.chown(tmp_path / "a", 1234, 1234)
    with Replacing() as files:
        write(files, tmp_path / "a")
    found = (tmp_path / "a").stat()
    assert (found.st_uid, found.st_gid) == (1234, 1234)


def test_a_name_may_be_as_long_as_any(tmp_path: Path) -> None:
    with Replacing() as files:
        write(files, tmp_path / ("a" * 255))
    assert contents(tmp_path) == {"a" * 255: b"new"}


def test_a_place_is_where_links_lead(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert place_of(tmp_path / "link") == tmp_path / "a"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        pytest.param("absent/a", UsageError, id="no such folder"),
        pytest.param(".", UsageError, id="a folder"),
        pytest.param("/dev/null", UsageError, id="a device"),
        pytest.param("circle", UsageError, id="a link in a circle"),
        pytest.param("no\0name", CannotWrite, id="a null character in the name"),
        pytest.param("a" * 300, CannotWrite, id="a name too long"),
    ],
)
def test_there_is_no_place_at(name: str, error: type[Exception], tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(error):
        place_of(tmp_path / name)
