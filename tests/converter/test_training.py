"""Conversions of models with training: values that training reads, and values that Gradient names, remain."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper
from support.calls import function
from support.execution import Array, Feeds, assert_equal, build, op_types, run, run_reference

import opshift
from opshift import convert, convert_version, plan_version, simplify
from opshift.converter.refusals import ConversionRefused
from opshift.model.wire_format import bytes_field, find_bytes

PREVIEW = "ai.onnx.preview.training"
X = np.array([[[1, 3, -2, 0.5]]], np.float32)
W = np.array([2, 1, 0.5, -1], np.float32)


def node(op_type: str, inputs: str, outputs: str, domain: str = "", **attributes: Any) -> NodeProto:
    made: NodeProto = helper.make_node(op_type, inputs.split(), outputs.split(), domain=domain, **attributes)
    return made


def trained(
    nodes: Sequence[NodeProto], algorithm: Sequence[NodeProto], opset: int, ir_version: int = 8
) -> onnx.ModelProto:
    """Return a model from `x` to `y` with a weight `w`, which the value `new` of the algorithm updates."""
    opsets = {"": opset, PREVIEW: 1}
    model = build(nodes, {"x": X}, ["y"], opsets, ir_version=ir_version, initializers={"w": W})
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, X.shape))
    new = helper.make_tensor_value_info("new", TensorProto.FLOAT, None)
    info = model.training_info.add()
    info.algorithm.CopyFrom(helper.make_graph(algorithm, "step", [], [new]))
    info.update_binding.add(key="w", value="new")
    return model


def train(model: onnx.ModelProto) -> list[Any]:
    """Run a training step: the algorithm follows the nodes of the main graph."""
    step = onnx.ModelProto()
    step.CopyFrom(model)
    for field in ("node", "output", "initializer"):
        getattr(step.graph, field).extend(getattr(model.training_info[0].algorithm, field))
    step.ClearField("training_info")
    return run(step, {"x": X})


MASK = [node("Cast", "mask", "m", to=TensorProto.FLOAT), node("Mul", "w m", "new")]
INDICES = [node("Cast", "i", "f", to=TensorProto.FLOAT), node("Mul", "w f", "new")]
OPTIONAL_OUTPUTS = {
    "mask": ([node("Dropout", "x", "y mask")], MASK, 13, (14, 10, 9)),
    "mean and deviation": (
        [node("LayerNormalization", "x w", "y mean deviation")],
        [node("Mul", "w deviation", "v"), node("Sub", "v mean", "new")],
        17,
        (16, 13),
    ),
    "indices": ([node("MaxPool", "x", "y i", kernel_shape=[1])], INDICES, 12, (13, 8)),
}


@pytest.mark.parametrize(
    ("nodes", "algorithm", "opset", "targets"), OPTIONAL_OUTPUTS.values(), ids=OPTIONAL_OUTPUTS
)
def test_keeps_outputs_that_only_training_reads(
    nodes: list[NodeProto], algorithm: list[NodeProto], opset: int, targets: tuple[int, ...]
) -> None:
    model = trained(nodes, algorithm, opset)
    for target in targets:
        assert_equal(train(convert_version(model, target)), train(model))


def test_refuses_to_drop_an_output_that_only_training_reads() -> None:
    model = trained([node("MaxPool", "x", "y i", kernel_shape=[1])], INDICES, 12)
    with pytest.raises(ConversionRefused, match="output Indices is used"):
        convert_version(model, 7)


def test_drops_an_output_that_neither_inference_nor_training_reads() -> None:
    model = trained([node("Dropout", "x", "y mask")], [node("Neg", "w", "new")], 13)
    assert [each.output[:] for each in convert_version(model, 10).graph.node] == [["y"]]


MOMENTUM = node(
    "Momentum", "w w w g w", "new m", PREVIEW, alpha=0.9, beta=0.5, mode="standard", norm_coefficient=0.0
)
GELU = [node("Gelu", "w", "new")]
CUSTOM = [node("Secret", "w", "new", "com.acme")]
FLOAT8 = [node("Cast", "w", "c", to=TensorProto.FLOAT8E4M3FN), node("CastLike", "c w", "new")]
DROPPED = {
    "operator of the domain": ([node("Neg", "w", "g"), MOMENTUM], 17, 17, {"": 17}),
    "operator of the domain at another opset": ([node("Neg", "w", "g"), MOMENTUM], 17, 11, {"": 11}),
    "newer operator": (GELU, 20, 11, {"": 11}),
    "custom operator": (CUSTOM, 17, 11, {"": 11}),
    "newer element type": (FLOAT8, 19, 19, {"": 19, PREVIEW: 1}),
}


@pytest.mark.parametrize(("algorithm", "opset", "target", "opsets"), DROPPED.values(), ids=DROPPED)
def test_dropped_training_is_no_obstacle(
    algorithm: list[NodeProto], opset: int, target: int, opsets: dict[str, int]
) -> None:
    model = trained([node("Mul", "x w", "y")], algorithm, opset, ir_version=9)
    model.opset_import.append(helper.make_opsetid("com.acme", 1))
    before = model.SerializeToString()
    conversion = convert(model, target, ir_version=6, allow="drop-training")
    result, report = conversion.model, conversion.report
    assert model.SerializeToString() == before
    assert not result.training_info
    assert {each.domain: each.version for each in result.opset_import}.items() >= opsets.items()
    assert (PREVIEW in report.removed_imports) == (PREVIEW not in opsets)
    assert report.allowances == (("drop-training", "the model loses training information"),)
    assert report.ir_steps[0] == "the model loses training information"
    assert report.nodes == (1 + len(algorithm), 1)
    onnx.checker.check_model(result)
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))


def test_functions_of_dropped_training_are_no_obstacle() -> None:
    model = trained([node("Mul", "x w", "y")], [node("Step", "w", "new", "local")], 17)
    model.opset_import.append(helper.make_opsetid("local", 1))
    model.functions.append(function("Step", [node("Secret", "a", "b", "com.acme")], {"": 17, "com.acme": 1}))
    result = convert_version(model, 11, ir_version=6, allow="drop-training")
    assert op_types(result) == ["Mul"]
    assert [each.domain for each in result.opset_import] == [""]


@pytest.mark.parametrize("unknown", [b"", bytes_field(1000, b"abc")], ids=["", "unknown field"])
@pytest.mark.parametrize("make", [onnx.ModelProto, opshift.ModelProto])
def test_only_training_is_dropped(make: type[onnx.ModelProto], unknown: bytes) -> None:
    model = make.FromString(trained([node("Mul", "x w", "y")], GELU, 20).SerializeToString() + unknown)
    model.producer_name, model.doc_string, model.model_version = "exporter", "scales", 7
    model.metadata_props.add(key="author", value="me")
    result = convert_version(model, ir_version=6, allow="drop-training")
    model.ClearField("training_info")
    model.ir_version = 6
    assert result == model
    assert find_bytes(result.SerializeToString(), 1000) == (b"abc" if unknown else None)


@pytest.mark.parametrize("arguments", [{"target": 18}, {"target": 13, "ir_version": 7}])
def test_keeps_training_that_the_ir_version_has(arguments: dict[str, Any]) -> None:
    model = trained([node("Mul", "x w", "y")], [node("Mul", "w y", "new")], 17)
    conversion = convert(model, **arguments, allow="drop-training")
    assert_equal(train(conversion.model), train(model))
    assert not conversion.report.allowances


def test_keeps_training_if_other_content_needs_the_ir_version() -> None:
    model = trained([node("Mul", "x w", "y")], [node("Mul", "w y", "new")], 17, ir_version=11)
    model.configuration.add(name="one", num_devices=1)
    model.graph.node[0].device_configurations.add(configuration_id="one")
    result = convert_version(model, 11, allow="drop-training")
    assert (result.ir_version, len(result.training_info)) == (11, 1)
    result = convert_version(model, 11, allow=("drop-training", "drop-devices"))
    assert (result.ir_version, len(result.training_info)) == (6, 0)


def test_training_is_dropped_in_place() -> None:
    model = trained([node("Mul", "x w", "y")], GELU, 20)
    assert convert_version(model, 11, allow="drop-training", inplace=True) is model
    assert not model.training_info


def gradient(inputs: str, output: str, xs: str, zs: str, y: str) -> NodeProto:
    named: dict[str, Any] = {"xs": xs.split(), "y": y, **({"zs": zs.split()} if zs else {})}
    return node("Gradient", inputs, output, PREVIEW, **named)


def differentiated(nodes: Sequence[NodeProto], outputs: str = "dx") -> onnx.ModelProto:
    """Return a model with the input `x`, the weights `v` and `w`, and some shapes."""
    weights: Feeds = {"v": W, "w": W, "flat": np.array([-1]), "square": np.array([2, 2])}
    return build(nodes, {"x": X}, outputs.split(), {"": 24, PREVIEW: 1}, ir_version=10, initializers=weights)


def derivatives(model: onnx.ModelProto) -> list[Any]:
    """Return differences that approximate the results of a Gradient in the main graph."""
    (found,) = (each for each in model.graph.node if each.op_type == "Gradient")
    named = {each.name: helper.get_attribute_value(each) for each in found.attribute}
    variables = [each.decode() for each in named["xs"]]
    sources = [*variables, *(each.decode() for each in named.get("zs", ()))]
    values = dict(zip(sources, evaluate(model, {"x": X}, found.input), strict=True))

    def change_along(name: str) -> Array:
        moved = ({**values, name: values[name] + step} for step in (np.float32(0.5), np.float32(-0.5)))
        above, below = (evaluate(model, each, [named["y"].decode()])[0] for each in moved)
        difference: Array = above - below
        return difference

    return [change_along(name) for name in variables]


def evaluate(model: onnx.ModelProto, values: Feeds, outputs: Sequence[str]) -> list[Any]:
    """Compute outputs from values, which replace those that the graph computes."""
    needed, nodes = set(outputs), list[NodeProto]()
    for each in reversed(model.graph.node):
        if needed.intersection(each.output) - values.keys():
            nodes.insert(0, each)
            needed.update(each.input)
    feeds = {name: value for name, value in values.items() if name in needed}
    part = build(nodes, feeds, list(outputs), 24, ir_version=10)
    part.graph.initializer.extend(each for each in model.graph.initializer if each.name not in values)
    return run_reference(part, feeds)


DIFFERENTIATED = {
    "result without a reader": [node("Mul", "x w", "y"), gradient("x w", "dx", "x", "w", "y")],
    "copy": [node("Identity", "x", "c"), node("Mul", "c x", "y"), gradient("c x", "dx", "c", "x", "y")],
    "weights": [node("Mul", "w v", "p"), node("Neg", "p", "y"), gradient("w x", "dx", "w", "v", "y")],
    "constant": [
        node("Constant", "", "c", value_float=2.0),
        node("Mul", "c c", "p"),
        node("Mul", "p w", "y"),
        gradient("c", "dx", "c", "", "y"),
    ],
    "equal values": [
        node("Mul", "x w", "a"),
        node("Mul", "x w", "b"),
        node("Add", "a b", "y"),
        gradient("a b", "dx", "a", "b", "y"),
    ],
    "reshaped value": [
        node("Reshape", "x flat", "r"),
        node("Reshape", "r square", "y"),
        gradient("r", "dx", "r", "", "y"),
    ],
}


@pytest.mark.parametrize("nodes", DIFFERENTIATED.values(), ids=DIFFERENTIATED)
def test_derivatives_remain(nodes: list[NodeProto]) -> None:
    model = differentiated(nodes)
    assert_equal(derivatives(simplify(model)), derivatives(model))


def test_values_with_derivatives_are_not_inside_of_recognized_operators() -> None:
    swish = [node("Sigmoid", "x", "s"), node("Mul", "x s", "p")]
    model = differentiated([*swish, gradient("x", "dx", "x", "", "s")], "dx p")
    result = convert_version(model, recognize="Swish")
    assert op_types(result) == ["Sigmoid", "Mul", "Gradient"]
    assert_equal(derivatives(result), derivatives(model))


def test_refuses_other_element_types_of_differentiated_values() -> None:
    """A cast of `x` would give the value that Gradient names another name."""
    model = differentiated([node("Mul", "x w", "y"), gradient("x w", "dx", "x", "w", "y")])
    (refusal,) = plan_version(model, types="float=double", keep_interface=True).refusals
    assert (refusal.place, refusal.code) == ("model", "training.unsupported")
    assert refusal.reason.startswith("attributes of Gradient name values")


@pytest.mark.parametrize("calls", [1, 3], ids=["one call", "calls that share an expansion"])
def test_inlined_derivatives_remain(calls: int) -> None:
    nodes = [node("Mul", "a w", "p"), gradient("a w", "b", "a", "w", "p")]
    body = function("Slope", nodes, {"": 24, PREVIEW: 1}, inputs=("a", "w"))
    names = ["x", *(f"d{index}" for index in range(1, calls)), "dx"]
    pairs = pairwise(names)
    model = differentiated([node("Slope", f"{one} w", two, "local") for one, two in pairs])
    model.opset_import.append(helper.make_opsetid("local", 1))
    model.functions.append(body)
    found = convert_version(model, without="local").graph.node
    for product, slope, source in zip(found[::2], found[1::2], names[:-1], strict=True):
        named = {each.name: helper.get_attribute_value(each) for each in slope.attribute}
        assert (product.input[:], slope.input[:]) == ([source, "w"], [source, "w"])
        assert named == {"xs": [source.encode()], "zs": [b"w"], "y": product.output[0].encode()}


def test_derivatives_in_training_and_in_subgraphs_remain() -> None:
    inner = [node("Mul", "x w", "p"), gradient("x w", "d", "x", "w", "p")]
    slope = helper.make_tensor_value_info("d", TensorProto.FLOAT, None)
    branch = helper.make_graph(inner, "branch", [], [slope])
    choice = node("If", "yes", "dx", then_branch=branch, else_branch=branch)
    model = differentiated([node("Mul", "x v", "y"), node("Cast", "x", "yes", to=TensorProto.BOOL), choice])
    model.training_info.add().algorithm.node.append(gradient("v x", "dv", "v", "x", "y"))
    simplified = simplify(model)
    assert op_types(simplified) == ["Mul", "Cast", "If"]
    assert [each.op_type for each in simplified.graph.node[2].attribute[0].g.node] == ["Mul", "Gradient"]
