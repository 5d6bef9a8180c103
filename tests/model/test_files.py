"""Model files are read with clear errors and written atomically."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.execution import build

from opshift.model.errors import CannotWrite, InvalidModel, UsageError
from opshift.model.files import read_bytes, read_model, write_model
from opshift.model.messages import EncodeError, ModelProto


def model(name: str = "y") -> ModelProto:
    proto = build([helper.make_node("Relu", ["x"], [name])], {"x": np.ones(2, np.float32)}, [name], 13)
    return ModelProto.FromString(proto.SerializeToString())


@pytest.mark.parametrize("path_type", [Path, str], ids=["Path", "str"])
def test_reads_written_models(path_type: type[Path] | type[str], tmp_path: Path) -> None:
    path = path_type(tmp_path / "model.onnx")
    write_model(model(), path)
    assert read_model(path) == model()
    assert onnx.load(tmp_path / "model.onnx").SerializeToString() == model().SerializeToString()


def test_leaves_no_temporary_files(tmp_path: Path) -> None:
    write_model(model(), tmp_path / "model.onnx")
    write_model(model("z"), tmp_path / "model.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


def test_writes_onnx_models(tmp_path: Path) -> None:
    theirs = onnx.ModelProto.FromString(model().SerializeToString())
    write_model(theirs, tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").read_bytes() == theirs.SerializeToString()


def raise_no_space(*_: Any, **__: Any) -> None:
    raise OSError(28, "No space left on device")


def raise_interrupt(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("call", ["os.fsync", "os.write", "os.replace", "pathlib.Path.chmod"])
@pytest.mark.parametrize(
    ("failure", "error"),
    [(raise_no_space, CannotWrite), (raise_interrupt, KeyboardInterrupt)],
    ids=["failure", "interruption"],
)
def test_failed_write_keeps_the_old_file(
    call: str,
    failure: Callable[..., None],
    error: type[BaseException],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "model.onnx"
    write_model(model(), path)
    with monkeypatch.context() as patch:
        patch.setattr(call, failure)
        with pytest.raises(error):
            write_model(model("z"), path)
    assert read_model(path) == model()
    assert [each.name for each in tmp_path.iterdir()] == ["model.onnx"]


def test_failed_write_leaves_no_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", raise_no_space)
    with pytest.raises(CannotWrite) as caught:
        write_model(model(), tmp_path / "model.onnx")
    assert "No space left" in caught.value.reason
    assert "model.onnx" in str(caught.value.place)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o755], ids=oct)
def test_keeps_permissions_of_the_old_file(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    write_model(model(), path)
    path.chmod(mode)
    write_model(model("z"), path)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077], ids=oct)
def test_new_file_respects_the_umask(mask: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        write_model(model(), tmp_path / "model.onnx")
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "model.onnx").stat().st_mode) == 0o666 & ~mask


def test_writes_through_symbolic_links(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "model.onnx", tmp_path / "link.onnx"
    write_model(model(), target)
    link.symlink_to(target)
    write_model(model("z"), link)
    assert link.is_symlink()
    assert read_model(target) == model("z")


@pytest.mark.parametrize(
    "name",
    ["absent/model.onnx", ".", "no\0name", "a" * 300],
    ids=["missing folder", "folder", "null character in the name", "name too long"],
)
def test_refuses_invalid_output_paths(name: str, tmp_path: Path) -> None:
    with pytest.raises((CannotWrite, UsageError)) as caught:
        write_model(model(), tmp_path / name)
    assert caught.value.reason
    assert list(tmp_path.iterdir()) == []


def test_refuses_to_replace_a_device() -> None:
    with pytest.raises(UsageError):
        write_model(model(), Path(os.devnull))
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize(
    ("name", "reason"),
    [("absent.onnx", "cannot be read"), (".", "is a folder"), ("no\0name", "cannot be read")],
    ids=["missing file", "folder", "null character in the name"],
)
def test_refuses_unreadable_paths(name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match=reason):
        read_model(tmp_path / name)


def test_refuses_to_read_models_above_2_gib(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    write_model(model(), path)
    os.truncate(path, 2**31)
    with pytest.raises(InvalidModel, match="larger than 2 GiB") as caught:
        read_model(path)
    assert "convert_file" in caught.value.remedy


def test_refuses_to_write_models_above_2_gib(tmp_path: Path) -> None:
    class Large:
        graph = opset_import = None

        def SerializeToString(self) -> bytes:  # noqa: N802 - the name in protobuf
            raise EncodeError("Failed to serialize proto")

    large: Any = Large()
    with pytest.raises(CannotWrite, match="larger than 2 GiB") as caught:
        write_model(large, tmp_path / "model.onnx")
    assert "convert_file" in caught.value.remedy
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "data", [b"", b"text", model().SerializeToString()[:-1]], ids=["empty", "text", "truncated"]
)
def test_refuses_files_that_are_not_models(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    with pytest.raises(InvalidModel) as caught:
        read_model(path)
    assert str(caught.value).startswith(str(path))
    assert caught.value.remedy
    with pytest.raises(InvalidModel):
        read_bytes(data)
