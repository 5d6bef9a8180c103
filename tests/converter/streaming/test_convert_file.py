"""Conversion of files: same result as in memory, and written completely or not at all."""

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
from onnx import TensorProto, helper
from support.ir_models import MODELS
from support.large_models import COUNT, LOCATIONS, RAW, TENSORS, constant_node, model, raw, save

from opshift.batch.convert_many import convert_many
from opshift.checker.findings import IllegalModel
from opshift.converter.convert import convert, convert_version
from opshift.converter.refusals import ConversionRefused
from opshift.converter.streaming.convert_file import convert_file
from opshift.converter.streaming.copy_ranges import write_pieces
from opshift.model.errors import CannotWrite, InvalidModel, OpshiftError, UsageError
from opshift.model.messages import ModelProto
from opshift.model.model_version import pack_version
from opshift.model.offloaded_tensors import PlaceholderStore

OPTIONS: dict[str, dict[str, Any]] = {
    "upgrade": {"target": 17},
    "downgrade": {"target": 8},
    "same opset": {"target": 9},
    "older IR version": {"ir_version": 3},
    "reversible upgrade": {"target": 17, "reversible": True},
    "checked upgrade": {"target": 17, "check": True},
}
TENSOR_KINDS = ("raw_data", "float_data", "raw_data and more")
CASES = [pytest.param(*each, id=", ".join(each)) for each in product(OPTIONS, TENSOR_KINDS, LOCATIONS)]


def result_or_error(convert: Callable[[], bytes]) -> Any:
    """Return the result, or the type and reason of the error."""
    try:
        return convert()
    except OpshiftError as error:
        return type(error), error.reason


def convert_both_ways(data: bytes, path: Path, options: dict[str, Any]) -> tuple[Any, Any]:
    """Return the outcome of a conversion in memory and of a conversion of files."""

    def convert_as_file() -> bytes:
        path.with_name("in.onnx").write_bytes(data)
        convert_file(path.with_name("in.onnx"), path, **options, external="keep")
        return path.read_bytes()

    return result_or_error(lambda: bytes(convert_version(data, **options))), result_or_error(convert_as_file)


def canonical(message: onnx.ModelProto) -> bytes:
    """Return the bytes of the message after a round trip through protobuf."""
    return ModelProto.FromString(message.SerializeToString()).SerializeToString()


@pytest.mark.parametrize(("option_id", "tensor", "place"), CASES)
def test_file_conversion_equals_conversion_in_memory(
    option_id: str, tensor: str, place: str, tmp_path: Path
) -> None:
    data = canonical(LOCATIONS[place](TENSORS[tensor]()))
    in_memory, in_file = convert_both_ways(data, tmp_path / "out.onnx", OPTIONS[option_id])
    assert in_file == in_memory


INVALID_TENSORS = {
    "part of an element": {"dims": [COUNT], "raw_data": RAW[:-3]},
    "too few bytes": {"dims": [COUNT], "raw_data": RAW[:-4]},
    "too many bytes": {"dims": [COUNT], "raw_data": RAW + RAW},
    "too few floats": {"dims": [COUNT], "float_data": range(COUNT - 1)},
    "bytes in the field of a different type": {"dims": [COUNT], "string_data": [RAW]},
    "elements in the field of a different type": {"dims": [COUNT], "double_data": range(COUNT // 2)},
    "negative dimension": {"dims": [-COUNT], "raw_data": RAW},
}


@pytest.mark.parametrize("fields", INVALID_TENSORS.values(), ids=INVALID_TENSORS)
def test_refuses_to_convert_elements_that_do_not_match_the_shape(
    fields: dict[str, Any], tmp_path: Path
) -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, **fields)
    data = model([helper.make_node("Identity", ["w"], ["f"])], [tensor]).SerializeToString()
    outcomes = convert_both_ways(data, tmp_path / "out.onnx", {"types": {"float": "double"}})
    expected = ConversionRefused, "float=double: tensor 'w' has invalid data"
    assert [(kind, reason.partition(" (")[0]) for kind, reason in outcomes] == [expected, expected]
    (outcome,) = convert_many([tmp_path / "in.onnx"], None, tmp_path / "many", types={"float": "double"})
    assert outcome.status == "refused"


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("ir_version", [3, 6, 9])
def test_ir_version_change_equals_conversion_in_memory(
    name: str, ir_version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opshift.converter.streaming.weights.MIN_EXTRACTED_TENSOR", 1)
    allow = ["drop-metadata", "drop-training", "drop-devices"]
    in_memory, in_file = convert_both_ways(
        canonical(MODELS[name]()), tmp_path / "out.onnx", {"ir_version": ir_version, "allow": allow}
    )
    assert in_file == in_memory


@pytest.mark.parametrize("options", [{"target": 8}, {"target": 17}, {"types": "float=double"}], ids=str)
def test_bump_reads_no_weights(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = model([helper.make_node("Identity", ["w"], ["z"])], [raw()])
    message.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [COUNT]))
    message.ir_version, message.model_version = 3, pack_version("1.2.3")
    save(message, tmp_path / "in.onnx")
    expected = convert(message, **options, bump=True).report.model_version
    monkeypatch.delattr(PlaceholderStore, "whole")
    report = convert_file(tmp_path / "in.onnx", tmp_path / "out.onnx", **options, bump=True)
    assert report.model_version == expected


def test_restores_replaced_nodes(tmp_path: Path) -> None:
    path, back = tmp_path / "new.onnx", tmp_path / "back.onnx"
    data = save(model([constant_node(raw())], [raw()]), tmp_path / "old.onnx")
    convert_file(tmp_path / "old.onnx", path, 17, reversible=True)
    convert_file(path, back, 9)
    assert back.read_bytes() == ModelProto.FromString(data).SerializeToString()


def test_reads_constants_from_file(tmp_path: Path) -> None:
    """The scales input of Upsample becomes an attribute in the older opset."""
    message = model([helper.make_node("Upsample", ["x", "scales"], ["z"], name="up")])
    message.graph.initializer.add(name="scales", data_type=1, dims=[1], raw_data=b"\0\0\0\x40")
    data = canonical(message)
    in_memory, in_file = convert_both_ways(data, tmp_path / "out.onnx", {"target": 8})
    assert in_file == in_memory
    assert b"scales" in in_file


@pytest.mark.parametrize("name", ["in.onnx", "out.onnx"])
def test_copies_unchanged_model_byte_by_byte(name: str, tmp_path: Path) -> None:
    """The opset imports come first here, an order that protobuf does not write."""
    message = model([constant_node(raw())])
    imports = onnx.ModelProto(opset_import=message.opset_import).SerializeToString()
    message.ClearField("opset_import")
    data = imports + message.SerializeToString()
    (tmp_path / "in.onnx").write_bytes(data)
    convert_file(tmp_path / "in.onnx", tmp_path / name, 9)
    assert (tmp_path / name).read_bytes() == data
    assert ModelProto.FromString(data).SerializeToString() != data


def test_converts_function_with_older_opset(tmp_path: Path) -> None:
    message = LOCATIONS["Constant in a function"](raw())
    message.functions[0].opset_import[0].version = 8
    in_memory, in_file = convert_both_ways(canonical(message), tmp_path / "out.onnx", {"target": 9})
    assert in_file == in_memory


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write `in.onnx` of opset 9 with large weights."""
    save(model([constant_node(raw())], [raw("v", RAW * 1000)]), tmp_path / "in.onnx")
    return tmp_path / "in.onnx"


def opset_of_file(path: Path) -> int:
    return int(onnx.load(path).opset_import[0].version)


def test_replaces_input_file(path: Path, tmp_path: Path) -> None:
    path.chmod(0o640)
    report = convert_file(path, path, 17)
    assert (opset_of_file(path), len(report.changed)) == (17, 1)
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["in.onnx"]


def test_writes_target_of_link(path: Path, tmp_path: Path) -> None:
    (tmp_path / "link.onnx").symlink_to("in.onnx")
    convert_file(path, tmp_path / "link.onnx", 17)
    assert (tmp_path / "link.onnx").is_symlink()
    assert opset_of_file(path) == 17


def test_reads_pipe(path: Path, tmp_path: Path) -> None:
    ends = os.pipe()
    os.write(ends[1], path.read_bytes()[:0] + save(model([constant_node(raw())]), tmp_path / "small.onnx"))
    os.close(ends[1])
    convert_file(f"/dev/fd/{ends[0]}", tmp_path / "out.onnx", 17)
    os.close(ends[0])
    assert opset_of_file(tmp_path / "out.onnx") == 17


@pytest.mark.parametrize(
    ("options", "error"),
    [
        pytest.param({"target": 1}, ConversionRefused, id="unconvertible node"),
        pytest.param({"target": 99}, OpshiftError, id="unknown opset"),
        pytest.param({}, UsageError, id="no target"),
        pytest.param({"target": 17, "check": True}, IllegalModel, id="illegal model"),
    ],
)
def test_refused_conversion_writes_nothing(
    options: dict[str, Any], error: type[Exception], tmp_path: Path
) -> None:
    message = model([helper.make_node("Upsample", ["x", "s"], ["z"])], [raw("s"), raw("v", RAW[:-4])])
    message.graph.initializer[1].dims[0] += 1
    before = save(message, tmp_path / "in.onnx")
    for name in ("out.onnx", "in.onnx"):
        with pytest.raises(error):
            convert_file(tmp_path / "in.onnx", tmp_path / name, **options)
    assert os.listdir(tmp_path) == ["in.onnx"]
    assert (tmp_path / "in.onnx").read_bytes() == before


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"text, no model", id="text"),
        pytest.param(b"\x3a\xff\xff\xff\x7f" + bytes(100), id="length beyond the end"),
        pytest.param(model(initializers=[raw()]).SerializeToString()[:-1], id="last byte missing"),
        pytest.param(model(initializers=[raw()]).SerializeToString()[:100], id="truncated"),
        pytest.param(
            onnx.ModelProto(ir_version=8, graph=onnx.GraphProto()).SerializeToString(), id="no opset imports"
        ),
    ],
)
def test_refuses_invalid_model_and_writes_nothing(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "in.onnx").write_bytes(data)
    with pytest.raises(InvalidModel) as caught:
        convert_file(tmp_path / "in.onnx", tmp_path / "out.onnx", 17)
    assert caught.value.remedy
    assert os.listdir(tmp_path) == ["in.onnx"]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        pytest.param("absent/out.onnx", UsageError, id="no such folder"),
        pytest.param(".", UsageError, id="folder"),
        pytest.param("no\0name", CannotWrite, id="null character in the name"),
    ],
)
def test_refuses_invalid_output_path(name: str, error: type[Exception], path: Path, tmp_path: Path) -> None:
    with pytest.raises(error):
        convert_file(path, tmp_path / name, 17)
    assert os.listdir(tmp_path) == ["in.onnx"]


def test_refuses_read_only_folder(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_open = os.open

    def refuse(name: Any, flags: int, *rest: int) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied")
        return real_open(name, flags, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with pytest.raises(CannotWrite, match="Permission denied"):
            convert_file(path, tmp_path / "out.onnx", 17)
    assert os.listdir(tmp_path) == ["in.onnx"]


@contextmanager
def limit_file_size(count: int) -> Iterator[None]:
    """Limit the size of written files, which fails like a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("count", [0, 100, 100_000])
def test_full_disk_leaves_files_unchanged(count: int, path: Path, tmp_path: Path) -> None:
    before = path.read_bytes()
    for name in ("out.onnx", "in.onnx"):
        with limit_file_size(count), pytest.raises(CannotWrite, match="File too large"):
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


@pytest.mark.parametrize("change_file", [lengthen, shorten, touch])
def test_refuses_input_that_changes_during_conversion(
    change_file: Callable[[Path], None], path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change_and_write(*arguments: Any) -> None:
        change_file(path)
        write_pieces(*arguments)

    monkeypatch.setattr("opshift.converter.streaming.convert_file.write_pieces", change_and_write)
    with pytest.raises(InvalidModel, match="while it was read"):
        convert_file(path, tmp_path / "out.onnx", 17)
    assert os.listdir(tmp_path) == ["in.onnx"]
