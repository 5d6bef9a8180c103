"""Elements that a note stands for are given to whoever asks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from onnx import AttributeProto, TensorProto
from support.weighty import TENSORS, held, model, raw, save

from opshift.adapters.elsewhere import HOLDERS, byte_size, serialized, with_elements
from opshift.adapters.tensors import read_tensor
from opshift.converter.streaming.weights import reading
from opshift.registry.messages import ModelProto

Pair = tuple[Any, Any]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tensor of a few elements is left where it is."""
    monkeypatch.setattr("opshift.converter.streaming.weights.SMALL_FILE", 0)
    monkeypatch.setattr("opshift.converter.streaming.weights.LEAST", 100)


@pytest.fixture(params=TENSORS)
def pair(request: pytest.FixtureRequest, tmp_path: Path, small: None) -> Iterator[Pair]:
    """A model as it is, and as it is read, without elements."""
    tensor = TENSORS[request.param]()
    data = save(model([held(tensor)], [tensor, raw("v")]), tmp_path / "model.onnx")
    with reading(tmp_path / "model.onnx") as found:
        yield ModelProto.FromString(data), found


def parts(found: Any) -> list[Any]:
    """Messages of several kinds that a tensor is in."""
    node = found.graph.node[1]
    return [found, found.graph, node, node.attribute[0], node.attribute[0].t, *found.graph.initializer]


def test_tensors_are_read(pair: Pair) -> None:
    whole, light = ([read_tensor(each) for each in found.graph.initializer] for found in pair)
    assert light == whole
    assert light[1] is not None


def test_messages_have_the_same_bytes(pair: Pair) -> None:
    for whole, light in zip(*map(parts, pair), strict=True):
        assert serialized(light) == serialized(whole) != light.SerializeToString()
        assert byte_size(light) == byte_size(whole) == whole.ByteSize()


def test_tensors_get_their_elements(pair: Pair) -> None:
    for whole, light in zip(*(found.graph.initializer for found in pair), strict=True):
        assert light != whole
        assert with_elements(light) == whole
        assert with_elements(whole) is whole


def test_a_tensor_is_read_as_it_is_meanwhile(tmp_path: Path, small: None) -> None:
    save(model(initializers=[raw()]), tmp_path / "model.onnx")
    with reading(tmp_path / "model.onnx") as found:
        tensor = found.graph.initializer[0]
        tensor.dims[:] = [8, 8]
        read = read_tensor(tensor)
    assert read is not None
    assert (read.dims, read.values) == ((8, 8), tuple(map(float, range(64))))


def test_what_has_no_notes_is_left_alone() -> None:
    tensor = raw()
    assert not HOLDERS
    assert with_elements(tensor) is tensor
    assert serialized(tensor) == tensor.SerializeToString()


def test_what_asks_for_bytes_asks_for_all() -> None:
    """Where the bytes of messages or the elements of tensors matter, they come from here."""
    root = Path(__file__).parents[2]
    found = {
        path.relative_to(root).as_posix()
        for folder, word in product(("adapters", "converter"), ("SerializeToString(", ".raw_data"))
        for path in (root / folder).rglob("*.py")
        if word in path.read_text()
    }
    assert found == {
        "adapters/elsewhere.py",
        "adapters/node.py",  # of attributes without tensors
        "adapters/tensors.py",
        "converter/comparison/contents.py",  # these take whole models
        "converter/comparison/signature.py",
        "converter/convert.py",
        "converter/convert_node.py",
        "converter/doctor/legal.py",
        "converter/doctor/restamp.py",
        "converter/files.py",
        "converter/ir/sparse.py",  # writes them
        "converter/legality/check.py",  # for another class of messages
        "converter/legality/external.py",  # tells where a rule is from
        "converter/legality/tensors.py",  # of a tensor that has them
        "converter/mould.py",  # of attributes without tensors
        "converter/statements.py",  # of nodes without tensors
        "converter/verification/runtimes.py",
    }


def test_an_attribute_may_hold_several(tmp_path: Path, small: None) -> None:
    node = held(raw())
    node.attribute.append(
        AttributeProto(name="more", type=AttributeProto.TENSORS, tensors=[raw("a"), raw("b")])
    )
    data = save(model([node]), tmp_path / "model.onnx")
    with reading(tmp_path / "model.onnx") as found:
        assert serialized(found) == ModelProto.FromString(data).SerializeToString()
    assert TensorProto.FromString(serialized(raw())) == raw()
