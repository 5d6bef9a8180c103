"""Models that a command line names."""

import io
from pathlib import Path

import pytest

from opshift.model.errors import UsageError
from opshift.stores.find_models import FoundModel, find_models

FILES = ("b.onnx", "a/model.onnx", "a/readme.md", "a/deep/er/x.onnx", "a.onnx", "c/model.onnx")


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in FILES:
        path = tmp_path / "zoo" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "zoo"


def relative(*names: str) -> list[str]:
    return [each.relative for each in find_models(names)]


def test_lists_folders_in_the_order_of_paths(zoo: Path) -> None:
    found = ["a/deep/er/x.onnx", "a/model.onnx", "a.onnx", "b.onnx", "c/model.onnx"]
    assert relative("zoo") == relative("zoo/") == relative(str(zoo)) == found
    assert relative("zoo") == [path.relative_to(zoo).as_posix() for path in sorted(zoo.rglob("*.onnx"))]
    assert next(find_models([str(zoo)])).location == str(zoo / "a/deep/er/x.onnx")
    assert next(find_models(["zoo"])).location == str(Path("zoo/a/deep/er/x.onnx"))


def test_takes_a_named_file_whatever_its_name(zoo: Path) -> None:
    assert list(find_models(["zoo/a/readme.md"])) == [FoundModel("zoo/a/readme.md", "readme.md")]


def test_uses_another_pattern(zoo: Path) -> None:
    assert [each.relative for each in find_models(["zoo"], "*.md")] == ["a/readme.md"]


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("zoo/*.onnx", ["a.onnx", "b.onnx"]),
        ("zoo/*/*.onnx", ["a/model.onnx", "c/model.onnx"]),
        ("zoo/**/*.onnx", ["a/deep/er/x.onnx", "a/model.onnx", "a.onnx", "b.onnx", "c/model.onnx"]),
        ("zoo/**/model.*", ["a/model.onnx", "c/model.onnx"]),
        ("zoo/a/**", ["deep/er/x.onnx", "model.onnx", "readme.md"]),
        ("zoo/a/**/er/*.onnx", ["deep/er/x.onnx"]),
        ("z*/[bc].onnx", ["zoo/b.onnx"]),
        ("zoo/?/m*.onnx", ["a/model.onnx", "c/model.onnx"]),
    ],
)
def test_expands_globs(zoo: Path, glob: str, found: list[str]) -> None:
    assert relative(glob) == found
    assert relative(str(zoo.parent / glob)) == found


def test_reads_names_with_wildcards_of_existing_files(zoo: Path) -> None:
    (zoo / "b[1].onnx").touch()
    assert relative("zoo/b[1].onnx") == ["b[1].onnx"]


def test_reads_a_list_line_by_line(zoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = f"zoo/a/model.onnx\n\nzoo/c/model.onnx\r\n{zoo}/b.onnx\n../lost.onnx\nzoo/a\n"
    stdin = io.StringIO(listed)
    monkeypatch.setattr("sys.stdin", stdin)
    found = find_models(["zoo/b.onnx", "-"])
    assert next(found) == FoundModel("zoo/b.onnx", "b.onnx")
    assert stdin.tell() == 0
    lost = (zoo.parent.parent / "lost.onnx").as_posix()
    assert list(found) == [
        FoundModel("zoo/a/model.onnx", "zoo/a/model.onnx"),
        FoundModel("zoo/c/model.onnx", "zoo/c/model.onnx"),
        FoundModel(f"{zoo}/b.onnx", f"{zoo.as_posix()}/b.onnx".lstrip("/")),
        FoundModel("../lost.onnx", lost.lstrip("/")),
        FoundModel(str(Path("zoo/a/deep/er/x.onnx")), "deep/er/x.onnx"),
        FoundModel(str(Path("zoo/a/model.onnx")), "model.onnx"),
    ]


def test_lists_folders_lazily(zoo: Path) -> None:
    found = find_models(["zoo"])
    next(found)
    (zoo / "c" / "later.onnx").touch()
    assert FoundModel(str(Path("zoo/c/later.onnx")), "c/later.onnx") in list(found)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing.onnx", "file does not exist"),
        ("zoo/nothing*.onnx", "matches no files"),
        ("nowhere/*.onnx", "cannot be listed"),
        ("empty", r"contains no \*.onnx files"),
    ],
)
def test_refuses_names_without_models(zoo: Path, name: str, reason: str) -> None:
    (zoo.parent / "empty").mkdir()
    with pytest.raises(UsageError, match=reason) as raised:
        list(find_models([name]))
    assert raised.value.remedy


@pytest.mark.parametrize("name", ["zoo/nothing*.onnx", "nowhere/*.onnx", "*.nothing", "empty"])
def test_accepts_names_without_models_on_request(zoo: Path, name: str) -> None:
    (zoo.parent / "empty").mkdir()
    assert list(find_models([name], allow_empty=True)) == []


def test_refuses_a_missing_file_before_any_model_is_found(zoo: Path) -> None:
    with pytest.raises(UsageError, match="file does not exist"):
        find_models(["zoo", "missing.onnx"])


def test_leaves_unreachable_files_to_their_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(path: str, **_: object) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("os.stat", forbidden)
    assert list(find_models(["private/a.onnx"])) == [FoundModel("private/a.onnx", "a.onnx")]


def test_does_not_follow_links_to_folders(zoo: Path) -> None:
    (zoo / "a" / "loop").symlink_to(zoo)
    (zoo / "d.onnx").symlink_to(zoo / "b.onnx")
    assert relative("zoo") == [
        "a/deep/er/x.onnx",
        "a/model.onnx",
        "a.onnx",
        "b.onnx",
        "c/model.onnx",
        "d.onnx",
    ]
