"""A file is converted as the model in it is, and written whole or not at all."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import helper
from support.ir_models import MODELS
from support.weighty import PLACES, RAW, TENSORS, held, model, raw, save

from opshift.converter.convert import convert_version
from opshift.converter.errors import CannotWrite, ConversionRefused, InvalidModel, UsageError
from opshift.converter.legality.findings import IllegalModel
from opshift.converter.streaming.convert_file import convert_file
from opshift.converter.streaming.copying import write_pieces
from opshift.registry.errors import OpshiftError
from opshift.registry.messages import ModelProto

REQUESTS: dict[str, dict[str, Any]] = {
    "up": {"target": 17},
    "down": {"target": 8},
    "as it is": {"target": 9},
    "to an old IR version": {"ir_version": 3},
    "up and back later": {"target": 17, "reversible": True},
    "up, checked": {"target": 17, "check": True},
}
SOME = ("raw_data", "float_data", "raw_data and more")
CASES = [pytest.param(*each, id=", ".join(each)) for each in product(REQUESTS, SOME, PLACES)]


def outcome(convert: Callable[[], bytes]) -> Any:
    """What comes out, or the error."""
    try:
        return convert()
    except OpshiftError as error:
        return type(error), error.reason


def both(data: bytes, path: Path, request: dict[str, Any]) -> tuple[Any, Any]:
    """What becomes of a model in memory, and in a file."""

    def by_file() -> bytes:
        path.with_name("in.onnx").write_bytes(data)
        convert_file(path.with_name("in.onnx"), path, **request, external="keep")
        return path.read_bytes()

    return outcome(lambda: bytes(convert_version(data, **request))), outcome(by_file)


def canonical(found: onnx.ModelProto) -> bytes:
    """The bytes that protobuf writes for what it reads."""
    return ModelProto.FromString(found.SerializeToString()).SerializeToString()


@pytest.mark.parametrize(("title", "tensor", "place"), CASES)
def test_the_result_is_that_of_the_bytes(title: str, tensor: str, place: str, tmp_path: Path) -> None:
    data = canonical(PLACES[place](TENSORS[tensor]()))
    in_memory, in_file = both(data, tmp_path / "out.onnx", REQUESTS[title])
    assert in_file == in_memory


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("ir_version", [3, 6, 9])
def test_of_another_ir_version_it_is_that_of_the_bytes(
    name: str, ir_version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opshift.converter.streaming.weights.LEAST", 1)
    allow = ["drop-metadata", "drop-training", "drop-devices"]
    in_memory, in_file = both(
        canonical(MODELS[name]()), tmp_path / "out.onnx", {"ir_version": ir_version, "allow": allow}
    )
    assert in_file == in_memory


def test_what_a_conversion_replaced_comes_back(tmp_path: Path) -> None:
    path, back = tmp_path / "new.onnx", tmp_path / "back.onnx"
    data = save(model([held(raw())], [raw()]), tmp_path / "old.onnx")
    convert_file(tmp_path / "old.onnx", path, 17, reversible=True)
    convert_file(path, back, 9)
    assert back.read_bytes() == ModelProto.FromString(data).SerializeToString()


def test_constants_are_read_where_they_are(tmp_path: Path) -> None:
    """Upsample's scales, an input, become attributes on the way down."""
    found = model([helper.make_node("Upsample", ["x", "scales"], ["z"], name="up")])
    found.graph.initializer.add(name="scales", data_type=1, dims=[1], raw_data=b"\0\0\0\x40")
    data = canonical(found)
    in_memory, in_file = both(data, tmp_path / "out.onnx", {"target": 8})
    assert in_file == in_memory
    assert b"scales" in in_file


@pytest.mark.parametrize("name", ["in.onnx", "out.onnx"])
def test_what_does_not_change_is_copied_byte_by_byte(name: str, tmp_path: Path) -> None:
    """Also if no library would write it like that: here the opset comes first."""
    found = model([held(raw())])
    imports = onnx.ModelProto(opset_import=found.opset_import).SerializeToString()
    found.ClearField("opset_import")
    data = imports + found.SerializeToString()
    (tmp_path / "in.onnx").write_bytes(data)
    convert_file(tmp_path / "in.onnx", tmp_path / name, 9)
    assert (tmp_path / name).read_bytes() == data
    assert ModelProto.FromString(data).SerializeToString() != data


def test_a_function_that_is_behind_is_no_reason_to_copy(tmp_path: Path) -> None:
    found = PLACES["Constant in a function"](raw())
    found.functions[0].opset_import[0].version = 8
    in_memory, in_file = both(canonical(found), tmp_path / "out.onnx", {"target": 9})
    assert in_file == in_memory


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """`in.onnx` of opset 9, with large weights."""
    save(model([held(raw())], [raw("v", RAW * 1000)]), tmp_path / "in.onnx")
    return tmp_path / "in.onnx"


def opset(path: Path) -> int:
    return int(onnx.load(path).opset_import[0].version)


def test_the_input_may_be_the_output(path: Path, tmp_path: Path) -> None:
    path.chmod(0o640)
    report = convert_file(path, path, 17)
    assert (opset(path), len(report.changed)) == (17, 1)
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["in.onnx"]


def test_of_a_link_the_file_it_leads_to_is_written(path: Path, tmp_path: Path) -> None:
    (tmp_path / "link.onnx").symlink_to("in.onnx")
    convert_file(path, tmp_path / "link.onnx", 17)
    assert (tmp_path / "link.onnx").is_symlink()
    assert opset(path) == 17


def test_a_pipe_is_read(path: Path, tmp_path: Path) -> None:
    ends = os.pipe()
    os.write(ends[1], path.read_bytes()[:0] + save(model([held(raw())]), tmp_path / "small.onnx"))
    os.close(ends[1])
    convert_file(f"/dev/fd/{ends[0]}", tmp_path / "out.onnx", 17)
    os.close(ends[0])
    assert opset(tmp_path / "out.onnx") == 17


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        pytest.param({"target": 1}, ConversionRefused, id="a node that cannot be converted"),
        pytest.param({"target": 99}, OpshiftError, id="an opset that there is not"),
        pytest.param({}, UsageError, id="no target"),
        pytest.param({"target": 17, "check": True}, IllegalModel, id="a rule that is broken"),
    ],
)
def test_what_is_refused_leaves_nothing(
    request_: dict[str, Any], error: type[Exception], tmp_path: Path
) -> None:
    found = model([helper.make_node("Upsample", ["x", "s"], ["z"])], [raw("s"), raw("v", RAW[:-4])])
    found.graph.initializer[1].dims[0] += 1
    before = save(found, tmp_path / "in.onnx")
    for name in ("out.onnx", "in.onnx"):
        with pytest.raises(error):
            convert_file(tmp_path / "in.onnx", tmp_path / name, **request_)
    assert os.listdir(tmp_path) == ["in.onnx"]
    assert (tmp_path / "in.onnx").read_bytes() == before


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"text, no model", id="text"),
        pytest.param(b"\x3a\xff\xff\xff\x7f" + bytes(100), id="a length beyond the end"),
        pytest.param(model(initializers=[raw()]).SerializeToString()[:-1], id="cut off"),
        pytest.param(model(initializers=[raw()]).SerializeToString()[:100], id="cut off early"),
        pytest.param(
            onnx.ModelProto(ir_version=8, graph=onnx.GraphProto()).SerializeToString(), id="no imports"
        ),
    ],
)
def test_what_is_no_model_leaves_nothing(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "in.onnx").write_bytes(data)
    with pytest.raises(InvalidModel) as caught:
        convert_file(tmp_path / "in.onnx", tmp_path / "out.onnx", 17)
    assert caught.value.remedy
    assert os.listdir(tmp_path) == ["in.onnx"]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        pytest.param("absent/out.onnx", UsageError, id="no such folder"),
        pytest.param(".", UsageError, id="a folder"),
        pytest.param("no\0name", CannotWrite, id="a null character in the name"),
    ],
)
def test_it_cannot_be_written_to(name: str, error: type[Exception], path: Path, tmp_path: Path) -> None:
    with pytest.raises(error):
        convert_file(path, tmp_path / name, 17)
    assert os.listdir(tmp_path) == ["in.onnx"]


def test_a_folder_that_is_read_only(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def refuse(name: Any, flags: int, *rest: int) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied")
        return opened(name, flags, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with pytest.raises(CannotWrite, match="Permission denied"):
            convert_file(path, tmp_path / "out.onnx", 17)
    assert os.listdir(tmp_path) == ["in.onnx"]


@contextmanager
def most_bytes(count: int) -> Iterator[None]:
    """No file can get larger meanwhile, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("count", [0, 100, 100_000])
def test_a_disk_that_is_full(count: int, path: Path, tmp_path: Path) -> None:
    before = path.read_bytes()
    for name in ("out.onnx", "in.onnx"):
        with most_bytes(count), pytest.raises(CannotWrite, match="File too large"):
            convert_file(path, tmp_path / name, 17)
    assert os.listdir(tmp_path) == ["in.onnx"]
    assert path.read_bytes() == before


def lengthen(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def shorten(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def touch(path: Path) -> None:
    os.utime(path, (1, 1))


@pytest.mark.parametrize("meddle", [lengthen, shorten, touch])
def test_a_file_that_changes_underneath(
    meddle: Callable[[Path], None], path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meddling(*arguments: Any) -> None:
        meddle(path)
        write_pieces(*arguments)

    monkeypatch.setattr("opshift.converter.streaming.convert_file.write_pieces", meddling)
    with pytest.raises(InvalidModel, match="while it was read"):
        convert_file(path, tmp_path / "out.onnx", 17)
    assert os.listdir(tmp_path) == ["in.onnx"]
