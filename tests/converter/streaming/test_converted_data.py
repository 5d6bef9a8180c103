"""External data whose elements are converted: the name of the new file, and the files that stay."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import AttributeProto, TensorProto, external_data_helper, helper, numpy_helper
from support.calls import call, function, model, node, with_references
from support.execution import assert_equal, build, run
from support.small_models import save

from opshift.converter.streaming.convert_file import convert_file
from opshift.model.errors import CannotWrite, UsageError

TYPES = {"float": "double"}


def location(path: Path) -> str:
    (weight,) = onnx.load(path, load_external_data=False).graph.initializer
    return str({each.key: each.value for each in weight.external_data}["location"])


def assert_double(path: Path) -> None:
    onnx.checker.check_model(path, full_check=True)
    (weight,) = onnx.load(path).graph.initializer
    np.testing.assert_array_equal(numpy_helper.to_array(weight), np.full(6, 2.5), strict=True)


NAMES = {
    "unused name": ("w.bin", [], "m.onnx", False, "m.onnx.data"),
    "data of the source": ("m.onnx.data", [], "m.onnx", False, "m.onnx.1.data"),
    "used number": ("m.onnx.data", ["m.onnx.1.data"], "m.onnx", False, "m.onnx.2.data"),
    "data of the source for another output": ("o.onnx.data", [], "o.onnx", False, "o.onnx.1.data"),
    "data of another model": ("w.bin", ["m.onnx.data"], "m.onnx", False, "m.onnx.1.data"),
    "data of the source with force": ("m.onnx.data", [], "m.onnx", True, "m.onnx.data"),
    "data of another model with force": ("w.bin", ["m.onnx.data"], "m.onnx", True, "m.onnx.data"),
}


@pytest.mark.parametrize(("data", "others", "out", "force", "expected"), NAMES.values(), ids=NAMES)
def test_existing_data_is_only_replaced_with_force(
    tmp_path: Path, data: str, others: list[str], out: str, force: bool, expected: str
) -> None:
    source = save(tmp_path / "m.onnx", fill=2.5, data=data)
    for name in others:
        (tmp_path / name).write_text("data of another model")
    before = {name: (tmp_path / name).read_bytes() for name in (data, *others)}
    convert_file(source, tmp_path / out, types=TYPES, force=force)
    assert location(tmp_path / out) == expected
    assert_double(tmp_path / out)
    replaced = {name for name, content in before.items() if (tmp_path / name).read_bytes() != content}
    assert replaced == ({expected} if force else set())


def test_converts_in_place_several_times(tmp_path: Path) -> None:
    path = save(tmp_path / "m.onnx", fill=2.5, data="m.onnx.data")
    for types in (TYPES, {"double": "float"}, TYPES):
        convert_file(path, path, types=types, allow="approximate")
    assert_double(path)


def test_data_is_in_the_folder_of_a_link_to_the_model(tmp_path: Path) -> None:
    real, link = save(tmp_path / "real/m.onnx", fill=2.5, data="w.bin"), tmp_path / "a/m.onnx"
    link.parent.mkdir()
    link.symlink_to("../real/m.onnx")
    (real.parent / "w.bin").rename(link.parent / "w.bin")
    convert_file(link, link, types=TYPES)
    assert link.is_symlink()
    assert sorted(os.listdir(link.parent)) == ["m.onnx", "m.onnx.data", "w.bin"]
    assert os.listdir(real.parent) == ["m.onnx"]
    assert_double(link)


def test_file_of_another_process_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = save(tmp_path / "m.onnx", fill=2.5, data="m.onnx.data")
    before = source.read_bytes()
    (tmp_path / "m.onnx.1.data").write_text("written in the meantime")
    monkeypatch.setattr(
        "opshift.converter.streaming.convert_file._data_path", lambda *_, **__: tmp_path / "m.onnx.1.data"
    )
    with pytest.raises(CannotWrite, match="cannot be written: File exists"):
        convert_file(source, source, types=TYPES)
    assert (tmp_path / "m.onnx.1.data").read_text() == "written in the meantime"
    assert source.read_bytes() == before


def test_replaces_its_own_link_to_data_of_the_source(tmp_path: Path) -> None:
    source, out = save(tmp_path / "in/m.onnx", fill=2.5, data="m.onnx.data"), tmp_path / "out/m.onnx"
    data, link = (each.with_name("m.onnx.data") for each in (source, out))
    out.parent.mkdir()
    for _ in range(2):
        convert_file(source, out, 17, external="link", force=True)
        assert link.samefile(data)
        convert_file(source, out, types=TYPES, external="link", force=True)
        assert location(out) == "m.onnx.data"
        assert_double(out)
        np.testing.assert_array_equal(np.fromfile(data, np.float32), np.full(6, 2.5))


def test_does_not_replace_data_of_the_source_through_a_symbolic_link(tmp_path: Path) -> None:
    save(tmp_path / "in/m.onnx", fill=2.5, data="n.onnx.data")
    (tmp_path / "out").symlink_to("in")
    with pytest.raises(UsageError, match="file with weights of the model"):
        convert_file(tmp_path / "in/m.onnx", tmp_path / "out/n.onnx", types=TYPES, force=True)
    np.testing.assert_array_equal(np.fromfile(tmp_path / "in/n.onnx.data", np.float32), np.full(6, 2.5))


def test_data_of_default_values_of_attributes_are_converted(tmp_path: Path) -> None:
    constant = with_references(node("Constant", [], ["k"]), value=("t", AttributeProto.TENSOR))
    body = function("F", [constant, node("Add", ["a", "k"], ["b"])], 17)
    x = np.arange(4, dtype=np.float32)
    default = TensorProto(data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    default.external_data.add(key="location", value="w.bin")
    body.attribute_proto.append(helper.make_attribute("t", default))
    before = model([call("F", ["x"], ["y"])], [body], 17, feeds={"x": x})
    (tmp_path / "m.onnx").write_bytes(before.SerializeToString())
    (x / 2).tofile(tmp_path / "w.bin")
    (tmp_path / "out").mkdir()
    convert_file(tmp_path / "m.onnx", tmp_path / "out/m.onnx", types=TYPES)
    assert sorted(os.listdir(tmp_path / "out")) == ["m.onnx", "m.onnx.data"]
    assert_equal(run(onnx.load(tmp_path / "out/m.onnx"), {"x": x.astype(float)}), [x.astype(float) * 1.5])


@pytest.mark.parametrize("shapes", [[(1, 4), (0, 4)], [(0, 4), (2, 4)], [(0, 4), (0, 4)]], ids=str)
def test_keeps_empty_tensors(shapes: list[tuple[int, int]], tmp_path: Path) -> None:
    arrays = {name: np.full(shape, 2.5, np.float32) for name, shape in zip("vw", shapes, strict=True)}
    x = np.ones((1, 4), np.float32)
    before = build([node("Concat", ["x", "v", "w"], ["y"], axis=0)], {"x": x}, ["y"], 17, initializers=arrays)
    external_data_helper.convert_model_to_external_data(before, location="w.bin", size_threshold=0)
    onnx.save(before, tmp_path / "m.onnx")
    convert_file(tmp_path / "m.onnx", tmp_path / "d.onnx", types=TYPES)
    assert (tmp_path / "d.onnx.data").exists() == any(map(np.size, arrays.values()))
    session = onnxruntime.InferenceSession(tmp_path / "d.onnx", providers=["CPUExecutionProvider"])
    expected = np.concatenate([x, *arrays.values()]).astype(float)
    assert_equal(session.run(None, {"x": x.astype(float)}), [expected])


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_new_data_has_the_permissions_of_the_old(tmp_path: Path) -> None:
    source = save(tmp_path / "m.onnx", data="m.onnx.data")
    (tmp_path / "m.onnx.data").chmod(0o600)
    convert_file(source, source, types=TYPES)
    assert stat.S_IMODE((tmp_path / "m.onnx.1.data").stat().st_mode) == 0o600
