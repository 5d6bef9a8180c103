"""Weights in files of their own are checked, and brought along without being read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import onnx
import pytest
from onnx import TensorProto
from support.weighty import PLACES, model, raw, save

from opshift.converter.errors import InvalidModel, UsageError
from opshift.converter.streaming.convert_file import convert_file
from opshift.converter.streaming.copying import copy_range
from opshift.converter.streaming.external import external_files
from opshift.registry.errors import OpshiftError

DATA = os.urandom(4096)


def outside(location: str = "w.bin", name: str = "w", **stated: str) -> TensorProto:
    """A tensor of 64 floats that are in another file."""
    found = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[64], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **stated}.items():
        found.external_data.add(key=key, value=value)
    return found


def found_in(*tensors: TensorProto) -> dict[str, int]:
    return dict(external_files(model(initializers=[*tensors]).SerializeToString(), "model.onnx"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """`in/model.onnx` with weights in `in/w.bin` and `in/deep/v.bin`; `out` is empty."""
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    tensors = [outside("w.bin", "w", offset="1024", length="256"), outside("deep/v.bin", "v")]
    save(model(initializers=tensors), tmp_path / "in" / "model.onnx")
    (tmp_path / "in" / "w.bin").write_bytes(DATA)
    (tmp_path / "in" / "deep" / "v.bin").write_bytes(DATA[:256])
    return tmp_path


def files(folder: Path) -> list[str]:
    return sorted(each.relative_to(folder).as_posix() for each in folder.rglob("*") if not each.is_dir())


@pytest.mark.parametrize("place", PLACES)
def test_files_are_found_wherever_a_tensor_may_be(place: str) -> None:
    found = PLACES[place](outside())
    assert external_files(found.SerializeToString(), "") == {"w.bin": 256}


@pytest.mark.parametrize(
    ("stated", "end"),
    [
        pytest.param({}, 256, id="by the shape"),
        pytest.param({"offset": "1024"}, 1280, id="by offset and shape"),
        pytest.param({"length": "100"}, 100, id="by the length"),
        pytest.param({"offset": "1024", "length": "100"}, 1124, id="by offset and length"),
        pytest.param({"offset": "", "checksum": "x"}, 256, id="nothing stated in the end"),
    ],
)
def test_the_least_size_is_told(stated: dict[str, str], end: int) -> None:
    assert found_in(outside(**stated)) == {"w.bin": end}


def test_of_tensors_in_one_file_the_last_one_counts() -> None:
    ends = [outside(name=str(offset), offset=str(offset)) for offset in (0, 512, 256)]
    assert found_in(*ends) == {"w.bin": 768}


def test_what_only_looks_like_it_is_none() -> None:
    inside = raw()
    inside.external_data.add(key="location", value="w.bin")
    nameless = outside()
    del nameless.external_data[:]
    assert found_in(inside, nameless, raw("location")) == {}


@pytest.mark.parametrize(
    "location",
    ["/etc/passwd", "../w.bin", "deep/../../w.bin", "", ".", "..\\w.bin", "\\w.bin", "a\0b"],
)
def test_files_out_of_the_folder_are_refused(location: str) -> None:
    with pytest.raises(InvalidModel, match="outside the model's folder") as caught:
        found_in(outside(location))
    assert str(caught.value.place) == "model.onnx"


@pytest.mark.parametrize("stated", ["-1", "1.5", "many", "٣", "9" * 30])
def test_a_position_that_is_no_number_is_told(stated: str) -> None:
    with pytest.raises(InvalidModel, match="has external data with the offset"):
        found_in(outside(offset=stated))


def test_a_name_that_is_no_text_is_told() -> None:
    data = model(initializers=[outside("PLACE")]).SerializeToString().replace(b"PLACE", b"\xff\xfeACE")
    with pytest.raises(InvalidModel, match="not UTF-8"):
        external_files(data, "")


@pytest.mark.parametrize(("external", "links"), [("copy", 1), ("link", 2)])
def test_files_are_brought_to_another_folder(
    external: Literal["copy", "link"], links: int, folder: Path
) -> None:
    convert_file(folder / "in/model.onnx", folder / "out/new.onnx", 17, external=external)
    assert files(folder / "out") == ["deep/v.bin", "new.onnx", "w.bin"]
    assert (folder / "out/w.bin").read_bytes() == DATA
    assert (folder / "out/w.bin").stat().st_nlink == links


def test_files_are_kept(folder: Path) -> None:
    (folder / "in/w.bin").unlink()
    convert_file(folder / "in/model.onnx", folder / "out/new.onnx", 17, external="keep")
    assert files(folder / "out") == ["new.onnx"]


@pytest.mark.parametrize("out", ["in/new.onnx", "in/model.onnx", "same/new.onnx"])
def test_in_the_same_folder_they_are_left_alone(out: str, folder: Path) -> None:
    (folder / "same").symlink_to(folder / "in")
    before = (folder / "in/w.bin").stat()
    convert_file(folder / "in/model.onnx", folder / out, 17)
    assert (folder / "in/w.bin").stat() == before


def test_a_link_to_the_output_is_in_the_folder_that_counts(folder: Path) -> None:
    (folder / "out/link.onnx").symlink_to(folder / "in/real.onnx")
    convert_file(folder / "in/model.onnx", folder / "out/link.onnx", 17)
    assert files(folder / "out") == ["deep/v.bin", "link.onnx", "w.bin"]


def drop(folder: Path) -> None:
    (folder / "in/w.bin").unlink()


def shorten(folder: Path) -> None:
    os.truncate(folder / "in/w.bin", 1279)


def make_folder(folder: Path) -> None:
    drop(folder)
    (folder / "in/w.bin").mkdir()


def link_out(folder: Path) -> None:
    (folder / "in/w.bin").rename(folder / "w.bin")
    (folder / "in/w.bin").symlink_to(folder / "w.bin")


def link_folder_out(folder: Path) -> None:
    (folder / "in/deep").rename(folder / "deep")
    (folder / "in/deep").symlink_to(folder / "deep")


def occupy(folder: Path) -> None:
    (folder / "out/w.bin").write_bytes(b"mine")


def occupy_alike(folder: Path) -> None:
    (folder / "out/w.bin").write_bytes(DATA[:-1] + bytes([DATA[-1] ^ 1]))


def occupy_by_folder(folder: Path) -> None:
    (folder / "out/w.bin").mkdir()


def lead_away(folder: Path) -> None:
    (folder / "away").mkdir()
    (folder / "out/deep").symlink_to(folder / "away")


def name_at_length(folder: Path) -> None:
    save(model(initializers=[outside("w" * 300)]), folder / "in/model.onnx")


REFUSED = {
    "a name that is too long": (name_at_length, InvalidModel, "cannot be read: File name too long"),
    "a file that is not there": (drop, InvalidModel, "not an existing file"),
    "a file that is too short": (shorten, InvalidModel, "has 1,279 bytes, but .* end at byte 1,280"),
    "a folder": (make_folder, InvalidModel, "not an existing file"),
    "a link out of the folder": (link_out, InvalidModel, "a link to a file outside"),
    "a folder that is a link out of the folder": (link_folder_out, InvalidModel, "a link to a file outside"),
    "another file in the place": (occupy, UsageError, "already exists"),
    "another file of that size in the place": (occupy_alike, UsageError, "already exists"),
    "a folder in the place": (occupy_by_folder, UsageError, "not a regular file"),
    "a link out of the folder in the place": (lead_away, UsageError, "not a regular file"),
}


@pytest.mark.parametrize("title", REFUSED)
def test_nothing_is_written_for(title: str, folder: Path) -> None:
    prepare, error, reason = REFUSED[title]
    prepare(folder)
    before = files(folder)
    with pytest.raises(error, match=reason) as caught:
        convert_file(folder / "in/model.onnx", folder / "out/new.onnx", 17)
    assert caught.value.remedy
    assert files(folder) == before


def test_a_link_within_the_folder_is_followed(folder: Path) -> None:
    (folder / "in/w.bin").rename(folder / "in/deep/w")
    (folder / "in/w.bin").symlink_to("deep/w")
    convert_file(folder / "in/model.onnx", folder / "out/new.onnx", 17)
    assert not (folder / "out/w.bin").is_symlink()
    assert (folder / "out/w.bin").read_bytes() == DATA


def test_the_same_file_may_be_there(folder: Path) -> None:
    (folder / "out/w.bin").write_bytes(DATA)
    before = (folder / "out/w.bin").stat()
    convert_file(folder / "in/model.onnx", folder / "out/new.onnx", 17)
    assert (folder / "out/w.bin").stat() == before


def test_another_file_is_replaced_if_wanted(folder: Path) -> None:
    occupy(folder)
    convert_file(folder / "in/model.onnx", folder / "out/new.onnx", 17, force=True)
    assert (folder / "out/w.bin").read_bytes() == DATA


@pytest.mark.parametrize("out", ["in/w.bin", "out/w.bin", "in/deep/v.bin"])
def test_the_output_is_none_of_them(out: str, folder: Path) -> None:
    before = files(folder)
    with pytest.raises(UsageError, match="weights of the"):
        convert_file(folder / "in/model.onnx", folder / out, 17)
    assert files(folder) == before
    assert (folder / "in/w.bin").read_bytes() == DATA


@pytest.mark.parametrize("call", ["os.replace", "os.link", "os.mkdir"])
def test_a_failure_on_the_way_leaves_nothing(
    call: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    before = files(folder)
    with monkeypatch.context() as patch:
        patch.setattr(call, refuse)
        with pytest.raises(OpshiftError, match="Invalid cross-device link"):
            convert_file(folder / "in/model.onnx", folder / "out/new.onnx", 17, external="link")
    assert files(folder) == before
    assert os.listdir(folder / "out") == []


def test_a_file_that_changes_meanwhile_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def meddling(*arguments: Any) -> None:
        copy_range(*arguments)
        os.utime(folder / "in/w.bin", (1, 1))

    monkeypatch.setattr("opshift.converter.streaming.external.copy_range", meddling)
    with pytest.raises(InvalidModel, match=r"w\.bin: changed while it was read"):
        convert_file(folder / "in/model.onnx", folder / "out/new.onnx", 17)
    assert os.listdir(folder / "out") == []


def test_a_model_that_was_brought_is_read(folder: Path) -> None:
    convert_file(folder / "in/model.onnx", folder / "out/new.onnx", 17)
    found = onnx.load(folder / "out/new.onnx")
    assert found.graph.initializer[0].raw_data == DATA[1024:1280]
