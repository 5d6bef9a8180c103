"""Nodes of types without kernels, for which a second type gives the same result in onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.execution import assert_equal, build, run, run_reference
from support.runtimes import fictional_runtime

from opshift import DoesNotFit, fit
from opshift.analysis.fit.bridges import Bridges
from opshift.model.element_types import BY_NAME, type_string
from opshift.registry.registry import default_registry
from opshift.registry.runtimes.restrictions import Restriction
from opshift.registry.runtimes.runtime import Kernel

SHAPE = np.array([2, 0, 3], np.int64), np.array([2, 3], np.int64), np.array([], np.int64)


def _fitted(model: Any, op_type: str, **types: str) -> Any:
    kernel = Kernel(versions=(1, 99), types={name: (type_string(each),) for name, each in types.items()})
    others = {f"ai.onnx.{each}": (Kernel(versions=(1, 99)),) for each in ("Cast", "Constant")}
    operators = {**others, f"ai.onnx.{op_type}": (kernel,)}
    fitted = fit(model, fictional_runtime(opsets={"ai.onnx": 21}, ir_version=10, operators=operators))
    assert [each.op_type for each in fitted.model.graph.node].count(op_type) >= 1
    assert fitted.report.bridges
    return fitted.model


@pytest.mark.parametrize("shape", SHAPE, ids=str)
@pytest.mark.parametrize(
    ("value", "other"),
    [
        (np.bool_(True), "int32"),
        (np.bool_(False), "float"),
        (np.int64(-1), "int32"),
        (np.int64(2**24), "float"),
        (np.uint8(255), "int32"),
        (np.float16(-np.inf), "float"),
        (np.float64(np.nan), "float"),
        (np.float32(0.1), "double"),
    ],
    ids=str,
)
def test_fills_a_tensor_with_the_same_value_of_another_type(value: Any, other: str, shape: Any) -> None:
    node = helper.make_node("ConstantOfShape", ["x"], ["y"], value=numpy_helper.from_array(np.array([value])))
    model = build([node], {"x": shape}, {"y": helper.np_dtype_to_tensor_dtype(value.dtype)}, 13)
    fitted = _fitted(model, "ConstantOfShape", T2=other)
    assert_equal(run(fitted, {"x": shape}), run_reference(model, {"x": shape}), 0)


@pytest.mark.parametrize(
    ("value", "other"),
    [(np.int64(2**31), "int32"), (np.int64(2**24 + 1), "float"), (np.float64(0.1), "float")],
)
def test_refuses_another_type_that_does_not_represent_the_value(value: Any, other: str) -> None:
    node = helper.make_node("ConstantOfShape", ["x"], ["y"], value=numpy_helper.from_array(np.array([value])))
    model = build([node], {"x": SHAPE[1]}, {"y": helper.np_dtype_to_tensor_dtype(value.dtype)}, 13)
    with pytest.raises(DoesNotFit, match="ConstantOfShape"):
        _fitted(model, "ConstantOfShape", T2=other)


@pytest.mark.parametrize(
    ("values", "other"),
    [
        (np.array([[0, 2**62 + 1], [-1, 0]]), "float"),
        (np.array([[0, 2**62 + 1], [-1, 0]]), "bool"),
        (np.array([[0.0, -0.0, 1e-300], [np.nan, np.inf, -2.0]]), "bool"),
        (np.array([[True, False]]), "float"),
    ],
    ids=str,
)
def test_lists_nonzero_elements_in_another_type(values: Any, other: str) -> None:
    model = build([helper.make_node("NonZero", ["x"], ["y"])], {"x": values}, {"y": TensorProto.INT64}, 13)
    fitted = _fitted(model, "NonZero", T=other)
    assert_equal(run(fitted, {"x": values}), [np.array(np.nonzero(values))], 0)


@pytest.mark.parametrize("dtype", [None, TensorProto.BOOL, TensorProto.INT8])
@pytest.mark.parametrize(
    "types",
    [{"T1": "float"}, {"T2": "int32"}, {"T1": "float", "T2": "float"}],
    ids=lambda types: "".join(types),
)
def test_keeps_the_type_of_an_identity_matrix(dtype: int | None, types: dict[str, str]) -> None:
    values = np.ones((3, 4), bool)
    node = helper.make_node("EyeLike", ["x"], ["y"], k=1, **({} if dtype is None else {"dtype": dtype}))
    model = build([node], {"x": values}, {"y": dtype or TensorProto.BOOL}, 13)
    fitted = _fitted(model, "EyeLike", **types)
    assert_equal(run_reference(fitted, {"x": values}), run_reference(model, {"x": values}), 0)


@pytest.mark.parametrize("op_type", ["Shape", "Size"])
@pytest.mark.parametrize("values", [np.ones((2, 3), np.int64), np.ones((2, 3), np.float64)], ids=str)
def test_reads_the_shape_of_another_type(op_type: str, values: Any) -> None:
    model = build([helper.make_node(op_type, ["x"], ["y"])], {"x": values}, {"y": TensorProto.INT64}, 13)
    assert_equal(run(_fitted(model, op_type, T="float"), {"x": values}), run(model, {"x": values}), 0)


@pytest.mark.parametrize("name", ["int16", "int32"])
def test_counts_in_a_wider_integer_type(name: str) -> None:
    feeds = {each: np.array(value, name) for each, value in {"a": -3, "b": 9, "c": 2}.items()}
    model = build([helper.make_node("Range", [*feeds], ["y"])], feeds, {"y": BY_NAME[name].number}, 13)
    assert_equal(run(_fitted(model, "Range", T="int64"), feeds), run(model, feeds), 0)


@pytest.mark.parametrize(
    "op_type", ["RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike"]
)
def test_draws_random_numbers_in_a_wider_type(op_type: str) -> None:
    is_like = op_type.endswith("Like")
    inputs, shape = (["x"], {}) if is_like else ([], {"shape": [50]})
    node = helper.make_node(op_type, inputs, ["r"], dtype=TensorProto.FLOAT16, seed=1.0, **shape)
    nodes = [node, helper.make_node("Cast", ["r"], ["y"], to=TensorProto.FLOAT16)]
    values = np.zeros(50, np.int64)
    model = build(nodes, {"x": values}, {"y": TensorProto.FLOAT16}, 13)
    fitted = _fitted(model, op_type, **({"T1": "float", "T2": "float"} if is_like else {"T": "float"}))
    (found,) = run(fitted, {"x": values})
    assert (found.dtype, found.shape) == (np.float16, (50,))
    assert len(np.unique(found)) > 20


def test_casts_a_boolean_in_two_steps() -> None:
    kernels = (
        Kernel(versions=(1, 99), types={"T1": ("tensor(bool)",), "T2": ("tensor(float)",)}),
        Kernel(versions=(1, 99), types={"T1": ("tensor(float)",), "T2": ("tensor(float16)",)}),
    )
    values = np.array([True, False])
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT16)
    model = build([node], {"x": values}, {"y": TensorProto.FLOAT16}, 13)
    runtime = fictional_runtime(opsets={"ai.onnx": 21}, ir_version=10, operators={"ai.onnx.Cast": kernels})
    fitted = fit(model, runtime)
    assert [each.op_type for each in fitted.model.graph.node] == ["Cast", "Cast"]
    assert_equal(run(fitted.model, {"x": values}), run(model, {"x": values}), 0)


def test_does_not_replace_a_type_by_itself() -> None:
    """A cast to the same type would not change the node, which would be cast again and again."""
    registry = default_registry()
    operators = {f"ai.onnx.{each}": (Kernel(versions=(1, 99)),) for each in ("Cast", "Shape")}
    restrictions = {"ai.onnx.Shape": (Restriction(reason="some nodes are refused"),)}
    runtime = fictional_runtime(opsets={"ai.onnx": 21}, operators=operators, restrictions=restrictions)
    found = Bridges(runtime, registry, 17).find(registry.get_schema("Shape", 15), {"T": "tensor(float)"})
    assert [each.replacement for each in found] == ["int32"]
