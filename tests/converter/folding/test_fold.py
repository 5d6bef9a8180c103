"""Folding of constants, and removal of nodes without an effect."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.execution import op_types, run, run_reference

import opshift
from opshift import convert, convert_file, convert_many, convert_version, simplify
from opshift.converter.folding.dead_nodes import RemovalRules, remove_dead_nodes
from opshift.converter.folding.decisions import Budget
from opshift.model.node import Tensor

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def model_of(
    *nodes: onnx.NodeProto,
    shape: Sequence[int | str | None] = (3, 4),
    outputs: Sequence[str] = ("y",),
    ir_version: int = 8,
    opset: int = 17,
    **initializers: Any,
) -> onnx.ModelProto:
    tensors = [numpy_helper.from_array(np.asarray(each), name) for name, each in initializers.items()]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "g", [x], [onnx.ValueInfoProto(name=each) for each in outputs], tensors)
    model = helper.make_model(graph, ir_version=ir_version, opset_imports=[helper.make_opsetid("", opset)])
    if ir_version < 4:
        add_inputs(model)
    return model


def add_inputs(model: onnx.ModelProto) -> None:
    for each in model.graph.initializer:
        model.graph.input.append(helper.make_tensor_value_info(each.name, each.data_type, each.dims))


def node(op_type: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, inputs.split(), outputs.split(), **attributes)


SIZES = (
    node("Shape", "x", "s"),
    node("Gather", "s zero", "first", axis=0),
    node("Concat", "first minus", "dims", axis=0),
    node("Reshape", "x dims", "r"),
    node("Relu", "r", "y"),
)
ZERO_AND_MINUS: dict[str, Any] = {"zero": np.array([0]), "minus": np.array([-1])}


def test_sizes_become_initializers() -> None:
    model = model_of(*SIZES, shape=(3, 2, 2), **ZERO_AND_MINUS)
    conversion = convert(model, fold=True)
    result, report = conversion.model, conversion.report
    assert op_types(result) == ["Reshape", "Relu"]
    assert [each.name for each in result.graph.initializer] == ["dims"]
    assert numpy_helper.to_array(result.graph.initializer[0]).tolist() == [3, -1]
    assert report.repairs == ("folding: 1 value becomes a constant, and 2 of 5 nodes remain",)
    assert np.array_equal(run(result, {"x": X.reshape(3, 2, 2)})[0], X)


def test_shapes_that_the_caller_declares_are_used() -> None:
    model = model_of(*SIZES, shape=("N", 2, 2), **ZERO_AND_MINUS)
    assert len(simplify(model).graph.node) == 5
    result = simplify(model, shapes={"x": (3, 2, 2)})
    assert op_types(result) == ["Reshape", "Relu"]
    assert result.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 3


def test_folds_before_a_conversion() -> None:
    model = model_of(*SIZES, shape=(3, 2, 2), **ZERO_AND_MINUS)
    result = convert_version(model, 13, fold=True)
    assert op_types(result) == ["Reshape", "Relu"]
    assert result.opset_import[0].version == 13
    assert len(convert_version(model, 13).graph.node) == 5
    assert opshift.plan_version(model, 13, fold=True).graph.node_count == 2


NO_OPS: dict[str, tuple[str, dict[str, Any], int]] = {
    "Identity": ("a", {}, 17),
    "Dropout": ("a", {}, 17),
    "Dropout in inference": ("a ratio false", {}, 17),
    "old Dropout in inference": ("a", {"is_test": 1}, 6),
    "Cast": ("a", {"to": TensorProto.FLOAT}, 17),
    "CastLike": ("a x", {}, 17),
    "Transpose": ("a", {"perm": [0, 1]}, 17),
    "Reshape": ("a same", {}, 17),
    "Expand": ("a same", {}, 17),
    "Tile": ("a ones", {}, 17),
    "Flatten": ("a", {}, 17),
    "Slice": ("a zeros far", {}, 17),
    "Pad": ("a none", {}, 17),
    "Concat": ("a", {"axis": 1}, 17),
    "Sum": ("a", {}, 17),
    "Max": ("a", {}, 17),
    "Squeeze": ("a", {}, 17),
    "Mul by 1": ("a one", {}, 17),
    "Mul of 1": ("row a", {}, 17),
    "Div": ("a row", {}, 17),
    "Sub of 0": ("a zero", {}, 17),
    "Add of -0.0": ("minus_zero a", {}, 17),
}
OPERANDS: dict[str, Any] = {
    "same": np.array([3, 4]),
    "ones": np.array([1, 1]),
    "zeros": np.array([0, 0]),
    "far": np.array([9, 2**63 - 1]),
    "none": np.zeros(4, np.int64),
    "ratio": np.float32(0.5),
    "false": np.array(False),
    "one": np.float32(1),
    "row": np.ones((1, 4), np.float32),
    "zero": np.zeros(1, np.float32),
    "minus_zero": np.float32(-0.0),
}


@pytest.mark.parametrize("name", NO_OPS)
def test_removes_nodes_that_return_their_input(name: str) -> None:
    inputs, attributes, opset = NO_OPS[name]
    op_type = next(each for each in name.split() if each[0].isupper())
    nodes = node("Neg", "x", "a"), node(op_type, inputs, "b", **attributes), node("Relu", "b", "y")
    used = {each: value for each, value in OPERANDS.items() if each in inputs.split()}
    result = simplify(model_of(*nodes, opset=opset, **used))
    assert op_types(result) == ["Neg", "Relu"]
    assert not result.graph.initializer


CHANGING: dict[str, tuple[str, dict[str, Any], int]] = {
    "Dropout": ("a ratio true", {}, 17),
    "old Dropout": ("a", {}, 6),
    "Cast": ("a", {"to": TensorProto.DOUBLE}, 17),
    "Transpose": ("a", {}, 17),
    "Reshape": ("a other", {}, 17),
    "Slice of backward steps": ("a last first axes back", {}, 17),
    "Pad of equal shape": ("a moved", {}, 17),
    "Concat": ("a a", {"axis": 0}, 17),
    "Add of 0.0": ("a zero", {}, 17),
    "Sub of -0.0": ("a minus_zero", {}, 17),
    "Sub from 0": ("zero a", {}, 17),
    "Div of 1": ("row a", {}, 17),
    "Mul by 1 in a different shape": ("a cube", {}, 17),
    "Mul by 1 and 2": ("a mixed", {}, 17),
    "Mul before version 7": ("a one", {"broadcast": 1}, 6),
}


@pytest.mark.parametrize("name", CHANGING)
def test_keeps_nodes_that_change_their_input(name: str) -> None:
    inputs, attributes, opset = CHANGING[name]
    op_type = next(each for each in name.split() if each[0].isupper())
    operands: dict[str, Any] = {
        "ratio": np.float32(0.5),
        "true": np.array(True),
        "other": np.array([4, 3]),
        "last": np.array([-1]),
        "first": np.array([-9]),
        "axes": np.array([0]),
        "back": np.array([-1]),
        "moved": np.array([1, 0, -1, 0]),
        "one": np.ones(1, np.float32),
        "zero": np.zeros(1, np.float32),
        "minus_zero": np.float32(-0.0),
        "row": np.ones((1, 4), np.float32),
        "cube": np.ones((1, 1, 1), np.float32),
        "mixed": np.array([1, 1, 1, 2], np.float32),
    }
    nodes = node("Neg", "x", "a"), node(op_type, inputs, "b", **attributes), node("Neg", "b", "y")
    used = {each: value for each, value in operands.items() if each in inputs.split()}
    assert op_types(simplify(model_of(*nodes, opset=opset, **used))) == ["Neg", op_type, "Neg"]


def test_transpose_of_empty_perm_stays() -> None:
    transpose = node("Transpose", "x", "a")
    transpose.attribute.add(name="perm", type=onnx.AttributeProto.INTS)
    model = model_of(transpose, node("Relu", "a", "y"))
    assert np.array_equal(run_reference(simplify(model), {"x": X})[0], X.T)


@pytest.mark.parametrize(
    ("attributes", "shape", "opset", "kept"),
    [
        pytest.param({}, [4, 3], 17, ["Relu", "Reshape"], id="numbers"),
        pytest.param({}, [-1, 6], 17, ["Relu", "Reshape"], id="inferred size"),
        pytest.param({}, [0, 2], 17, ["Relu", "Reshape", "Reshape"], id="copied size"),
        pytest.param({"allowzero": 1}, [6, 2], 17, ["Relu", "Reshape"], id="allowed zero"),
    ],
)
def test_reshapes_of_reshapes_read_the_original(
    attributes: dict[str, int], shape: list[int], opset: int, kept: list[str]
) -> None:
    nodes = (
        node("Relu", "x", "a"),
        node("Reshape", "a first", "b"),
        node("Reshape", "b second", "y", **attributes),
    )
    model = model_of(*nodes, opset=opset, first=np.array([6, 2]), second=np.array(shape))
    result = simplify(model)
    assert op_types(result) == kept
    assert np.array_equal(run(result, {"x": X})[0], run(model, {"x": X})[0])


def test_reshapes_of_values_that_others_read_stay() -> None:
    nodes = (
        node("Relu", "x", "a"),
        node("Reshape", "a first", "b"),
        node("Reshape", "b second", "c"),
        node("Exp", "b", "d"),
        node("Reshape", "d second", "e"),
        node("Add", "c e", "y"),
    )
    model = model_of(*nodes, first=np.array([6, 2]), second=np.array([4, 3]))
    result = simplify(model)
    assert op_types(result) == [each.op_type for each in nodes]


def test_outputs_keep_their_names() -> None:
    nodes = node("Identity", "x", "y"), node("Shape", "x", "z")
    result = simplify(model_of(*nodes, outputs=("y", "z")))
    assert op_types(result) == ["Identity", "Constant"]
    assert [each.name for each in result.graph.output] == ["y", "z"]


def test_constants_keep_descriptions_of_nodes() -> None:
    nodes = node("Shape", "x", "z"), node("Relu", "x", "y")
    model = model_of(*nodes, outputs=("y", "z"), ir_version=10)
    model.graph.node[0].doc_string, model.graph.node[0].name = "sizes", "shape"
    model.graph.node[0].metadata_props.add(key="namespace", value="layer1")
    (constant,) = (each for each in simplify(model).graph.node if each.op_type == "Constant")
    assert (constant.name, constant.doc_string) == ("shape", "sizes")
    assert [(each.key, each.value) for each in constant.metadata_props] == [("namespace", "layer1")]


NANS = {
    "float": (TensorProto.FLOAT, "<u4", (0x7F800001, 0xFFC00000, 0x7FC00000)),
    "float16": (TensorProto.FLOAT16, "<u2", (0x7E01, 0xFE01, 0xFE00, 0x7C01)),
    "bfloat16": (TensorProto.BFLOAT16, "<u2", (0x7FC1, 0xFFC1, 0xFFC0, 0x7F81)),
    "double": (TensorProto.DOUBLE, "<u8", (0x7FF0000000000001, 0xFFF8000000000000)),
}
"""Element type, type of its bits, and the bits of several NaNs, also of signaling ones."""


@pytest.mark.parametrize(("element_type", "dtype", "bits"), NANS.values(), ids=NANS)
def test_folding_keeps_bits_of_nans(element_type: int, dtype: str, bits: tuple[int, ...]) -> None:
    indices = range(len(bits))
    moved = [node("Reshape", f"w{i} size", f"a{i}") for i in indices]
    negated = [node("Neg", f"w{i}", f"b{i}") for i in indices]  # equal nodes are shared
    joined = [node("Concat", " ".join(f"{name}{i}" for i in indices), f"{name}", axis=0) for name in "ab"]
    model = model_of(*moved, *negated, *joined, outputs=("a", "b"), size=np.array([1]))
    for i, each in enumerate(np.array(bits, dtype)):
        model.graph.initializer.add(name=f"w{i}", data_type=element_type, dims=[1], raw_data=each.tobytes())
    expected, found = (run_reference(each, {"x": X}) for each in (model, simplify(model)))
    assert [each.tobytes() for each in found] == [each.tobytes() for each in expected]


def test_overridable_initializers_are_not_constant() -> None:
    nodes = node("Add", "a b", "c"), node("Reshape", "x c", "r"), node("Relu", "r", "y")
    model = model_of(*nodes, a=np.array([1, 6]), b=np.array([1, 0]))
    assert op_types(simplify(model)) == ["Reshape", "Relu"]
    add_inputs(model)
    assert simplify(model).SerializeToString() == model.SerializeToString()


@pytest.mark.parametrize("keeps", [False, True])
def test_old_initializers_are_constant(keeps: bool) -> None:
    nodes = node("Add", "a b", "c"), node("Reshape", "x c", "r"), node("Relu", "r", "y")
    model = model_of(*nodes, ir_version=3, opset=9, a=np.array([1, 6]), b=np.array([1, 0]))
    result = simplify(model, keep_initializer_inputs=keeps)
    assert op_types(result) == ["Add" if keeps else "Constant", "Reshape", "Relu"]
    assert [each.name for each in result.graph.input] == ["x", "a", "b"]
    raised = convert_version(model, 13, fold=True, keep_initializer_inputs=keeps)
    assert [each.name for each in raised.graph.input] == (["x", "a", "b"] if keeps else ["x"])
    assert len(raised.graph.initializer) == (2 if keeps else 0)


def test_integers_stay_computed_where_no_constant_can_hold_them() -> None:
    nodes = node("Shape", "x", "s"), node("Reshape", "x s", "r"), node("Relu", "r", "y")
    model = model_of(*nodes, shape=(3, 4), ir_version=3, opset=8)
    assert op_types(simplify(model)) == ["Relu"]
    model = model_of(*SIZES, shape=(3, 2, 2), ir_version=3, opset=8, **ZERO_AND_MINUS)
    assert op_types(simplify(model)) == [each.op_type for each in SIZES]


def test_equal_nodes_are_shared() -> None:
    nodes = [node("Neg", "x", "a"), node("Neg", "x", "b"), node("Add", "a b", "y")]
    assert op_types(simplify(model_of(*nodes))) == ["Neg", "Add"]
    random = [node("RandomUniformLike", "x", each) for each in "ab"]
    assert len(simplify(model_of(*random, nodes[-1])).graph.node) == 3


def test_equal_sizes_are_shared() -> None:
    nodes = [
        node("Neg", "x", "a"),
        node("Shape", "a", "s"),
        node("Shape", "x", "t"),
        node("Reshape", "a s", "b"),
        node("ConstantOfShape", "t", "c"),
        node("Add", "b c", "y"),
    ]
    model = model_of(*nodes, shape=("N", 4))
    assert op_types(simplify(model)) == ["Neg", "Shape", "ConstantOfShape", "Add"]


def test_claims_about_computed_values_are_not_trusted_if_sizes_vary() -> None:
    nodes = node("custom", "x", "a", domain="d"), node("Shape", "a", "s"), node("Reshape", "x s", "y")
    for size, expected in (("N", 3), (3, 2)):
        model = model_of(*nodes, shape=(size, 4))
        model.opset_import.append(helper.make_opsetid("d", 1))
        model.graph.value_info.append(helper.make_tensor_value_info("a", TensorProto.FLOAT, [3, 4]))
        assert len(simplify(model).graph.node) == expected


def test_removes_what_no_output_depends_on() -> None:
    nodes = node("Relu", "x", "y"), node("Add", "x w", "dead"), node("custom", "x", "effect", domain="d")
    model = model_of(*nodes, w=X, unread=X)
    model.opset_import.append(helper.make_opsetid("d", 1))
    model.graph.value_info.append(helper.make_tensor_value_info("dead", TensorProto.FLOAT, [3, 4]))
    result = simplify(model)
    assert op_types(result) == ["Relu", "custom"]
    assert not result.graph.initializer
    assert not result.graph.value_info


@pytest.mark.parametrize("domain", ["d", ""])
def test_removes_dead_calls_of_functions_without_unknown_operators(domain: str) -> None:
    nodes = node("Relu", "x", "y"), node("outer", "x", "z", domain="f")
    model = model_of(*nodes)
    imports = [helper.make_opsetid(each, 1) for each in ("d", "f")] + [*model.opset_import]
    inner = node("inner", "a", "b", domain="f"), node("Neg", "a", "b", domain=domain)
    for name, body in zip(("outer", "inner"), inner, strict=True):
        model.functions.append(helper.make_function("f", name, ["a"], ["b"], [body], imports))
    model.opset_import.extend(imports[:2])
    assert len(simplify(model).graph.node) == (2 if domain else 1)


def test_large_weights_are_copied_from_file_to_file(tmp_path: Path) -> None:
    weights = np.arange(1 << 18, dtype=np.float32)
    constant = helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(weights))
    nodes = constant, node("ReduceSum", "w", "t"), node("Add", "x t", "u"), node("Add", "u v", "y")
    model = model_of(*nodes, v=weights[:1], unread=weights + 1)
    onnx.save(model, tmp_path / "m.onnx")
    convert_file(tmp_path / "m.onnx", tmp_path / "n.onnx", fold=True)
    expected = simplify(model)
    assert [each.name for each in expected.graph.initializer] == ["v", "w"]
    assert onnx.load(tmp_path / "n.onnx") == expected


def branches(*nodes: onnx.NodeProto, output: str) -> onnx.NodeProto:
    graphs = {
        each: helper.make_graph(nodes, each, [], [onnx.ValueInfoProto(name=output)])
        for each in ("then_branch", "else_branch")
    }
    return helper.make_node("If", ["flag"], ["y"], **graphs)


def test_captured_values_are_renamed_in_subgraphs() -> None:
    nodes = node("Neg", "x", "a"), node("Identity", "a", "b"), branches(node("Relu", "b", "c"), output="c")
    model = model_of(*nodes, flag=np.array(True))
    add_inputs(model)  # callers can override the condition
    result = simplify(model)
    assert op_types(result) == ["Neg", "If"]
    assert result.graph.node[1].attribute[0].g.node[0].input[0] == "a"


def test_names_that_a_subgraph_defines_again_do_not_replace_others() -> None:
    inner = node("Relu", "b", "a"), node("Neg", "a", "c")
    nodes = node("Neg", "x", "a"), node("Identity", "a", "b"), branches(*inner, output="c")
    model = model_of(*nodes, flag=np.array(True))
    add_inputs(model)
    assert op_types(simplify(model)) == ["Neg", "Identity", "If"]


def test_states_that_training_updates_are_not_constant() -> None:
    nodes = [node("Add", "a b", "c"), node("Dropout", "x", "d"), node("Reshape", "d c", "y")]
    model = model_of(*nodes, a=np.array([1, 6]), b=np.array([1, 0]), unread=X)
    info = model.training_info.add()
    info.algorithm.name = "step"
    info.algorithm.node.append(node("Neg", "c", "new"))
    info.algorithm.output.append(onnx.ValueInfoProto(name="new"))
    info.update_binding.add(key="a", value="new")
    assert simplify(model).SerializeToString() == model.SerializeToString()


@pytest.mark.parametrize(("numbers", "nodes"), [((1, 1), 2), ((1, 2), 3)], ids=["equal", "different"])
def test_large_tensors_in_attributes_are_compared(
    numbers: tuple[int, int], nodes: int, tmp_path: Path
) -> None:
    keys = helper.make_tensor("", TensorProto.FLOAT, [1000], np.arange(1000, dtype=np.float32), raw=False)
    encoders = []
    for name, number in zip("ab", numbers, strict=True):
        values = numpy_helper.from_array(np.full(1000, number, np.float32))
        default = numpy_helper.from_array(np.zeros(1, np.float32))
        tensors = {"keys_tensor": keys, "values_tensor": values, "default_tensor": default}
        encoders.append(helper.make_node("LabelEncoder", ["x"], [name], domain="ai.onnx.ml", **tensors))
    # files of a megabyte are read without the tensors
    model = model_of(*encoders, node("Sub", "a b", "y"), unread=np.zeros(1 << 18, np.float32))
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 4))
    folded = simplify(model)
    assert len(folded.graph.node) == nodes
    np.testing.assert_array_equal(run(folded, {"x": X})[0], run(model, {"x": X})[0])
    onnx.save(model, tmp_path / "m.onnx")
    convert_file(tmp_path / "m.onnx", tmp_path / "n.onnx", fold=True)
    assert onnx.load(tmp_path / "n.onnx") == folded


def test_tensors_of_quantization_annotations_remain() -> None:
    nodes = node("Neg", "x", "a"), node("Identity", "a", "b"), node("Relu", "b", "y")
    model = model_of(*nodes, scale=np.float32(1))
    annotation = model.graph.quantization_annotation.add(tensor_name="b")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="scale")
    assert simplify(model).SerializeToString() == model.SerializeToString()


def test_nodes_on_devices_keep_their_inputs() -> None:
    nodes = node("Neg", "x", "a"), node("Identity", "a", "b"), node("Relu", "b", "y")
    model = model_of(*nodes, ir_version=11)
    model.graph.node[2].device_configurations.add(configuration_id="c").sharding_spec.add(tensor_name="b")
    assert simplify(model).SerializeToString() == model.SerializeToString()


def test_records_of_earlier_conversions_are_removed() -> None:
    nodes = node("Neg", "x", "a"), node("Identity", "a", "b"), node("Softmax", "b", "y", axis=0)
    model = convert_version(model_of(*nodes, opset=13), 11, reversible=True)
    conversion = convert(model, fold=True)
    assert not conversion.model.metadata_props
    assert "record" in conversion.report.repairs[-1]
    assert convert(simplify(model), 13).report.refusals == ()


def test_invalid_models_are_reported_as_without_folding() -> None:
    twice = model_of(node("Neg", "x", "y"), node("Relu", "x", "y"))
    undefined = model_of(node("Neg", "z", "y"))
    for model in (twice, undefined):
        for arguments in ({"fold": True}, {"ir_version": 8}):
            with pytest.raises(opshift.InvalidModel, match=r"twice|not produced"):
                convert_version(model, **arguments)


def test_unsorted_nodes_are_folded() -> None:
    nodes = node("Relu", "r", "y"), *SIZES[:4][::-1]
    result = simplify(model_of(*nodes, shape=(3, 2, 2), **ZERO_AND_MINUS))
    assert op_types(result) == ["Reshape", "Relu"]


def test_a_function_that_replaces_constant_prevents_folding() -> None:
    model = model_of(*SIZES, shape=(3, 2, 2), **ZERO_AND_MINUS)
    body = [helper.make_node("Identity", ["a"], ["b"])]
    model.functions.append(helper.make_function("", "Constant", ["a"], ["b"], body, model.opset_import))
    assert simplify(model).SerializeToString() == model.SerializeToString()


def test_a_refused_conversion_leaves_the_model() -> None:
    nodes = node("Identity", "x", "a"), node("Det", "a", "y")
    model = model_of(*nodes, shape=(3, 3, 3), opset=11)
    content = model.SerializeToString()
    with pytest.raises(opshift.ConversionRefused):
        convert_version(model, 7, fold=True, inplace=True)
    assert model.SerializeToString() == content


def test_large_values_share_a_budget() -> None:
    budget = Budget(1000)
    small, large = Tensor("int64", (64,), (0,) * 64), Tensor("int64", (65,), (0,) * 65)
    assert budget.spend(large)
    assert not budget.spend(large)
    assert budget.spend(small)
    assert budget.spend(Tensor("int32", (100,), (0,) * 100))
    assert not budget.spend(Tensor("string", (1,), (b"x" * 100,)))


def test_forms_of_models(tmp_path: Path) -> None:
    model = model_of(*SIZES, shape=(3, 2, 2), **ZERO_AND_MINUS)
    expected = simplify(model).SerializeToString()
    content = model.SerializeToString()
    assert simplify(content) == expected
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    assert simplify(path).SerializeToString() == expected
    convert_file(path, tmp_path / "n.onnx", fold=True)
    assert (tmp_path / "n.onnx").read_bytes() == expected
    (outcome,) = convert_many([path], None, tmp_path / "out", fold=True)
    assert (tmp_path / "out" / "m.onnx").read_bytes() == expected, outcome
    assert simplify(model, inplace=True) is model
    assert model.SerializeToString() == expected
    assert simplify(expected) == expected


def test_named_values_stay_and_are_not_captured() -> None:
    graph = onnx.parser.parse_graph(
        "g (float x) => (float y) { named = Neg (x) unread = Abs (z) y = Exp (w) }"
    )
    removal = RemovalRules(lambda node: True, named=frozenset({"named", "other"}))
    assert remove_dead_nodes(graph, removal, frozenset({"elsewhere"})) == {"w"}
    assert [each.op_type for each in graph.node] == ["Neg", "Exp"]
