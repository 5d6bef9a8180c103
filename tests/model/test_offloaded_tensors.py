"""Offloaded tensors are read and serialized with their payload."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from onnx import AttributeProto, TensorProto
from support.large_models import TENSORS, constant_node, model, raw, save

from opshift.converter.streaming.weights import open_without_weights
from opshift.model.messages import ModelProto
from opshift.model.offloaded_tensors import STORES, serialize, serialized_size, with_payload
from opshift.model.tensors import read_tensor

ModelPair = tuple[Any, Any]


@pytest.fixture
def offload_small_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offload tensors of a few elements too."""
    monkeypatch.setattr("opshift.converter.streaming.weights.MIN_STREAMED_FILE", 0)
    monkeypatch.setattr("opshift.converter.streaming.weights.MIN_EXTRACTED_TENSOR", 100)


@pytest.fixture(params=TENSORS)
def models(
    request: pytest.FixtureRequest, tmp_path: Path, offload_small_tensors: None
) -> Iterator[ModelPair]:
    """Yield a complete model and the same model read from a file with offloaded tensors."""
    tensor = TENSORS[request.param]()
    data = save(model([constant_node(tensor)], [tensor, raw("v")]), tmp_path / "model.onnx")
    with open_without_weights(tmp_path / "model.onnx") as offloaded:
        yield ModelProto.FromString(data), offloaded


def _messages(root: Any) -> list[Any]:
    """Return messages of several types that contain a tensor."""
    node = root.graph.node[1]
    return [root, root.graph, node, node.attribute[0], node.attribute[0].t, *root.graph.initializer]


def test_reads_offloaded_tensors(models: ModelPair) -> None:
    complete, offloaded = ([read_tensor(each) for each in root.graph.initializer] for root in models)
    assert offloaded == complete
    assert offloaded[1] is not None


def test_serializes_messages_to_the_same_bytes(models: ModelPair) -> None:
    for complete, offloaded in zip(*map(_messages, models), strict=True):
        assert serialize(offloaded) == serialize(complete) != offloaded.SerializeToString()
        assert serialized_size(offloaded) == serialized_size(complete) == complete.ByteSize()


def test_restores_payload(models: ModelPair) -> None:
    for complete, offloaded in zip(*(root.graph.initializer for root in models), strict=True):
        assert offloaded != complete
        assert with_payload(offloaded) == complete
        assert with_payload(complete) is complete


def test_reads_changed_dims_of_an_offloaded_tensor(tmp_path: Path, offload_small_tensors: None) -> None:
    save(model(initializers=[raw()]), tmp_path / "model.onnx")
    with open_without_weights(tmp_path / "model.onnx") as offloaded:
        tensor = offloaded.graph.initializer[0]
        tensor.dims[:] = [8, 8]
        restored = read_tensor(tensor)
    assert restored is not None
    assert (restored.dims, restored.values) == ((8, 8), tuple(map(float, range(64))))


def test_returns_ordinary_tensors_unchanged() -> None:
    tensor = raw()
    assert not STORES
    assert with_payload(tensor) is tensor
    assert serialize(tensor) == tensor.SerializeToString()


FOLDERS = (
    "model",
    "inference",
    "adapters",
    "checker",
    "stores",
    "rewriting",
    "runtimes",
    "converter",
    "analysis",
)


def test_only_listed_modules_access_raw_bytes() -> None:
    """Other modules read messages and tensors through functions that restore offloaded payload."""
    root = Path(__file__).parents[2] / "src" / "opshift"
    modules = {
        path.relative_to(root).as_posix()
        for folder, word in product(FOLDERS, ("SerializeToString(", ".raw_data"))
        for path in (root / folder).rglob("*.py")
        if word in path.read_text()
    }
    assert modules == {
        "analysis/comparison/compare.py",  # whole models only
        "analysis/comparison/operators.py",  # as above
        "analysis/doctor/restamp.py",
        "analysis/doctor/ambiguity.py",  # whole models only
        "analysis/doctor/diagnose.py",
        "converter/element_types/change_types.py",  # converts placeholders, or reads after `with_payload`
        "converter/folding/no_ops.py",  # constants of one element, which are not offloaded
        "analysis/fit/cheapest.py",  # placeholders of equal payloads may differ, which is safe
        "analysis/fit/fit.py",  # attributes of Cast
        "analysis/model_diff/diff.py",  # whole models only
        "analysis/model_text.py",  # after `with_payload`
        "runtimes/model_nodes.py",  # attributes of functions, which are small
        "analysis/runs.py",  # whole models only
        "analysis/verification/runtimes.py",
        "analysis/verification/unreached.py",  # branches of models that were read completely
        "checker/checked_nodes.py",  # types; reads whether raw_data is set
        "checker/check.py",  # converts to the project's message class
        "checker/rules/external_data.py",  # names the source of a rule
        "checker/rules/tensors.py",  # tensors that hold raw_data
        "converter/convert_node.py",
        "converter/functions/expanded_calls.py",  # nodes that call functions
        "converter/internal_types/float_formats.py",  # after `with_payload`
        "rewriting/function_body.py",  # converts to the project's message class
        "analysis/fit/readable_constants.py",  # writes raw_data
        "converter/signature.py",  # types
        "converter/ir_version/tensors.py",  # writes raw_data
        "converter/onnx_shapes.py",  # removes the payloads of large tensors
        "converter/reversible/record.py",  # declarations of inputs
        "converter/streaming/external_weights.py",  # writes placeholders
        "rewriting/attribute_moves.py",  # attributes without tensors
        "rewriting/cached_rewrite.py",  # small tensors, or their placeholders
        "model/files.py",
        "model/onnx_ir.py",  # writes raw_data
        "model/node.py",  # attributes without tensors
        "model/graphs.py",  # a TensorProto of the caller
        "model/node_key.py",  # as in `cached_rewrite`
        "model/offloaded_tensors.py",
        "model/tensors.py",
        "model/types.py",  # declares the method
    }


def test_serializes_attributes_with_several_tensors(tmp_path: Path, offload_small_tensors: None) -> None:
    node = constant_node(raw())
    node.attribute.append(
        AttributeProto(name="more", type=AttributeProto.TENSORS, tensors=[raw("a"), raw("b")])
    )
    data = save(model([node]), tmp_path / "model.onnx")
    with open_without_weights(tmp_path / "model.onnx") as offloaded:
        assert serialize(offloaded) == ModelProto.FromString(data).SerializeToString()
    assert TensorProto.FromString(serialize(raw())) == raw()
