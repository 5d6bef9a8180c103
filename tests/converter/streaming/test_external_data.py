"""External data files are checked and transferred with the model, without loading them."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

import onnx
import pytest
from onnx import TensorProto
from support.large_models import LOCATIONS, model, raw, save

from opshift.converter.convert import convert_with
from opshift.converter.options import Options
from opshift.converter.report import Report
from opshift.converter.streaming.convert_file import convert_file, converting
from opshift.converter.streaming.copy_ranges import copy_range
from opshift.converter.streaming.external_data import external_files
from opshift.model.errors import InvalidModel, OpshiftError, UsageError
from opshift.model.messages import ModelProto
from opshift.model.progress import Progress

DATA = os.urandom(4096)


def external_tensor(location: str = "w.bin", name: str = "w", **entries: str) -> TensorProto:
    """Return a tensor of 64 floats stored in an external file."""
    tensor = TensorProto(
        name=name, data_type=TensorProto.FLOAT, dims=[64], data_location=TensorProto.EXTERNAL
    )
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def external_files_of(*tensors: TensorProto) -> dict[str, int]:
    return dict(external_files(model(initializers=[*tensors]).SerializeToString(), "model.onnx"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write `in/model.onnx` with weights in `in/w.bin` and `in/deep/v.bin`; `out` is empty."""
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    tensors = [external_tensor("w.bin", "w", offset="1024", length="256"), external_tensor("deep/v.bin", "v")]
    save(model(initializers=tensors), tmp_path / "in" / "model.onnx")
    (tmp_path / "in" / "w.bin").write_bytes(DATA)
    (tmp_path / "in" / "deep" / "v.bin").write_bytes(DATA[:256])
    return tmp_path


def files(folder: Path) -> list[str]:
    return sorted(each.relative_to(folder).as_posix() for each in folder.rglob("*") if not each.is_dir())


@pytest.mark.parametrize("place", LOCATIONS)
def test_finds_files_of_all_tensors(place: str) -> None:
    converted = LOCATIONS[place](external_tensor())
    assert external_files(converted.SerializeToString(), "") == {"w.bin": 256}


@pytest.mark.parametrize(
    ("entries", "end"),
    [
        pytest.param({}, 256, id="shape only"),
        pytest.param({"offset": "1024"}, 1280, id="offset and shape"),
        pytest.param({"length": "100"}, 100, id="length"),
        pytest.param({"offset": "1024", "length": "100"}, 1124, id="offset and length"),
        pytest.param({"offset": "", "checksum": "x"}, 256, id="empty offset and checksum"),
    ],
)
def test_computes_minimum_size(entries: dict[str, str], end: int) -> None:
    assert external_files_of(external_tensor(**entries)) == {"w.bin": end}


def test_minimum_size_covers_all_tensors_in_file() -> None:
    ends = [external_tensor(name=str(offset), offset=str(offset)) for offset in (0, 512, 256)]
    assert external_files_of(*ends) == {"w.bin": 768}


@pytest.mark.parametrize("location", ["./deep/v.bin", "deep//v.bin", "deep/./v.bin"])
def test_spellings_of_one_file_are_equal(location: str) -> None:
    tensors = external_tensor("deep/v.bin"), external_tensor(location, "v", offset="512")
    for order in (tensors, tensors[::-1]):
        assert external_files_of(*order) == {"deep/v.bin": 768}


def test_ignores_tensors_without_external_data() -> None:
    inside = raw()
    inside.external_data.add(key="location", value="w.bin")
    nameless = external_tensor()
    del nameless.external_data[:]
    assert external_files_of(inside, nameless, raw("location")) == {}


@pytest.mark.parametrize(
    "location",
    ["/etc/passwd", "../w.bin", "deep/../../w.bin", "deep/../w.bin", "", ".", "..\\w.bin", "\\w.bin", "a\0b"],
)
def test_refuses_files_outside_model_folder(location: str) -> None:
    with pytest.raises(InvalidModel, match="outside the model's folder") as caught:
        external_files_of(external_tensor(location))
    assert str(caught.value.place) == "model.onnx"


@pytest.mark.parametrize("offset", ["-1", "1.5", "many", "٣", "9" * 30])
def test_refuses_invalid_offset(offset: str) -> None:
    with pytest.raises(InvalidModel, match="has external data with the offset"):
        external_files_of(external_tensor(offset=offset))


def test_refuses_location_that_is_not_utf_8() -> None:
    data = (
        model(initializers=[external_tensor("PLACE")]).SerializeToString().replace(b"PLACE", b"\xff\xfeACE")
    )
    with pytest.raises(InvalidModel, match="not UTF-8"):
        external_files(data, "")


@pytest.mark.parametrize(("external", "links"), [("copy", 1), ("link", 2)])
def test_transfers_files_to_output_folder(
    external: Literal["copy", "link"], links: int, folder: Path
) -> None:
    convert_file(folder / "in/model.onnx", folder / "out/new.onnx", 17, external=external)
    assert files(folder / "out") == ["deep/v.bin", "new.onnx", "w.bin"]
    assert (folder / "out/w.bin").read_bytes() == DATA
    assert (folder / "out/w.bin").stat().st_nlink == links


@pytest.mark.parametrize("external", ["copy", "link"])
def test_transfers_file_with_two_spellings_once(external: Literal["copy", "link"], folder: Path) -> None:
    tensors = [external_tensor("w.bin"), external_tensor("./w.bin", "v", offset="256")]
    save(model(initializers=tensors), folder / "in/model.onnx")
    convert_file(folder / "in/model.onnx", folder / "out/new.onnx", 17, external=external)
    assert files(folder / "out") == ["new.onnx", "w.bin"]
    assert (folder / "out/w.bin").read_bytes() == DATA


@pytest.mark.parametrize("external", ["copy", "link", "keep"])
def test_refuses_output_with_the_name_of_a_data_file(
    external: Literal["copy", "link", "keep"], folder: Path
) -> None:
    """The result would read its own file as weights."""
    with pytest.raises(UsageError, match="is also the path of a file with weights"):
        convert_file(folder / "in/model.onnx", folder / "out/w.bin", 17, external=external)
    assert files(folder / "out") == []


def test_keep_writes_only_model(folder: Path) -> None:
    (folder / "in/w.bin").unlink()
    convert_file(folder / "in/model.onnx", folder / "out/new.onnx", 17, external="keep")
    assert files(folder / "out") == ["new.onnx"]


@pytest.mark.parametrize("out", ["in/new.onnx", "in/model.onnx", "same/new.onnx"])
def test_leaves_files_in_same_folder_unchanged(out: str, folder: Path) -> None:
    (folder / "same").symlink_to(folder / "in")
    before = (folder / "in/w.bin").stat()
    convert_file(folder / "in/model.onnx", folder / out, 17)
    assert (folder / "in/w.bin").stat() == before


def test_uses_folder_of_link_to_output(folder: Path) -> None:
    (folder / "out/link.onnx").symlink_to(folder / "in/real.onnx")
    convert_file(folder / "in/model.onnx", folder / "out/link.onnx", 17)
    assert files(folder / "out") == ["deep/v.bin", "link.onnx", "w.bin"]


def remove_weights(folder: Path) -> None:
    (folder / "in/w.bin").unlink()


def truncate_weights(folder: Path) -> None:
    os.truncate(folder / "in/w.bin", 1279)


def replace_with_folder(folder: Path) -> None:
    remove_weights(folder)
    (folder / "in/w.bin").mkdir()


def link_outside(folder: Path) -> None:
    (folder / "in/w.bin").rename(folder / "w.bin")
    (folder / "in/w.bin").symlink_to(folder / "w.bin")


def link_folder_outside(folder: Path) -> None:
    (folder / "in/deep").rename(folder / "deep")
    (folder / "in/deep").symlink_to(folder / "deep")


def write_other_file(folder: Path) -> None:
    (folder / "out/w.bin").write_bytes(b"mine")


def point_to_weights(folder: Path) -> None:
    (folder / "in/w.bin").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:4bcd\nsize 1280\n"
    )


def occupy_with_equal_size(folder: Path) -> None:
    (folder / "out/w.bin").write_bytes(DATA[:-1] + bytes([DATA[-1] ^ 1]))


def occupy_with_folder(folder: Path) -> None:
    (folder / "out/w.bin").mkdir()


def link_target_folder_out(folder: Path) -> None:
    (folder / "away").mkdir()
    (folder / "out/deep").symlink_to(folder / "away")


def use_long_name(folder: Path) -> None:
    save(model(initializers=[external_tensor("w" * 300)]), folder / "in/model.onnx")


REFUSED = {
    "file name too long": (use_long_name, InvalidModel, "cannot be read: File name too long"),
    "missing file": (remove_weights, InvalidModel, "not an existing file"),
    "pointer of Git LFS": (point_to_weights, InvalidModel, "end at byte 1,280: it is a Git LFS pointer"),
    "truncated file": (truncate_weights, InvalidModel, "has 1,279 bytes, but .* end at byte 1,280"),
    "folder instead of a file": (replace_with_folder, InvalidModel, "not an existing file"),
    "link out of the folder": (link_outside, InvalidModel, "a link to a file outside"),
    "folder that links out of the folder": (link_folder_outside, InvalidModel, "a link to a file outside"),
    "different file at the target": (write_other_file, UsageError, "already exists"),
    "different file of equal size at the target": (occupy_with_equal_size, UsageError, "already exists"),
    "folder at the target": (occupy_with_folder, UsageError, "must be a regular file"),
    "link out of the folder at the target": (link_target_folder_out, UsageError, "must be a regular file"),
}


@pytest.mark.parametrize("case_id", REFUSED)
def test_writes_nothing_for(case_id: str, folder: Path) -> None:
    prepare, error, reason = REFUSED[case_id]
    prepare(folder)
    before = files(folder)
    with pytest.raises(error, match=reason) as caught:
        convert_file(folder / "in/model.onnx", folder / "out/new.onnx", 17)
    assert caught.value.remedy
    assert files(folder) == before


def test_follows_link_inside_folder(folder: Path) -> None:
    (folder / "in/w.bin").rename(folder / "in/deep/w")
    (folder / "in/w.bin").symlink_to("deep/w")
    convert_file(folder / "in/model.onnx", folder / "out/new.onnx", 17)
    assert not (folder / "out/w.bin").is_symlink()
    assert (folder / "out/w.bin").read_bytes() == DATA


def test_accepts_existing_equal_file(folder: Path) -> None:
    (folder / "out/w.bin").write_bytes(DATA)
    before = (folder / "out/w.bin").stat()
    convert_file(folder / "in/model.onnx", folder / "out/new.onnx", 17)
    assert (folder / "out/w.bin").stat() == before


def test_force_replaces_different_file(folder: Path) -> None:
    write_other_file(folder)
    convert_file(folder / "in/model.onnx", folder / "out/new.onnx", 17, force=True)
    assert (folder / "out/w.bin").read_bytes() == DATA


@pytest.mark.parametrize("force", [True, False])
def test_compares_weights_of_unchanged_size_and_time(force: bool, folder: Path) -> None:
    weights, out = folder / "in/w.bin", folder / "out/new.onnx"
    before = weights.stat()
    for _ in range(2):  # the second conversion compares the equal files
        convert_file(folder / "in/model.onnx", out, 17)
    weights.write_bytes(DATA[::-1])
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))
    with nullcontext() if force else pytest.raises(UsageError, match="already exists"):
        convert_file(folder / "in/model.onnx", out, 17, force=force)
    expected = DATA[::-1] if force else DATA
    assert onnx.load(out).graph.initializer[0].raw_data == expected[1024:1280]


@pytest.mark.parametrize("out", ["in/w.bin", "out/w.bin", "in/deep/v.bin"])
def test_refuses_to_overwrite_weights_with_model(out: str, folder: Path) -> None:
    before = files(folder)
    with pytest.raises(UsageError, match="weights of the"):
        convert_file(folder / "in/model.onnx", folder / out, 17)
    assert files(folder) == before
    assert (folder / "in/w.bin").read_bytes() == DATA


@pytest.mark.parametrize("call", ["os.replace", "os.link", "os.mkdir"])
def test_failure_leaves_no_files(call: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    before = files(folder)
    with monkeypatch.context() as patch:
        patch.setattr(call, refuse)
        with pytest.raises(OpshiftError, match="Invalid cross-device link"):
            convert_file(folder / "in/model.onnx", folder / "out/new.onnx", 17, external="link")
    assert files(folder) == before
    assert os.listdir(folder / "out") == []


def test_refuses_weights_that_change_during_copy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def change_and_copy(*arguments: Any) -> None:
        copy_range(*arguments)
        os.utime(folder / "in/w.bin", (1, 1))

    monkeypatch.setattr("opshift.converter.streaming.external_data.copy_range", change_and_copy)
    with pytest.raises(InvalidModel, match=r"w\.bin: changed while it was read"):
        convert_file(folder / "in/model.onnx", folder / "out/new.onnx", 17)
    assert os.listdir(folder / "out") == []


def test_transferred_model_can_be_loaded(folder: Path) -> None:
    convert_file(folder / "in/model.onnx", folder / "out/new.onnx", 17)
    converted = onnx.load(folder / "out/new.onnx")
    assert converted.graph.initializer[0].raw_data == DATA[1024:1280]


def test_progress_counts_the_bytes_of_all_weights(folder: Path) -> None:
    weights = [external_tensor("w.bin", "w"), external_tensor("deep/v.bin", "v"), raw("inside", DATA)]
    save(model(initializers=weights), folder / "in" / "model.onnx")
    (folder / "in" / "w.bin").write_bytes(DATA[:256])
    progress = Progress()

    def convert_in_place(loaded: ModelProto) -> Report:
        return Report.of(convert_with(loaded, Options.of(17, inplace=True))[1])

    with converting(
        folder / "in" / "model.onnx", folder / "out" / "model.onnx", convert_in_place, progress=progress
    ):
        pass
    assert progress.done == progress.total == 256 + 256 + len(DATA)
