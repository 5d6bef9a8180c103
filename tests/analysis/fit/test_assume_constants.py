"""Inputs that declared shapes determine become constants; results run in onnxruntime with other values."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.execution import assert_equal, build, run
from support.forms import in_form
from support.runtimes import fictional_runtime

from opshift import DoesNotFit, fit
from opshift.model.graphs import nested_containers
from opshift.registry.registry import default_registry
from opshift.registry.runtimes.restrictions import Condition, Restriction
from opshift.registry.runtimes.runtime import Kernel, Runtime

TRACT = "tract-0.23.9"
"""A runtime that needs constants, and expands no functions."""

ONLY = "admits no other result"
DATA = np.linspace(-2, 2, 24, dtype=np.float32).reshape(2, 3, 4)
SINGLE = np.linspace(-2, 2, 6, dtype=np.float32).reshape(3, 1, 2)


def _runtime(operator: str, parameter: str) -> Runtime:
    """Return a runtime that implements one operator, with a constant input."""
    return fictional_runtime(
        opsets={"ai.onnx": 20},
        operators={f"ai.onnx.{each}": (Kernel(versions=(1, 99)),) for each in (operator, "Constant")},
        restrictions={
            f"ai.onnx.{operator}": (
                Restriction(reason="it is not constant", when=Condition(computed=(parameter,))),
            )
        },
    )


def _integers(*values: int) -> Any:
    return np.array(values, np.int64)


def _declare_outputs(model: onnx.ModelProto, feeds: Any) -> list[Any]:
    """Declare the shapes of the outputs of all graphs, and return the outputs."""
    outputs = run(model, feeds)
    for container in nested_containers([model.graph]):
        for value, array in zip(container.output, outputs, strict=True):
            value.CopyFrom(
                helper.make_tensor_value_info(value.name, value.type.tensor_type.elem_type, array.shape)
            )
    return outputs


CASES: dict[str, tuple[str, int, Any, Any, dict[str, Any], list[int]]] = {
    "axes": ("ReduceSum", 13, DATA, _integers(1), {}, [1]),
    "axes from the end": ("ReduceMax", 18, DATA, _integers(-1, 0), {}, [0, 2]),
    "removed axes": ("ReduceMean", 18, DATA, _integers(2), {"keepdims": 0}, [2]),
    "axes with one of size 1": ("ReduceSum", 13, SINGLE, _integers(0, 1), {}, [0, 1]),
    "removed axis of size 1": ("ReduceProd", 18, SINGLE, _integers(1), {"keepdims": 0}, [1]),
    "squares": ("ReduceSumSquare", 18, DATA, _integers(0), {}, [0]),
    "squares of single elements": ("ReduceSumSquare", 18, SINGLE, _integers(1), {}, [1]),
    "all axes": ("ReduceL1", 18, DATA, _integers(0, 1, -1), {"noop_with_empty_axes": 1}, [0, 1, 2]),
    "shape": ("Reshape", 14, DATA, _integers(4, 0, -1), {}, [4, 3, 2]),
    "unsqueezed": ("Unsqueeze", 13, SINGLE, _integers(-1, 0), {}, [0, 4]),
    "squeezed": ("Squeeze", 13, SINGLE, _integers(-2), {}, [1]),
    "expanded": ("Expand", 13, SINGLE, _integers(2, 3, 4, 1), {}, [2, 3, 4, 2]),
    "expanded to a shorter shape": ("Expand", 13, SINGLE, _integers(4, 1), {}, [4, 2]),
    "tiled": ("Tile", 13, DATA, _integers(1, 2, 3), {}, [1, 2, 3]),
}


@pytest.mark.some_cases(8)
@pytest.mark.parametrize("form", ["fed", "computed", "branch"])
@pytest.mark.parametrize("case", CASES)
def test_replaces_an_input(case: str, form: str) -> None:
    op_type, opset, data, values, attributes, expected = CASES[case]
    node = helper.make_node(op_type, ["x", "values"], ["y"], **attributes)
    model, feeds = in_form(form, [node], {"x": data, "values": values}, {"y": TensorProto.FLOAT}, opset)
    outputs = _declare_outputs(model, feeds)
    before = model.SerializeToString(deterministic=True)
    fitted = fit(model, TRACT)
    assert model.SerializeToString(deterministic=True) == before
    assert [each.name for each in fitted.model.graph.input] == [each.name for each in model.graph.input]
    assert_equal(run(fitted.model, feeds), outputs)
    assumptions = fitted.report.assumptions
    assert len(assumptions) == (2 if form == "branch" else 1)
    assert f"becomes {expected}: the declared shape {list(outputs[0].shape)} of 'y" in assumptions[0]


@pytest.mark.some_cases(3)
@pytest.mark.parametrize(
    ("node", "values", "outputs"),
    [
        (helper.make_node("OneHot", ["x", "v", "two"], ["y"], axis=0), np.array(5, np.int32), ["y"]),
        (helper.make_node("TopK", ["x", "v"], ["y", "z"], axis=-1), _integers(2), ["y", "z"]),
        (helper.make_node("Split", ["x", "v"], ["y", "z"], axis=1), _integers(1, 2), ["y", "z"]),
        (helper.make_node("ConstantOfShape", ["v"], ["y"]), _integers(2, 3), ["y"]),
        (helper.make_node("HannWindow", ["v"], ["y"]), np.array(6, np.int64), ["y"]),
        (helper.make_node("CenterCropPad", ["x", "v"], ["y"], axes=[2, 1]), _integers(5, 1), ["y"]),
        (helper.make_node("AffineGrid", ["theta", "v"], ["y"]), _integers(1, 3, 2, 4), ["y"]),
        (
            helper.make_node("Resize", ["image", "", "", "v"], ["y"], mode="cubic"),
            _integers(1, 1, 7, 5),
            ["y"],
        ),
    ],
    ids=lambda each: getattr(each, "op_type", ""),
)
def test_replaces_an_input_of(node: onnx.NodeProto, values: Any, outputs: list[str]) -> None:
    arrays = {
        "x": np.abs(DATA).astype(np.int64) if node.op_type == "OneHot" else DATA,
        "two": np.array([0, 1], np.float32),
        "theta": np.array([[[1, 0.5, 0], [0, 1, -1]]], np.float32),
        "image": DATA.reshape(1, 1, 4, 6),
        "v": values,
    }
    feeds = {name: arrays[name] for name in node.input if name and name != "two"}
    types = {"z": TensorProto.INT64} if node.op_type == "TopK" else {}
    elements = {name: types.get(name, TensorProto.FLOAT) for name in outputs}
    model = build([node], feeds, elements, 20, initializers={"two": arrays["two"]})
    expected = _declare_outputs(model, feeds)
    version = default_registry().at(node.op_type, 20)
    assert version is not None
    parameter = version.inputs[list(node.input).index("v")].name
    fitted = fit(model, _runtime(node.op_type, parameter))
    assert_equal(run(fitted.model, feeds), expected)
    assert len(fitted.report.assumptions) == 1
    assert f"`{parameter}` becomes" in fitted.report.assumptions[0]


def test_follows_operators_that_keep_shapes_and_earlier_assumptions() -> None:
    nodes = [
        helper.make_node("ReduceSum", ["x", "one"], ["sum"], keepdims=0),
        helper.make_node("Abs", ["sum"], ["abs"]),
        helper.make_node("Log", ["abs"], ["log"]),
        helper.make_node("Unsqueeze", ["log", "two"], ["y"]),
    ]
    feeds = {"x": DATA, "one": _integers(1), "two": _integers(2)}
    model = build(nodes, feeds, {"y": TensorProto.FLOAT}, 13)
    model.graph.value_info.append(helper.make_tensor_value_info("log", TensorProto.FLOAT, (2, 4)))
    expected = _declare_outputs(model, feeds)
    fitted = fit(model, TRACT)
    assert_equal(run(fitted.model, feeds), expected)
    assert fitted.report.assumptions == (
        f"graph, node ReduceSum -> sum: `axes` becomes [1]: the declared shape [2, 4] of 'log' {ONLY}",
        f"graph, node Unsqueeze -> y: `axes` becomes [2]: the declared shape [2, 4, 1] of 'y' {ONLY}",
    )


NOOP = {"noop_with_empty_axes": 1}
RESIZE = helper.make_node(
    "Resize", ["x", "", "v"], ["y"], mode="linear", coordinate_transformation_mode="align_corners"
)
PARAMETERS = {"Resize": "scales", "Reshape": "shape", "Tile": "repeats", "Slice": "starts"}

EQUAL = np.zeros((3, 2, 2), np.float32)


@pytest.mark.some_cases(3)
@pytest.mark.parametrize(
    ("node", "data", "values", "shape"),
    [
        (helper.make_node("ReduceSum", ["x", "v"], ["y"], keepdims=0), EQUAL, _integers(1), (3, 2)),
        (helper.make_node("ReduceL2", ["x", "v"], ["y"], **NOOP), SINGLE, None, (3, 1, 2)),
        (helper.make_node("ReduceSum", ["x", "v"], ["y"]), DATA, _integers(1), (2, None, 4)),
        (helper.make_node("ReduceSum", ["x", "v"], ["y"]), DATA, _integers(1), None),
        (helper.make_node("ReduceSum", ["x", "v"], ["y"]), DATA, _integers(1), (2, 2, 4)),
        (helper.make_node("Reshape", ["x", "v"], ["y"]), EQUAL[:0], _integers(0, 2, 2), (0, 2, 2)),
        (helper.make_node("Reshape", ["x", "v"], ["y"]), DATA, _integers(6, 4), ("N", 4)),
        (helper.make_node("Tile", ["x", "v"], ["y"]), DATA, _integers(1, 1, 1), (3, 3, 4)),
        # The size that align_corners divides by is the unrounded product with the scale.
        (RESIZE, DATA.reshape(1, 1, 4, 6), np.array([1, 1, 1.3, 0.7], np.float32), (1, 1, 5, 4)),
        (helper.make_node("Slice", ["x", "v", "v", "v"], ["y"]), DATA, _integers(1), (2, 1, 4)),
    ],
    ids=[
        "two axes",
        "identity",
        "unknown size",
        "no shape",
        "contradiction",
        "zero",
        "named",
        "part",
        "scales",
        "slice",
    ],
)
def test_keeps_inputs_that_shapes_do_not_determine(
    node: onnx.NodeProto, data: Any, values: Any, shape: tuple[int | str | None, ...] | None
) -> None:
    feeds = {"x": data, "v": _integers(1) if values is None else values}
    model = build([node], feeds, [], 18)
    model.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, shape))
    if values is None:  # any number of axes
        model.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "axes"
    with pytest.raises(DoesNotFit, match=r"not constant|fully known|no equivalent"):
        fit(model, _runtime(node.op_type, PARAMETERS.get(node.op_type, "axes")))


def test_keeps_inputs_that_the_runtime_accepts() -> None:
    nodes = [helper.make_node("Reshape", ["x", "v"], ["y"])]
    feeds = {"x": DATA, "v": _integers(6, 4)}
    model = build(nodes, feeds, {"y": TensorProto.FLOAT}, 18)
    _declare_outputs(model, feeds)
    fitted = fit(model, "onnxruntime-1.20.1")
    assert fitted.report.assumptions == ()
    assert fitted.model.SerializeToString() == model.SerializeToString()


def test_keeps_nodes_of_functions() -> None:
    node = helper.make_node("ReduceSum", ["x", "v"], ["y"])
    model, feeds = in_form("function", [node], {"x": DATA, "v": _integers(1)}, {"y": TensorProto.FLOAT}, 18)
    _declare_outputs(model, feeds)
    with pytest.raises(DoesNotFit):
        fit(model, TRACT)
