"""Models of onnx_ir and programs of PyTorch as input and output, and the pass for onnx_ir."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper, numpy_helper, parser
from onnx_ir import passes
from onnx_ir.passes.common import RemoveUnusedNodesPass, TopologicalSortPass
from support.execution import assert_equal, op_types, run
from support.forms import RANKED_FORMS, in_form
from test_public_api import modules_after

import opshift
from opshift.compat.onnx_ir import ConvertVersionPass
from opshift.model.offloaded_tensors import STORES

SIDE = 32
WEIGHT = np.linspace(-1, 1, SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE)
FEEDS = {"x": np.linspace(-9, 9, 4 * SIDE, dtype=np.float32).reshape(4, SIDE), "flag": np.array(False)}
TEXT = f"""<ir_version: 8, opset_import: ["": 11, "local": 1], producer_name: "tests", doc_string: "a model",
    metadata_props: ["key": "value"]>
g (float[4, {SIDE}] x, bool flag) => (float[N, {SIDE}] y) {{
    a = MatMul (x, w)
    b = local.f (a)
    c = If (flag) <
        then_branch = t () => (float[4, {SIDE}] d) {{ d = Softmax <axis = 1> (b) }},
        else_branch = e () => (float[4, {SIDE}] e) {{ e = MatMul (b, v) }}
    >
    shape = Constant <value = int64[2] {{4, {SIDE}}}> ()
    reshaped = Reshape (c, shape)
    y = Clip (reshaped, low, high)
}}
<domain: "local", opset_import: ["": 11]> f (p) => (r) {{
    s = Constant ()
    q = MatMul (p, s)
    r = Softmax <axis = 1> (q)
}}"""


def proto() -> onnx.ModelProto:
    """Return a model with large weights in the graph, in a function and in a branch, and small ones."""
    model: onnx.ModelProto = parser.parse_model(TEXT)
    model.functions[0].node[0].attribute.append(
        helper.make_attribute("value", numpy_helper.from_array(WEIGHT))
    )
    model.functions[0].value_info.append(helper.make_tensor_value_info("q", 1, [4, SIDE]))
    model.graph.initializer.append(numpy_helper.from_array(WEIGHT.T, "w"))
    model.graph.initializer.append(numpy_helper.from_array(np.float32(-2), "low"))
    model.graph.initializer.append(numpy_helper.from_array(np.float32(3), "high"))
    branch = model.graph.node[2].attribute[1].g
    branch.initializer.append(numpy_helper.from_array(WEIGHT[::-1], "v"))
    model.graph.node[0].doc_string = "a node"
    model.graph.node[0].metadata_props.add(key="layer", value="1")
    model.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    model.graph.quantization_annotation.add(tensor_name="w").quant_parameter_tensor_names.add(
        key="SCALE_TENSOR", value="high"
    )
    return model


def producer(graph: ir.Graph | ir.Function, name: str) -> ir.Node:
    return next(node for node in graph for output in node.outputs if output.name == name)


def branch_of(model: ir.Model) -> ir.Graph:
    return producer(model.graph, "c").attributes["else_branch"].as_graph()


def tensors(model: ir.Model) -> list[Any]:
    """Return the tensors of `proto`."""
    function = model.functions["local", "f", ""]
    initializers = (*model.graph.initializers.values(), *branch_of(model).initializers.values())
    return [
        *(each.const_value for each in initializers),
        producer(function, "s").attributes["value"].as_tensor(),
    ]


def saved(model: ir.Model) -> bytes:
    data: bytes = ir.to_proto(model).SerializeToString(deterministic=True)
    return data


def unreadable() -> NoReturn:
    raise RuntimeError("the tensor was read")


def with_lazy_weight(dims: tuple[int, int], read: Callable[[], Any] = unreadable) -> ir.Model:
    """Return a model with a weight that `read` returns."""
    weight = ir.LazyTensor(read, dtype=ir.DataType.FLOAT, shape=ir.Shape(dims), name="w")
    model: ir.Model = ir.from_proto(
        parser.parse_model(
            f"""<ir_version: 8, opset_import: ["": 11]> g (float[N, {dims[0]}] x) => (float[N, M] y) {{
            a = MatMul (x, w)
            y = Softmax <axis = 1> (a) }}"""
        )
    )
    value = producer(model.graph, "a").inputs[1]
    assert value is not None
    value.const_value = weight
    model.graph.register_initializer(value)
    return model


@pytest.mark.parametrize("target", [13, 17, 21, 9])
def test_computes_the_same_in_all_scopes(target: int) -> None:
    model = ir.from_proto(proto())
    converted = opshift.convert_version(model, target)
    assert type(converted) is ir.Model
    assert converted.opset_imports[""] == target
    expected = opshift.convert_version(proto(), target)
    assert op_types(ir.to_proto(converted)) == op_types(expected)
    for flag in (True, False):
        feeds = {**FEEDS, "flag": np.array(flag)}
        assert_equal(run(ir.to_proto(converted), feeds), run(proto(), feeds))


@pytest.mark.parametrize("form", RANKED_FORMS)
def test_computes_the_same_in_all_forms(form: str) -> None:
    nodes = [helper.make_node("Clip", ["x", "low", "high"], ["y"])]
    arrays = {"x": FEEDS["x"], "low": np.array(-3, np.float32), "high": np.array(2, np.float32)}
    model, feeds = in_form(form, nodes, arrays, {"y": 1}, 13)
    for target in (21, 11):
        converted = opshift.convert_version(ir.from_proto(model), target)
        assert_equal(run(ir.to_proto(converted), feeds), run(model, feeds))


def test_tensors_are_the_original_objects() -> None:
    model = ir.from_proto(proto())
    converted = opshift.convert_version(model, 13)
    assert len(tensors(model)) == 5
    for found, expected in zip(tensors(converted), tensors(model), strict=True):
        assert found is expected


def test_neither_reads_nor_copies_weights() -> None:
    model = with_lazy_weight((1 << 20, 1 << 20))  # 4 TB
    for converted in (opshift.convert_version(model, 13), opshift.convert(model, 13).model):
        assert converted.opset_imports[""] == 13
        assert converted.graph.initializers["w"].const_value is model.graph.initializers["w"].const_value
    assert opshift.plan_version(model, 13).refusals == ()
    assert opshift.diagnose(model).stamps
    assert opshift.common_opset([model, model]).highest == opshift.default_registry().newest_opset()
    assert opshift.restamp(model).opset_imports[""] == 11
    assert not STORES


def test_external_tensors_keep_their_files(tmp_path: Path) -> None:
    ir.save(ir.from_proto(proto()), tmp_path / "a.onnx", external_data="a.data", size_threshold_bytes=1)
    model = ir.load(tmp_path / "a.onnx")
    converted = opshift.convert_version(model, 13)
    weight = converted.graph.initializers["w"].const_value
    assert isinstance(weight, ir.ExternalTensor)
    assert weight is model.graph.initializers["w"].const_value
    ir.save(converted, tmp_path / "b.onnx")
    assert_equal(run(onnx.load(tmp_path / "b.onnx"), FEEDS), run(proto(), FEEDS))


def test_reads_a_weight_that_a_rewrite_needs() -> None:
    packed = np.arange(-8, 8, dtype=np.int8).repeat(SIDE * 8)
    weight = ir.tensor(packed, dtype=ir.DataType.INT4, name="w")
    model = ir.from_proto(
        parser.parse_model(
            f"""<ir_version: 10, opset_import: ["": 21]> g (float[1] x) => (float[{packed.size}] y) {{
            s = Constant <value = float {{0.5}}> ()
            d = DequantizeLinear (w, s)
            y = Add (d, x) }}"""
        )
    )
    value = producer(model.graph, "d").inputs[0]
    assert value is not None
    value.const_value = ir.LazyTensor(
        lambda: weight, dtype=weight.dtype, shape=ir.Shape(packed.shape), name="w"
    )
    model.graph.register_initializer(value)
    converted = ir.to_proto(opshift.convert_version(model, 13))
    feeds = {"x": np.ones(1, np.float32)}
    assert_equal(run(converted, feeds), [packed * np.float32(0.5) + 1])


def test_keeps_texts_metadata_and_types() -> None:
    converted = opshift.convert_version(ir.from_proto(proto()), 13)
    assert (converted.producer_name, converted.doc_string) == ("tests", "a model")
    assert converted.metadata_props == {"key": "value"}
    node = producer(converted.graph, "a")
    assert (node.doc_string, node.metadata_props) == ("a node", {"layer": "1"})
    assert str(converted.graph.outputs[0].shape) == f"[N,{SIDE}]"
    shape = converted.graph.inputs[0].shape
    assert shape is not None
    assert shape.get_denotation(0) == "DATA_BATCH"
    assert producer(converted.functions["local", "f", ""], "q").outputs[0].dtype == ir.DataType.FLOAT
    assert ir.to_proto(converted).graph.quantization_annotation[0].tensor_name == "w"


def test_keeps_data_that_is_not_serialized() -> None:
    model = ir.from_proto(proto())
    function = ("local", "f", "")

    def owners(each: ir.Model) -> list[Any]:
        inner = branch_of(each)
        nodes = producer(each.graph, "a"), producer(inner, "e"), producer(each.functions[function], "q")
        values = each.graph.inputs[0], nodes[0].outputs[0], producer(each.functions[function], "r").outputs[0]
        return [each, each.graph, inner, each.functions[function], *nodes, *values]

    for number, owner in enumerate(owners(model)):
        owner.meta["number"] = number
    model.graph.meta.invalidate("number")
    converted = opshift.convert_version(model, 13)
    assert [owner.meta["number"] for owner in owners(converted)] == list(range(10))
    assert not converted.graph.meta.is_valid("number")
    assert converted.meta.is_valid("number")


def test_keeps_strings_and_empty_tensors() -> None:
    model = ir.from_proto(
        parser.parse_model(
            """<ir_version: 8, opset_import: ["": 11]> g (string[2] x) => (bool[2] z, float[0] e, int64[1] y)
            <string[2] s = {"a", "b"}, float[0] e0 = {}> {
            z = Equal (x, s)
            e = Identity (e0)
            m = Constant <value = string[1] {"c"}> ()
            y = Shape (m) }"""
        )
    )
    converted = ir.to_proto(opshift.convert_version(model, 19))
    by_name = {each.name: each for each in converted.graph.initializer}
    assert list(by_name["s"].string_data) == [b"a", b"b"]
    assert numpy_helper.to_array(by_name["e0"]).shape == (0,)
    assert converted.graph.node[-2].attribute[0].t.string_data == [b"c"]


def test_keeps_devices_of_models_with_an_older_ir_version() -> None:
    model = ir.from_proto(proto())
    model.add_device_configuration("cpu", num_devices=2)
    assert [each.name for each in opshift.convert_version(model, 13).device_configurations] == ["cpu"]


def test_does_not_modify_its_argument() -> None:
    model = ir.from_proto(proto())
    model.graph.initializers["w"].const_value = ir.tensor(WEIGHT.T, name="another name")
    before, nodes = saved(ir.from_proto(ir.to_proto(model))), list(model.graph)
    model.graph.initializers["w"].const_value = ir.tensor(WEIGHT.T, name="another name")
    opshift.convert_version(model, 13)
    opshift.check(model)
    assert model.graph.initializers["w"].const_value.name == "another name"
    assert list(model.graph) == nodes
    assert saved(model) == before


def test_inplace_modifies_the_same_object() -> None:
    model = ir.from_proto(proto())
    expected = saved(opshift.convert_version(model, 13))
    originals = tensors(model)
    assert opshift.convert_version(model, 13, inplace=True) is model
    assert saved(model) == expected
    assert all(map(lambda one, other: one is other, tensors(model), originals))
    graph = model.graph
    assert opshift.convert_version(model, 13, inplace=True) is model
    assert model.graph is graph


def test_refused_conversion_leaves_the_model_unchanged() -> None:
    model = ir.from_proto(proto())
    node = ir.Node("", "ImageDecoder", [model.graph.inputs[0]], num_outputs=1)
    model.graph.append(node)
    model.graph.opset_imports[""] = 20
    before, graph = saved(model), model.graph
    with pytest.raises(opshift.ConversionRefused, match="ImageDecoder"):
        opshift.convert_version(model, 13, inplace=True)
    assert (saved(model), model.graph) == (before, graph)
    assert not STORES


def test_functions_that_read_models_accept_it() -> None:
    model = ir.from_proto(proto())
    converted = opshift.convert_version(model, 13)
    model.graph.opset_imports[""] = 9
    rules = {each.rule for each in opshift.check(model)}
    assert "node.input-count" in rules
    model.graph.opset_imports[""] = 11
    assert opshift.verify(model, converted).equal
    rules = {each.rule for each in opshift.compare(model, converted).changes}
    assert "OPSET_RAISED" in rules
    assert opshift.diagnose(model).stamps == opshift.diagnose(ir.to_proto(model)).stamps
    assert opshift.convert(model, 13).report == opshift.convert(ir.to_proto(model), 13).report
    assert opshift.plan_version(model, 7).refusals == opshift.plan_version(ir.to_proto(model), 7).refusals


def test_reversible_conversion_restores_nodes() -> None:
    model = ir.from_proto(proto())
    there = opshift.convert_version(model, 13, reversible=True)
    assert op_types(ir.to_proto(opshift.convert_version(there, 11))) == op_types(proto())


def test_restamp_returns_the_same_class() -> None:
    model = ir.from_proto(proto())
    model.graph.opset_imports[""] = 9  # Clip has inputs since opset 11
    restamped = opshift.restamp(model)
    assert restamped.opset_imports[""] >= 11
    assert tensors(restamped)[0] is tensors(model)[0]
    assert model.opset_imports[""] == 9
    assert opshift.restamp(model, inplace=True) is model


def test_writes_models_with_all_tensors(tmp_path: Path) -> None:
    opshift.write_model(opshift.convert_version(ir.from_proto(proto()), 13), tmp_path / "model.onnx")
    assert_equal(run(onnx.load(tmp_path / "model.onnx"), FEEDS), run(proto(), FEEDS))
    with pytest.raises(opshift.InvalidModel, match="got Graph"):
        opshift.write_model(ir.from_proto(proto()).graph, tmp_path / "model.onnx")


class Program:
    """Program like `torch.onnx.ONNXProgram`."""

    def __init__(self, model: ir.Model, exported_program: object) -> None:
        self.model, self.exported_program = model, exported_program
        self.released = 0

    def release(self) -> None:
        self.released += 1


def test_converts_programs_of_pytorch() -> None:
    program = Program(ir.from_proto(proto()), "exported")
    model = program.model
    converted = opshift.convert_version(program, 13)
    assert (type(converted), converted.exported_program) == (Program, "exported")
    assert converted.model.opset_imports[""] == 13
    assert program.model.opset_imports[""] == 11
    assert program.released == 0
    assert opshift.convert_version(program, 13, inplace=True) is program
    assert program.model is model
    assert model.opset_imports[""] == 13
    assert program.released == 1
    assert opshift.plan_version(program, 13).opsets == ()


def test_pass_converts_in_place() -> None:
    model = ir.from_proto(proto())
    convert = ConvertVersionPass(13)
    assert (convert.in_place, convert.changes_input) == (True, True)
    result = convert(model)
    assert result.model is model
    assert result.modified
    assert model.opset_imports[""] == 13
    assert not convert(model).modified
    assert_equal(run(ir.to_proto(model), FEEDS), run(proto(), FEEDS))


def test_pass_works_with_other_passes() -> None:
    others = TopologicalSortPass(), RemoveUnusedNodesPass()
    for combined in (
        passes.Sequential(others[0], ConvertVersionPass(target="onnx-1.8"), others[1]),
        passes.PassManager([ConvertVersionPass(13), *others], steps=3),
        passes.functionalize(ConvertVersionPass(13)),
    ):
        result = combined(ir.from_proto(proto()))
        assert result.modified
        assert result.model.opset_imports[""] == 13
        assert_equal(run(ir.to_proto(result.model), FEEDS), run(proto(), FEEDS))


def test_pass_raises_the_reason_of_a_refusal() -> None:
    model = ir.from_proto(proto())
    model.graph.append(ir.Node("", "ImageDecoder", [model.graph.inputs[0]]))
    model.graph.opset_imports[""] = 20
    with pytest.raises(passes.PassError) as caught:
        passes.Sequential(ConvertVersionPass(13))(model)
    assert isinstance(caught.value.__cause__, opshift.ConversionRefused)
    with pytest.raises(opshift.OpshiftError, match="99"):
        ConvertVersionPass(99)


def test_unreadable_tensor_is_one_clear_error() -> None:
    model = with_lazy_weight((2, 2))
    with pytest.raises(
        opshift.InvalidModel, match="tensor 'w': cannot be read: the tensor was read"
    ) as caught:
        opshift.convert_version(model, 13)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(opshift.InvalidModel, match="the tensor was read"):
        opshift.verify(with_lazy_weight((SIDE, SIDE)), proto())


def test_tensor_of_another_size_is_refused() -> None:
    model = with_lazy_weight((2, 2), lambda: ir.tensor(WEIGHT))
    with pytest.raises(opshift.InvalidModel, match="has 4,096 bytes; its type and shape require 16"):
        opshift.convert_version(model, 13)


def test_model_that_onnx_ir_cannot_serialize_is_refused() -> None:
    model = ir.from_proto(proto())
    model.graph.inputs.append(ir.Value(name="z", type=object()))  # type: ignore[arg-type]
    with pytest.raises(opshift.InvalidModel, match="onnx_ir cannot serialize the model"):
        opshift.convert_version(model, 13)


def test_initializer_without_tensor_is_refused() -> None:
    model = ir.from_proto(proto())
    model.graph.initializers["w"].const_value = None
    with pytest.raises(opshift.InvalidModel, match="w"):
        opshift.convert_version(model, 13)


@pytest.mark.parametrize("part", ["graph", "node", "holder"])
def test_other_classes_are_refused(part: str) -> None:
    model = ir.from_proto(proto())

    class Holder:
        def __init__(self) -> None:
            self.model = model

    given: Any = {"graph": model.graph, "node": next(iter(model.graph)), "holder": Holder()}[part]
    with pytest.raises(opshift.InvalidModel, match=rf"got {type(given).__name__}.*onnx_ir\.Model"):
        opshift.convert_version(given, 13)


def test_other_models_do_not_import_onnx_ir() -> None:
    loaded = modules_after(
        "import opshift; m = opshift.ModelProto(); m.graph.name = 'g'; m.opset_import.add().version = 13\n"
        "assert opshift.convert_version(m, 17).opset_import[0].version == 17"
    )
    assert [each for each in loaded if "onnx_ir" in each] == []
