"""Large tensors are taken out of a model and put back, byte by byte; whatever is unusual stays whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import product
from pathlib import Path

import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from support.weighty import COUNT, PLACES, RAW, TENSORS, held, model, raw, save, sparse_with, typed

from opshift.adapters.elsewhere import HOLDERS, byte_size
from opshift.converter.errors import InvalidModel
from opshift.converter.streaming.pieces import Range
from opshift.converter.streaming.source import Source
from opshift.converter.streaming.weights import Weights, reading
from opshift.converter.streaming.wire import tagged
from opshift.registry.messages import DecodeError, ModelProto

CASES = [pytest.param(*each, id=" in ".join(each)) for each in product(TENSORS, PLACES)]


def taken_out(path: Path) -> bytes:
    """The message of a model in a file."""
    with Source(path) as source, Weights(source) as weights:
        return weights.message()


def put_back(path: Path) -> bytes:
    """The model, taken apart, read and written by protobuf, and put together."""
    with Source(path) as source, Weights(source) as weights:
        message = ModelProto.FromString(weights.message()).SerializeToString()
        return weights.whole(message, "ModelProto")


@pytest.mark.parametrize(("tensor", "place"), CASES)
def test_a_tensor_is_left_in_the_file(tensor: str, place: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    found = PLACES[place](TENSORS[tensor]())
    data = save(found, path)
    assert len(taken_out(path)) < len(data)
    assert RAW not in taken_out(path)
    assert put_back(path) == ModelProto.FromString(data).SerializeToString()


def test_small_tensors_stay(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    data = save(model([held(raw(data=RAW[:96]))]), path)
    assert taken_out(path) == data


def test_small_files_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    data = save(model([held(raw())]), path)
    monkeypatch.setattr("opshift.converter.streaming.weights.SMALL_FILE", len(data) + 1)
    assert taken_out(path) == data


def field(number: int, *parts: bytes) -> bytes:
    """A field that states its length, as it is written."""
    data = b"".join(parts)
    return tagged(number, len(data)) + data


def around(*parts: bytes) -> bytes:
    """A model with these fields in its graph."""
    return bytes(onnx.ModelProto(ir_version=8).SerializeToString()) + field(7, *parts)


def in_attribute(*parts: bytes) -> bytes:
    """A model with these fields in an attribute."""
    return around(field(1, field(4, b"Op"), field(5, field(1, b"a"), *parts)))


TENSOR = raw().SerializeToString()
FLOATS = typed(TensorProto.FLOAT, "float_data").SerializeToString()
UNUSUAL = {
    "a tensor written twice": in_attribute(field(5, FLOATS), field(5, FLOATS)),
    "a tensor written twice, once short": in_attribute(field(5, FLOATS), field(5, field(4, RAW[:8]))),
    "a graph written twice": around(field(5, TENSOR)) + field(7, field(5, FLOATS)),
    "sparse values written twice": around(field(15, field(1, FLOATS), field(1, FLOATS))),
    "a tensor beside a list": in_attribute(field(5, TENSOR), b"\x3d1234" * COUNT),
    "elements in two fields": around(field(5, field(9, RAW), field(4, RAW))),
    "elements twice in a field": around(field(5, field(9, RAW), field(9, b"1234"))),
    "many texts": around(field(5, field(6, RAW), field(6, RAW))),
    "elements each in a field": around(field(5, b"".join(b"\x25" + RAW[at : at + 4] for at in range(COUNT)))),
    "a group beside a tensor": around(b"\x0b", field(5, TENSOR), b"\x0c", field(5, FLOATS)),
    "lengths that take more bytes than they need": around(
        b"\x2a\x83\x82\x80\x00\x4a\xff\x81\x00" + RAW[:255]
    ),
    "numbers that take more bytes than they need": around(field(5, field(7, b"\x81\x80\x00" * COUNT))),
    "no graph": field(1, RAW),
}


@pytest.mark.parametrize("title", UNUSUAL)
def test_what_is_unusual_means_the_same(title: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(UNUSUAL[title])
    found = ModelProto.FromString(put_back(path))
    assert found.SerializeToString() == ModelProto.FromString(UNUSUAL[title]).SerializeToString()


WRONG = {
    "floats that are cut off": field(4, RAW[:101]),
    "an integer that does not end": field(5, b"\xff" * 101),
}


@pytest.mark.parametrize("title", WRONG)
def test_wrong_elements_are_told(title: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(around(field(5, WRONG[title])))
    with pytest.raises(InvalidModel) as caught, reading(path):
        pass
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "keep",
    [pytest.param(lambda size: size - 1, id="a byte short"), pytest.param(lambda size: size // 2, id="half")],
)
def test_a_model_that_is_cut_off_is_told(keep: Callable[[int], int], tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    data = save(model(initializers=[raw()]), path)
    path.write_bytes(data[: keep(len(data))])
    with pytest.raises(InvalidModel, match="truncated") as caught:
        taken_out(path)
    assert str(path) in str(caught.value)
    assert "completely" in caught.value.remedy


def test_too_much_beside_the_weights_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    save(model(initializers=[raw(str(each)) for each in range(9)]), path)
    monkeypatch.setattr("opshift.converter.streaming.weights.LARGEST_MESSAGE", 200)
    with pytest.raises(InvalidModel, match="larger than 2 GiB without its weights"):
        taken_out(path)


def test_a_file_that_gets_shorter_is_told(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    save(model(initializers=[raw()]), path)
    with Source(path) as source, Weights(source) as weights:
        message = weights.message()
        path.write_bytes(b"")
        source._last = 0, b""
        with pytest.raises(InvalidModel, match="was truncated"):
            weights.whole(message, "ModelProto")


def test_graphs_that_lie_too_deep_are_told(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    graph = field(5, TENSOR)
    for _ in range(100):
        graph = field(1, field(5, field(6, graph)))
    path.write_bytes(field(7, graph))
    with pytest.raises(InvalidModel, match="too deeply"), reading(path):
        pass


def test_nobody_is_asked_for_elements_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    save(model(initializers=[raw()]), path)
    with reading(path):
        assert len(HOLDERS) == 1
    assert not HOLDERS


def test_a_file_of_more_than_two_gigabytes_is_read(tmp_path: Path) -> None:
    """It is one large hole between what matters."""
    path, size = tmp_path / "model.onnx", 3 * 2**30
    head = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[size // 4]).SerializeToString()
    tensor = tagged(5, len(head) + len(tagged(9, size)) + size) + head + tagged(9, size)
    node = field(1, helper.make_node("Relu", ["w"], ["y"]).SerializeToString())
    start = field(1, b"") + tagged(7, len(tensor) + size + len(node)) + tensor
    with path.open("wb") as file:
        file.write(start)
        file.seek(size, os.SEEK_CUR)
        file.write(node)
    with Source(path) as source, Weights(source) as weights:
        found = ModelProto.FromString(weights.message())
        assert (found.graph.node[0].op_type, found.graph.initializer[0].name) == ("Relu", "w")
        assert byte_size(found) > size
        pieces = weights.put_back(found.SerializeToString())
    assert Range(len(start), len(start) + size) in pieces


def test_a_tensor_may_come_more_than_once(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    save(model([held(raw())]), path)
    with Source(path) as source, Weights(source) as weights:
        found = ModelProto.FromString(weights.message())
        found.graph.node.add().CopyFrom(found.graph.node[1])
        data = weights.whole(found.SerializeToString(), "ModelProto")
    assert [each.attribute[0].t.raw_data for each in ModelProto.FromString(data).graph.node[1:]] == [RAW, RAW]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_changed_models_do_no_harm(tmp_path: Path, data: st.DataObject) -> None:
    """What protobuf reads, with some bytes changed, means the same; there is no error but the one."""
    written = _changed(bytearray(_everything()), data)
    path = tmp_path / "model.onnx"
    path.write_bytes(written)
    try:
        found = put_back(path)
    except (InvalidModel, DecodeError):
        found = None
    try:
        expected = ModelProto.FromString(written)
    except DecodeError:
        return
    assert found is not None
    assert ModelProto.FromString(found).SerializeToString() == expected.SerializeToString()


def _everything() -> bytes:
    found = model([held(raw()), held(typed(TensorProto.INT64, "int64_data"), "d")], [raw("v")])
    found.graph.sparse_initializer.append(sparse_with(raw("s")))
    found.graph.node.append(helper.make_node("Op", [], ["e"], domain="local", ints=range(200)))
    return bytes(found.SerializeToString())


def _changed(written: bytearray, data: st.DataObject) -> bytes:
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(written) - 1))
        length = data.draw(st.integers(1, 300))
        change = data.draw(st.sampled_from(["set", "remove", "repeat"]))
        if change == "set":
            written[place] = length % 256
        elif change == "remove":
            del written[place : min(place + length, len(written) - 1)]
        else:
            written[place:place] = written[place : place + length]
    return bytes(written)
