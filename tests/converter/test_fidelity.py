"""Everything that a conversion does not rewrite stays byte-identical and in order, in every graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.execution import build, op_types
from support.rich_model import (
    CHANGED_OPERATORS,
    FLOAT,
    UNKNOWN_FIELD,
    annotated,
    containers,
    full_model,
    node,
)

from opshift.converter.convert import convert_version
from opshift.model.messages import ModelProto

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
PARSERS = {"onnx": onnx.ModelProto.FromString, "opshift": ModelProto.FromString}


def undo_changes(result: Any, original: Any) -> None:
    """Undo the permitted changes of `result`: rewritten nodes, new nodes, new constants and opset imports."""
    for container, original_container in zip(containers(result), containers(original), strict=True):
        names = {each.name for each in original_container.node}
        for each in [each for each in container.node if each.name not in names]:
            container.node.remove(each)
        undo_removals(container, original_container)
        for new, old in zip(container.node, original_container.node, strict=True):
            if old.op_type in CHANGED_OPERATORS:
                new.CopyFrom(old)
        if hasattr(original_container, "initializer"):
            undo_initializers(container, original_container)
    for new, old in zip((result, *result.functions), (original, *original.functions), strict=True):
        for new_import, old_import in zip(new.opset_import, old.opset_import, strict=True):
            if new_import.domain == "":
                new_import.version = old_import.version


def undo_removals(container: Any, original: Any) -> None:
    """Add the Constant nodes again that only replaced nodes read."""
    kept = {each.name: each.SerializeToString() for each in container.node}
    read = {name for each in original.node if each.op_type not in CHANGED_OPERATORS for name in each.input}
    for each in original.node:
        if each.name not in kept:
            assert each.op_type == "Constant"
            assert read.isdisjoint(each.output)
    contents = [kept.get(each.name) or each.SerializeToString() for each in original.node]
    types = [type(each) for each in original.node]
    del container.node[:]
    container.node.extend(kind.FromString(each) for kind, each in zip(types, contents, strict=True))


def undo_initializers(graph: Any, original: Any) -> None:
    """Remove new initializers, and add those again that no node reads any more."""
    kept = {each.name for each in graph.initializer}
    read = {name for each in original.node if each.op_type not in CHANGED_OPERATORS for name in each.input}
    missing = [each for each in original.initializer if each.name not in kept]
    assert read.isdisjoint(each.name for each in missing)
    found = {each.name: each for each in (*missing, *graph.initializer)}
    initializers = [
        type(each).FromString(found[each.name].SerializeToString()) for each in original.initializer
    ]
    del graph.initializer[:]
    graph.initializer.extend(initializers)


@pytest.mark.parametrize("parse", PARSERS.values(), ids=PARSERS)
@pytest.mark.parametrize("inplace", [False, True], ids=["copy", "in place"])
@pytest.mark.parametrize(("source", "target"), [(11, 13), (13, 11)], ids=["up", "down"])
def test_unchanged_parts_are_byte_identical(
    parse: Callable[[bytes], Any], inplace: bool, source: int, target: int
) -> None:
    original = parse(full_model(source).SerializeToString())
    model = parse(full_model(source).SerializeToString())
    result = convert_version(model, target, inplace=inplace, ir_version="keep")
    assert {each.version for each in result.opset_import if not each.domain} == {target}
    assert result.SerializeToString() != original.SerializeToString()
    undo_changes(result, original)
    assert result.SerializeToString(deterministic=True) == original.SerializeToString(deterministic=True)


@pytest.mark.parametrize(("source", "target"), [(11, 13), (13, 11)], ids=["up", "down"])
def test_changes_nodes_in_every_graph_and_function(source: int, target: int) -> None:
    """Only the initialization graph has no node that changes."""
    result = convert_version(full_model(source), target, ir_version="keep")
    pairs = zip(containers(full_model(source)), containers(result), strict=True)
    same = [before.name for before, after in pairs if list(before.node) == list(after.node)]
    assert same == ["initialization"]


@pytest.mark.parametrize("parse", PARSERS.values(), ids=PARSERS)
@pytest.mark.parametrize("inplace", [False, True], ids=["copy", "in place"])
@pytest.mark.parametrize("opset", [11, 13])
def test_source_opset_as_target_changes_nothing(
    parse: Callable[[bytes], Any], inplace: bool, opset: int
) -> None:
    original = full_model(opset).SerializeToString()
    for target in (opset, {"": opset, "ai.onnx.ml": 1}, {"ai.onnx.preview.training": 1}):
        result = convert_version(parse(original), target, inplace=inplace)
        assert result.SerializeToString() == original


@pytest.mark.parametrize("path", sorted(LIGHT.glob("*.onnx")), ids=lambda path: path.stem)
def test_keeps_networks_at_their_own_opset(path: Path) -> None:
    original = path.read_bytes()
    model = onnx.ModelProto.FromString(original)
    opset = model.opset_import[0].version
    assert convert_version(model, opset).SerializeToString() == model.SerializeToString()
    assert convert_version(original, opset) == original


def test_returns_the_input_bytes_at_the_target_opset() -> None:
    """Even if protobuf would serialize the fields in a different order."""
    model = build([node("Relu", ["x"], ["y"], "relu")], {"x": np.ones(1, np.float32)}, ["y"], 13)
    last = onnx.ModelProto(producer_name=model.producer_name)
    model.ClearField("producer_name")
    shuffled = model.SerializeToString() + last.SerializeToString()
    assert onnx.ModelProto.FromString(shuffled).SerializeToString() != shuffled
    assert convert_version(shuffled, 13) == shuffled


def test_opset_change_without_rewrites_changes_only_imports() -> None:
    model = full_model()
    del model.graph.node[3]
    del model.graph.output[1]
    result = convert_version(model, 12)
    result.opset_import[1].version = 11
    result.functions[0].opset_import[0].version = 11
    assert result.SerializeToString() == model.SerializeToString()


def node_named(model: Any, name: str) -> Any:
    (match,) = (each for each in model.graph.node if each.name == name)
    return match


@pytest.mark.parametrize("name", ["second", "fourth"], ids=["one new node", "several new nodes"])
def test_replacement_keeps_name_and_metadata(name: str) -> None:
    before = node_named(full_model(), name)
    after = node_named(convert_version(full_model(), 13), name)
    for field in ("name", "doc_string", "overload"):
        assert getattr(after, field) == getattr(before, field)
    assert list(after.metadata_props) == list(before.metadata_props)
    assert list(after.device_configurations) == list(before.device_configurations)
    assert after.SerializeToString().endswith(UNKNOWN_FIELD)


def test_other_emitted_nodes_have_no_name_or_metadata() -> None:
    result = convert_version(full_model(), 13)
    new = [each for each in result.graph.node if not each.name]
    assert [each.op_type for each in new] != []
    assert not any(each.doc_string or each.metadata_props for each in new)


def test_kept_attributes_keep_doc_strings() -> None:
    model = full_model()
    reduce = node("ReduceMean", ["a"], ["m"], "mean", axes=[1], keepdims=0)
    annotated(next(each for each in reduce.attribute if each.name == "keepdims"))
    model.graph.node.append(reduce)
    after = node_named(convert_version(model, 18), "mean")
    (keepdims,) = after.attribute
    assert keepdims == next(each for each in reduce.attribute if each.name == "keepdims")
    assert keepdims.doc_string == "a note"


def test_replacement_keeps_the_node_position() -> None:
    result = convert_version(full_model(), 13)
    kept = [each.name for each in result.graph.node if each.name]
    assert kept == [each.name for each in full_model().graph.node]
    places = [i for i, each in enumerate(result.graph.node) if not each.name]
    third, fifth = (
        next(i for i, e in enumerate(result.graph.node) if e.name == n) for n in ("third", "fifth")
    )
    assert all(third < place < fifth for place in places)


def test_appends_constants_after_existing_initializers() -> None:
    result = convert_version(full_model(), 13)
    assert [each.name for each in result.graph.initializer][:2] == ["w", "unused"]
    assert len(result.graph.initializer) > 2


def test_converts_training_graphs() -> None:
    result = convert_version(full_model(), 13)
    (info,) = result.training_info
    assert [len(each.input) for each in info.algorithm.node] == [2, 2]
    assert [(each.key, each.value) for each in info.update_binding] == [("w", "new")]


def test_adds_no_inferred_types() -> None:
    model = full_model()
    del model.graph.value_info[:]
    assert len(convert_version(model, 18).graph.value_info) == 0


def test_keeps_the_order_of_opset_imports() -> None:
    model = full_model()
    result = convert_version(model, 13)
    assert [(each.domain, each.version) for each in result.opset_import] == [
        ("com.acme", 2), ("", 13), ("ai.onnx.ml", 1), ("local", 1)
    ]  # fmt: skip


def test_keeps_the_storage_of_initializers() -> None:
    """Typed fields stay typed fields, and raw bytes stay raw bytes."""
    model = full_model()
    typed = helper.make_tensor("typed", FLOAT, [3], [1.0, 2.0, 3.0])
    model.graph.initializer.append(typed)
    after = {each.name: each for each in convert_version(model, 13).graph.initializer}
    assert after["typed"] == typed


def test_keeps_the_model_signature() -> None:
    model = full_model()
    for target in (12, 13, 18, 21):
        result = convert_version(model, target)
        assert list(result.graph.input) == list(model.graph.input)
        assert list(result.graph.output) == list(model.graph.output)


def test_replacement_by_another_operator_keeps_the_name() -> None:
    upsample = node("Upsample", ["x"], ["y"], "upsample", mode="nearest", scales=[1.0, 2.0])
    result = convert_version(build([upsample], {"x": np.ones((2, 2), np.float32)}, ["y"], 8), 10)
    assert op_types(result) == ["Resize"]
    assert (result.graph.node[0].name, result.graph.node[0].doc_string) == ("upsample", "on upsample")


# Value information and device configurations


def test_value_info_stays_valid_after_rewrites() -> None:
    """The mask of Dropout-7 has the type of the data; since opset 10 it is boolean."""
    dropout = node("Dropout", ["x"], ["y", "mask"], "drop", ratio=0.5)
    model = build([dropout], {"x": np.ones((2, 2), np.float32)}, {"y": FLOAT}, 10)
    model.graph.value_info.append(helper.make_tensor_value_info("mask", TensorProto.BOOL, [2, 2]))
    for target in (7, 12, 13, 21):
        result = convert_version(model, target)
        onnx.shape_inference.infer_shapes(result, check_type=True, strict_mode=True)
        assert list(result.graph.value_info) == list(model.graph.value_info)


def sharded_softmax(*tensors: str) -> onnx.ModelProto:
    """Return a Softmax that is sharded by the given tensors and becomes several nodes."""
    softmax = node("Softmax", ["x"], ["y"], "soft", axis=1)
    configuration = softmax.device_configurations.add(configuration_id="two gpus", pipeline_stage=3)
    for name in tensors:
        configuration.sharding_spec.add(tensor_name=name, device=[0, 1])
    return build([softmax], {"x": np.ones((2, 3, 4), np.float32)}, ["y"], 11, ir_version=11)


def test_emitted_nodes_keep_the_device_configuration() -> None:
    result = convert_version(sharded_softmax(), 13)
    assert len(result.graph.node) > 1
    for each in result.graph.node:
        (configuration,) = each.device_configurations
        assert (configuration.configuration_id, configuration.pipeline_stage) == ("two gpus", 3)


def test_sharding_specs_follow_their_tensors() -> None:
    result = convert_version(sharded_softmax("x", "y"), 13)
    for each in result.graph.node:
        sharded = {spec.tensor_name for one in each.device_configurations for spec in one.sharding_spec}
        assert sharded == {"x", "y"} & {*each.input, *each.output}
