"""What a conversion has no business with is as it was: byte for byte, in its order, in every graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper
from support.running import build, op_types

from opshift.converter.convert import convert_version
from opshift.registry.messages import ModelProto

FLOAT = TensorProto.FLOAT
UNKNOWN = b"\xc0\x3e\x07"
"""Field 1000 holding 7, which no version of ONNX has."""


def node(op_type: str, inputs: Sequence[str], outputs: Sequence[str], name: str, **stated: Any) -> NodeProto:
    made: NodeProto = helper.make_node(op_type, inputs, outputs, name, doc_string=f"on {name}", **stated)
    made.metadata_props.add(key="of", value=name)
    return made


def described(message: Any) -> Any:
    """The message with a note, if it takes any, and a field that nobody knows."""
    if hasattr(message, "metadata_props"):
        message.metadata_props.add(key="k", value="v")
    if hasattr(message, "doc_string") and not message.doc_string:
        message.doc_string = "a note"
    message.MergeFromString(UNKNOWN)
    return message


def value(name: str, shape: Sequence[int | str] = (1, "n", 4)) -> onnx.ValueInfoProto:
    made = helper.make_tensor_value_info(
        name, FLOAT, shape, shape_denotation=["BATCH"] + [""] * (len(shape) - 1)
    )
    made.type.denotation = "TENSOR"
    described(made.type)
    return described(made)


def sparse(name: str) -> onnx.SparseTensorProto:
    values = helper.make_tensor(name, FLOAT, [2], [1.0, 2.0])
    indices = helper.make_tensor("", TensorProto.INT64, [2], [0, 3])
    return helper.make_sparse_tensor(values, indices, [4])


def branch(name: str) -> GraphProto:
    """A graph of one node that changes and one that does not."""
    nodes = [
        node("Relu", ["a"], [f"{name}_r"], f"{name}.relu"),
        squeeze(f"{name}_r", f"{name}_s", f"{name}.squeeze"),
    ]
    return described(
        helper.make_graph(nodes, name, [], [value(f"{name}_s", ("n", 4))], value_info=[value(f"{name}_r")])
    )


def squeeze(data: str, output: str, name: str) -> NodeProto:
    return node("Squeeze", [data], [output], name, axes=[0])


def rich() -> onnx.ModelProto:
    """A model that uses every corner of the format; three of its nodes change from 11 to 13."""
    nodes = [
        node("Relu", ["x"], ["a"], "first"),
        squeeze("a", "b", "second"),
        node("Mul", ["b", "w"], ["c"], "third"),
        node("Softmax", ["a"], ["d"], "fourth", axis=1),
        node("If", ["yes"], ["e"], "fifth", then_branch=branch("then"), else_branch=branch("else")),
        node("Add", ["c", "e"], ["f"], "sixth"),
        node("FastConv", ["f", "sparse"], ["y"], "last", domain="com.acme", alpha=0.5),
        node("Constant", [], ["unread"], "constant", sparse_value=sparse("")),
    ]
    for each in nodes:
        for attribute in each.attribute:
            described(attribute)
        described(each)
    nodes[1].overload = "third kind"
    nodes[1].device_configurations.add(configuration_id="two gpus", pipeline_stage=1)
    weights = [
        described(numpy_helper.from_array(np.ones((1, 4), np.float32), "w")),
        numpy_helper.from_array(np.arange(3), "unused"),
    ]
    yes = helper.make_tensor_value_info("yes", TensorProto.BOOL, [])
    graph = helper.make_graph(
        nodes, "main", [value("x"), yes], [value("y"), value("d")], weights, "of the graph"
    )
    graph.value_info.extend([value("a"), value("b", ("n", 4))])
    graph.sparse_initializer.append(sparse("sparse"))
    annotation = graph.quantization_annotation.add(tensor_name="a")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")
    described(graph)
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 11), helper.make_opsetid("com.acme", 2)],
        ir_version=14,
        producer_name="somebody",
        producer_version="1.2",
        domain="org.example",
        model_version=42,
    )
    for each in model.opset_import:
        each.MergeFromString(UNKNOWN)
    model.configuration.add(name="two gpus", num_devices=2, device=["0", "1"])
    _train(model)
    return described(model)


def _train(model: onnx.ModelProto) -> None:
    info = model.training_info.add()
    start = [node("Constant", [], ["zero"], "start", value=helper.make_tensor("", FLOAT, [1, 4], [0.0] * 4))]
    info.initialization.CopyFrom(helper.make_graph(start, "initialization", [], [value("zero", (1, 4))]))
    step = [
        squeeze("w", "flat", "train.squeeze"),
        node("Unsqueeze", ["flat"], ["new"], "train.unsqueeze", axes=[0]),
    ]
    info.algorithm.CopyFrom(helper.make_graph(step, "algorithm", [], [value("new", (1, 4))]))
    info.initialization_binding.add(key="w", value="zero")
    info.update_binding.add(key="w", value="new")
    described(info.algorithm)


def graphs(model: Any) -> Iterator[Any]:
    """Every graph of a model, each before those within."""
    waiting = [
        model.graph,
        *(g for info in model.training_info for g in (info.initialization, info.algorithm)),
    ]
    while waiting:
        graph = waiting.pop()
        yield graph
        waiting += [a.g for each in graph.node for a in each.attribute if a.HasField("g")]


def put_back(result: Any, original: Any) -> None:
    """Undo in `result` what may have changed: named nodes that differ, nodes and constants that are new."""
    for graph, old in zip(graphs(result), graphs(original), strict=True):
        names = {each.name for each in old.node}
        new = [each for each in graph.node if each.name not in names]
        for each in new:
            graph.node.remove(each)
        for now, before in zip(graph.node, old.node, strict=True):
            if before.op_type in ("Squeeze", "Unsqueeze", "Softmax"):
                now.CopyFrom(before)
        old_weights = len(old.initializer)
        assert list(graph.initializer)[:old_weights] == list(old.initializer)
        del graph.initializer[old_weights:]
    result.opset_import[0].version = original.opset_import[0].version


@pytest.mark.parametrize("parse", [onnx.ModelProto.FromString, ModelProto.FromString], ids=["onnx", "own"])
@pytest.mark.parametrize("inplace", [False, True], ids=["a copy", "in place"])
def test_all_but_the_changed_nodes_is_byte_for_byte_the_same(
    parse: Callable[[bytes], Any], inplace: bool
) -> None:
    original = parse(rich().SerializeToString())
    result = convert_version(parse(rich().SerializeToString()), 13, inplace=inplace)
    assert result.SerializeToString() != original.SerializeToString()
    put_back(result, original)
    assert result.SerializeToString(deterministic=True) == original.SerializeToString(deterministic=True)


def test_a_change_of_opset_without_a_changed_node_changes_nothing_else() -> None:
    model = rich()
    del model.graph.node[3]
    del model.graph.output[1]
    result = convert_version(model, 12)
    result.opset_import[0].version = 11
    assert result.SerializeToString() == model.SerializeToString()


def successor(model: Any, name: str) -> Any:
    (found,) = (each for each in model.graph.node if each.name == name)
    return found


@pytest.mark.parametrize("name", ["second", "fourth"], ids=["one node for one", "several nodes for one"])
def test_a_successor_has_the_name_and_notes_of_what_it_replaces(name: str) -> None:
    before = successor(rich(), name)
    after = successor(convert_version(rich(), 13), name)
    for field in ("name", "doc_string", "overload"):
        assert getattr(after, field) == getattr(before, field)
    assert list(after.metadata_props) == list(before.metadata_props)
    assert list(after.device_configurations) == list(before.device_configurations)
    assert after.SerializeToString().endswith(UNKNOWN)


def test_the_other_new_nodes_have_none_of_them() -> None:
    result = convert_version(rich(), 13)
    new = [each for each in result.graph.node if not each.name]
    assert [each.op_type for each in new] != []
    assert not any(each.doc_string or each.metadata_props for each in new)


def test_attributes_that_stay_keep_their_notes() -> None:
    model = rich()
    reduce = node("ReduceMean", ["a"], ["m"], "mean", axes=[1], keepdims=0)
    described(next(each for each in reduce.attribute if each.name == "keepdims"))
    model.graph.node.append(reduce)
    after = successor(convert_version(model, 18), "mean")
    (keepdims,) = after.attribute
    assert keepdims == next(each for each in reduce.attribute if each.name == "keepdims")
    assert keepdims.doc_string == "a note"


def test_what_replaces_a_node_stands_where_it_stood() -> None:
    result = convert_version(rich(), 13)
    kept = [each.name for each in result.graph.node if each.name]
    assert kept == [each.name for each in rich().graph.node]
    places = [i for i, each in enumerate(result.graph.node) if not each.name]
    third, fifth = (
        next(i for i, e in enumerate(result.graph.node) if e.name == n) for n in ("third", "fifth")
    )
    assert all(third < place < fifth for place in places)


def test_new_constants_come_after_the_weights_that_are_there() -> None:
    result = convert_version(rich(), 13)
    assert [each.name for each in result.graph.initializer][:2] == ["w", "unused"]
    assert len(result.graph.initializer) > 2


def test_training_graphs_are_converted() -> None:
    result = convert_version(rich(), 13)
    (info,) = result.training_info
    assert [len(each.input) for each in info.algorithm.node] == [2, 2]
    assert [(each.key, each.value) for each in info.update_binding] == [("w", "new")]


def test_no_inferred_types_are_added() -> None:
    model = rich()
    del model.graph.value_info[:]
    assert len(convert_version(model, 18).graph.value_info) == 0


def test_the_order_of_opset_imports_stays() -> None:
    model = rich()
    for each in reversed(model.opset_import):
        model.opset_import.add().CopyFrom(each)
    del model.opset_import[:2]
    result = convert_version(model, 13)
    assert [(each.domain, each.version) for each in result.opset_import] == [("com.acme", 2), ("", 13)]


def test_a_big_weight_is_kept_as_it_is_stored() -> None:
    """Typed fields stay typed fields, raw bytes stay raw bytes, and data elsewhere stays elsewhere."""
    model = rich()
    typed = helper.make_tensor("typed", FLOAT, [3], [1.0, 2.0, 3.0])
    elsewhere = TensorProto(
        name="elsewhere", data_type=FLOAT, dims=[1000], data_location=TensorProto.EXTERNAL
    )
    elsewhere.external_data.add(key="location", value="weights.bin")
    model.graph.initializer.extend([typed, elsewhere])
    after = {each.name: each for each in convert_version(model, 13).graph.initializer}
    assert after["typed"] == typed
    assert after["elsewhere"] == elsewhere


def test_the_signature_of_the_model_stays() -> None:
    model = rich()
    for target in (12, 13, 18, 21):
        result = convert_version(model, target)
        assert list(result.graph.input) == list(model.graph.input)
        assert list(result.graph.output) == list(model.graph.output)


def test_a_replacement_by_another_operator_has_the_name_too() -> None:
    upsample = node("Upsample", ["x"], ["y"], "upsample", mode="nearest", scales=[1.0, 2.0])
    result = convert_version(build([upsample], {"x": np.ones((2, 2), np.float32)}, ["y"], 8), 10)
    assert op_types(result) == ["Resize"]
    assert (result.graph.node[0].name, result.graph.node[0].doc_string) == ("upsample", "on upsample")
