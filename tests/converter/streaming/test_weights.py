"""Offloading of large tensors: restored byte by byte; unusual encodings stay in the message."""

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
from support.large_models import (
    COUNT,
    LOCATIONS,
    RAW,
    TENSORS,
    constant_node,
    model,
    raw,
    save,
    sparse_with,
    typed,
)

from opshift.converter.streaming.weights import Weights, open_without_weights
from opshift.model.errors import InvalidModel
from opshift.model.messages import DecodeError, ModelProto
from opshift.model.offloaded_tensors import STORES, serialized_size
from opshift.model.tensor_pieces import Range
from opshift.model.wire_format import field_head
from opshift.stores.source_file import SourceFile

CASES = [pytest.param(*each, id=" in ".join(each)) for each in product(TENSORS, LOCATIONS)]


def message_without_payloads(path: Path) -> bytes:
    """Return the serialized model with placeholders for its large tensors."""
    with SourceFile(path) as source, Weights(source) as weights:
        return weights.message()


def round_trip(path: Path) -> bytes:
    """Return the model after offloading, a round trip through protobuf and restoring."""
    with SourceFile(path) as source, Weights(source) as weights:
        message = ModelProto.FromString(weights.message()).SerializeToString()
        return weights.whole(message, "ModelProto")


@pytest.mark.parametrize(("tensor", "place"), CASES)
def test_leaves_tensor_in_file(tensor: str, place: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    model_proto = LOCATIONS[place](TENSORS[tensor]())
    data = save(model_proto, path)
    assert len(message_without_payloads(path)) < len(data)
    assert RAW not in message_without_payloads(path)
    assert round_trip(path) == ModelProto.FromString(data).SerializeToString()


def test_keeps_small_tensors_in_message(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    data = save(model([constant_node(raw(data=RAW[:96]))]), path)
    assert message_without_payloads(path) == data


def test_reads_small_files_completely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    data = save(model([constant_node(raw())]), path)
    monkeypatch.setattr("opshift.converter.streaming.weights.MIN_STREAMED_FILE", len(data) + 1)
    assert message_without_payloads(path) == data


def length_delimited(number: int, *parts: bytes) -> bytes:
    """Serialize a length-delimited field."""
    data = b"".join(parts)
    return field_head(number, len(data)) + data


def model_with_graph_fields(*parts: bytes) -> bytes:
    """Serialize a model with the given fields in its graph."""
    return bytes(onnx.ModelProto(ir_version=8).SerializeToString()) + length_delimited(7, *parts)


def model_with_attribute_fields(*parts: bytes) -> bytes:
    """Serialize a model with the given fields in an attribute."""
    return model_with_graph_fields(
        length_delimited(
            1, length_delimited(4, b"Op"), length_delimited(5, length_delimited(1, b"a"), *parts)
        )
    )


TENSOR = raw().SerializeToString()
FLOATS = typed(TensorProto.FLOAT, "float_data").SerializeToString()
UNUSUAL_MODELS = {
    "tensor written twice": model_with_attribute_fields(
        length_delimited(5, FLOATS), length_delimited(5, FLOATS)
    ),
    "tensor written twice, once short": model_with_attribute_fields(
        length_delimited(5, FLOATS), length_delimited(5, length_delimited(4, RAW[:8]))
    ),
    "graph written twice": model_with_graph_fields(length_delimited(5, TENSOR))
    + length_delimited(7, length_delimited(5, FLOATS)),
    "sparse values written twice": model_with_graph_fields(
        length_delimited(15, length_delimited(1, FLOATS), length_delimited(1, FLOATS))
    ),
    "tensor next to a list": model_with_attribute_fields(length_delimited(5, TENSOR), b"\x3d1234" * COUNT),
    "elements in two fields": model_with_graph_fields(
        length_delimited(5, length_delimited(9, RAW), length_delimited(4, RAW))
    ),
    "field of elements written twice": model_with_graph_fields(
        length_delimited(5, length_delimited(9, RAW), length_delimited(9, b"1234"))
    ),
    "many strings": model_with_graph_fields(
        length_delimited(5, length_delimited(6, RAW), length_delimited(6, RAW))
    ),
    "unpacked elements": model_with_graph_fields(
        length_delimited(5, b"".join(b"\x25" + RAW[at : at + 4] for at in range(COUNT)))
    ),
    "group next to a tensor": model_with_graph_fields(
        b"\x0b", length_delimited(5, TENSOR), b"\x0c", length_delimited(5, FLOATS)
    ),
    "lengths in overlong varints": model_with_graph_fields(
        b"\x2a\x83\x82\x80\x00\x4a\xff\x81\x00" + RAW[:255]
    ),
    "numbers in overlong varints": model_with_graph_fields(
        length_delimited(5, length_delimited(7, b"\x81\x80\x00" * COUNT))
    ),
    "no graph": length_delimited(1, RAW),
}


@pytest.mark.parametrize("case_id", UNUSUAL_MODELS)
def test_reads_unusual_encoding(case_id: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(UNUSUAL_MODELS[case_id])
    result = ModelProto.FromString(round_trip(path))
    assert result.SerializeToString() == ModelProto.FromString(UNUSUAL_MODELS[case_id]).SerializeToString()


WRONG_PAYLOADS = {
    "truncated floats": length_delimited(4, RAW[:101]),
    "unterminated varint": length_delimited(5, b"\xff" * 101),
}


@pytest.mark.parametrize("case_id", WRONG_PAYLOADS)
def test_refuses_wrong_payload(case_id: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(model_with_graph_fields(length_delimited(5, WRONG_PAYLOADS[case_id])))
    with pytest.raises(InvalidModel) as caught, open_without_weights(path):
        pass
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "keep",
    [
        pytest.param(lambda size: size - 1, id="last byte missing"),
        pytest.param(lambda size: size // 2, id="half"),
    ],
)
def test_refuses_truncated_model(keep: Callable[[int], int], tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    data = save(model(initializers=[raw()]), path)
    path.write_bytes(data[: keep(len(data))])
    with pytest.raises(InvalidModel, match="truncated") as caught:
        message_without_payloads(path)
    assert str(path) in str(caught.value)
    assert "completely" in caught.value.remedy


def test_refuses_large_message_without_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    save(model(initializers=[raw(str(each)) for each in range(9)]), path)
    monkeypatch.setattr("opshift.converter.streaming.weights.MAX_MESSAGE_BYTES", 200)
    with pytest.raises(InvalidModel, match="larger than 2 GiB without its weights"):
        message_without_payloads(path)


def test_reports_file_truncated_while_open(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    save(model(initializers=[raw()]), path)
    with SourceFile(path) as source, Weights(source) as weights:
        message = weights.message()
        path.write_bytes(b"")
        source._last = 0, b""
        with pytest.raises(InvalidModel, match="was truncated"):
            weights.whole(message, "ModelProto")


def test_refuses_graphs_nested_too_deeply(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    graph = length_delimited(5, TENSOR)
    for _ in range(100):
        graph = length_delimited(1, length_delimited(5, length_delimited(6, graph)))
    path.write_bytes(length_delimited(7, graph))
    with pytest.raises(InvalidModel, match="too deeply"), open_without_weights(path):
        pass


def test_unregisters_store_after_reading(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    save(model(initializers=[raw()]), path)
    with open_without_weights(path):
        assert len(STORES) == 1
    assert not STORES


def test_reads_file_of_more_than_2_gib(tmp_path: Path) -> None:
    """The payload is a hole in a sparse file."""
    path, size = tmp_path / "model.onnx", 3 * 2**30
    head = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[size // 4]).SerializeToString()
    tensor = field_head(5, len(head) + len(field_head(9, size)) + size) + head + field_head(9, size)
    node = length_delimited(1, helper.make_node("Relu", ["w"], ["y"]).SerializeToString())
    start = length_delimited(1, b"") + field_head(7, len(tensor) + size + len(node)) + tensor
    with path.open("wb") as file:
        file.write(start)
        file.seek(size, os.SEEK_CUR)
        file.write(node)
    with SourceFile(path) as source, Weights(source) as weights:
        message = ModelProto.FromString(weights.message())
        assert (message.graph.node[0].op_type, message.graph.initializer[0].name) == ("Relu", "w")
        assert serialized_size(message) > size
        pieces = weights.restore(message.SerializeToString())
    assert Range(len(start), len(start) + size) in pieces


def test_restores_duplicated_tensor(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    save(model([constant_node(raw())]), path)
    with SourceFile(path) as source, Weights(source) as weights:
        message = ModelProto.FromString(weights.message())
        message.graph.node.add().CopyFrom(message.graph.node[1])
        data = weights.whole(message.SerializeToString(), "ModelProto")
    assert [each.attribute[0].t.raw_data for each in ModelProto.FromString(data).graph.node[1:]] == [RAW, RAW]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_reads_mutated_models_as_protobuf_does(tmp_path: Path, data: st.DataObject) -> None:
    """A mutated model has the same content as in protobuf, or is refused with one type of error."""
    written = _mutate(bytearray(_model_with_all_tensors()), data)
    path = tmp_path / "model.onnx"
    path.write_bytes(written)
    try:
        result = round_trip(path)
    except (InvalidModel, DecodeError):
        result = None
    try:
        expected = ModelProto.FromString(written)
    except DecodeError:
        return
    assert result is not None
    assert ModelProto.FromString(result).SerializeToString() == expected.SerializeToString()


def _model_with_all_tensors() -> bytes:
    message = model(
        [constant_node(raw()), constant_node(typed(TensorProto.INT64, "int64_data"), "d")], [raw("v")]
    )
    message.graph.sparse_initializer.append(sparse_with(raw("s")))
    message.graph.node.append(helper.make_node("Op", [], ["e"], domain="local", ints=range(200)))
    return bytes(message.SerializeToString())


def _mutate(written: bytearray, data: st.DataObject) -> bytes:
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
