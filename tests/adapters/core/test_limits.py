"""Limits of what the conversion of one node may add."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import refusal_of
from support.deadline import deadline
from support.execution import assert_equal, build, run

from opshift import ConversionRefused, convert_version, plan_version
from opshift.adapters.core.rewriter import LARGE_FACTOR, MAX_ELEMENTS, require_at_most
from opshift.converter.report import Report
from opshift.model.errors import CannotConvert
from opshift.registry.steps import Allow

SECONDS = 10
"""Generous for a busy machine: without limits, these conversions take hours."""


class _Output:
    def __init__(self, *allowed: Allow) -> None:
        self._allowed = allowed

    def allow(self, kind: Allow, reason: str) -> bool:
        return kind in self._allowed


def _model(
    op_type: str,
    opset: int,
    shapes: dict[str, list[int]],
    constants: dict[str, np.ndarray] | None = None,
    element_types: dict[str, int] | None = None,
    **attributes: object,
) -> onnx.ModelProto:
    """Return a model of one node with the given shapes of inputs, then constants."""
    constants, types = constants or {}, element_types or {}
    node = helper.make_node(op_type, [*shapes, *constants], ["y"], **attributes)
    inputs = [
        helper.make_tensor_value_info(name, types.get(name, TensorProto.FLOAT), shape)
        for name, shape in shapes.items()
    ]
    initializers = [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()]
    outputs = [helper.make_tensor_value_info("y", types.get("y", TensorProto.FLOAT), None)]
    graph = helper.make_graph([node], "g", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


HOSTILE = [
    ("GridSample", 16, 15, {"x": ["N", 1, 4, 4], "grid": ["N", 2, 2, 2]}, {}),
    ("MaxPool", 10, 9, {"x": [1, 1, "N"]}, {"kernel_shape": [2], "dilations": [2]}),
    ("AveragePool", 19, 18, {"x": [1, 1, "N"]}, {"kernel_shape": [2], "dilations": [2]}),
    ("LpPool", 18, 17, {"x": [1, 1, "N"]}, {"kernel_shape": [2], "dilations": [2]}),
    ("EyeLike", 9, 8, {"x": ["N", "N"]}, {}),
    ("EyeLike", 9, 8, {"x": ["N", 0]}, {}),
    ("Shrink", 9, 8, {"x": ["N"]}, {}),
    ("Trilu", 14, 13, {"x": ["N", "N"]}, {}),
    ("Trilu", 14, 13, {"x": ["N", 0]}, {}),
    ("GatherND", 12, 11, {"x": ["N", 0], "indices": ["N", 0, 1]}, {"batch_dims": 1}),
    ("Einsum", 12, 11, {"x": [0, "N", "N"]}, {"equation": "bii->bi"}),
    ("DFT", 17, 16, {"x": [0, "N", 1]}, {}),
    ("Resize", 11, 10, {"x": [1, 0, "N", 4]}, {}),
    ("ScatterElements", 11, 9, {"x": ["N", 0], "indices": [2, 0], "updates": [2, 0]}, {}),
    ("DepthToSpace", 13, 1, {"x": ["N", 0, 2, 2]}, {"blocksize": 2}),
    ("Einsum", 12, 11, {"x": ["N", "N"]}, {"equation": "ii->i"}),
    ("DFT", 17, 16, {"x": [1, "N", 1]}, {}),
    ("NegativeLogLikelihoodLoss", 12, 11, {"x": [2, "N"], "t": [2]}, {}),
    ("Col2Im", 18, 17, {"x": [1, 10, 12], "image": ["N"], "block": ["N"]}, {}),
    ("Col2Im", 18, 8, {"x": [1, 10, 12], "image": [60], "block": [60]}, {}),
    ("Unsqueeze", 13, 11, {"x": [2], "axes": ["N"]}, {}),
    ("Expand", 8, 7, {"x": [2], "shape": ["N"]}, {}),
    ("ReverseSequence", 10, 9, {"x": ["N", 2], "lengths": [2]}, {}),
    ("DepthToSpace", 13, 1, {"x": ["N", 4, 2, 2]}, {"blocksize": 2}),
]
INTEGER_INPUTS = dict.fromkeys(
    ("t", "image", "block", "axes", "shape", "lengths", "indices"), TensorProto.INT64
)


@pytest.mark.parametrize("size", [10**9, 2**31, 2**62])
@pytest.mark.parametrize(("op_type", "opset", "target", "shapes", "attributes"), HOSTILE)
def test_declared_sizes_cost_neither_time_nor_memory(
    op_type: str, opset: int, target: int, shapes: dict[str, list[object]], attributes: dict[str, Any],
    size: int,
) -> None:  # fmt: skip
    dims = {name: [size if dim == "N" else int(str(dim)) for dim in shape] for name, shape in shapes.items()}
    model = _model(op_type, opset, dims, element_types=INTEGER_INPUTS, **attributes)
    with deadline(SECONDS, 300):
        try:
            assert convert_version(model, target).ByteSize() < 100_000
        except ConversionRefused as error:
            (refusal,) = error.refusals
            assert refusal.reason
            assert "violates an assumption" not in refusal.reason


@pytest.mark.parametrize("rank", [10**9, 2**62, 65])
def test_rank_from_a_declared_length_is_unknown(rank: int) -> None:
    nodes = [
        helper.make_node("Reshape", ["x", "s"], ["r"]),
        helper.make_node("Softmax", ["r"], ["y"], axis=1),
    ]
    values = [("x", TensorProto.FLOAT, [6]), ("s", TensorProto.INT64, [rank])]
    inputs = [helper.make_tensor_value_info(*each) for each in values]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)])
    with deadline(SECONDS, 300):
        assert convert_version(model, 13).graph.node


def test_ranks_that_double_in_each_node_are_unknown() -> None:
    nodes = [helper.make_node("Gather", [f"v{i}", f"v{i}"], [f"v{i + 1}"]) for i in range(60)]
    nodes.append(helper.make_node("Softmax", ["v60"], ["y"]))
    values = [helper.make_tensor_value_info(name, TensorProto.INT64, [1, 1]) for name in ("v0", "y")]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)])
    with deadline(SECONDS, 300):
        assert convert_version(model, 13).graph.node


@pytest.mark.full
def test_large_constants_need_an_allowance() -> None:
    numbers = {"bins": 1500, "length": 3000, "rate": 16000, "lower": 0.0, "upper": 8000.0}
    types = (np.int64, np.int64, np.int64, np.float32, np.float32)
    values = zip(numbers.items(), types, strict=True)
    constants = {name: np.array(number, dtype) for (name, number), dtype in values}
    model = _model("MelWeightMatrix", 17, {}, constants)
    refusal = refusal_of(model, 16)
    assert refusal.reason == (
        "the conversion of this node would add 2,251,500 elements of a constant, more than 1,048,576"
    )
    assert (
        refusal.remedy
        == "pass --allow large (allow= in Python), reduce the sizes, or convert to a newer opset"
    )
    plan = plan_version(model, 16, allow="large")
    assert [kind for kind, _ in plan.allowances] == ["large"]
    assert Report.of(plan).added_bytes == 4 * 2_251_500
    assert_equal(run(convert_version(model, 16, allow="large"), {}), run(model, {}), 1e-5)


def test_the_last_limit_holds_for_allowed_sizes_too() -> None:
    require_at_most(MAX_ELEMENTS * LARGE_FACTOR, MAX_ELEMENTS, "elements", _Output("large"))
    with pytest.raises(CannotConvert) as caught:
        require_at_most(MAX_ELEMENTS * LARGE_FACTOR + 1, MAX_ELEMENTS, "elements", _Output("large"))
    assert caught.value.remedy == "reduce the sizes in the model, or convert to a newer opset"


def test_plan_states_added_nodes_and_bytes() -> None:
    node = helper.make_node("Clip", ["x"], ["y"], min=0.0, max=6.0)
    model = build([node], {"x": np.zeros(2, np.float32)}, ["y"], 6)
    report = Report.of(plan_version(model, 11))
    assert (report.added_nodes, report.constants, report.added_bytes) == (0, 2, 8)
    assert report.as_dict()["added_bytes"] == 8
