"""Bodies whose initializers are inputs, too: required below IR version 4, and run by onnxruntime later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.execution import Array, assert_equal, op_types, run, run_reference
from support.ir_models import node

from opshift import check, convert, convert_version
from opshift.analysis.doctor.restamp import restamp

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
W = np.array([1, 2, 3], np.float32)
ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


def value(name: str, kind: int = FLOAT, dims: Sequence[int | str] | None = (3,)) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, dims)


COUNTERS = [value("i", INT64, ()), value("c", BOOL, ())]
CONDITION = node("Identity", ["c"], ["c2"])
SEQUENCE = helper.make_tensor_sequence_value_info("q", FLOAT, None)
GROWN = helper.make_tensor_sequence_value_info("q2", FLOAT, None)


def body(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    *,
    is_first: bool = False,
) -> onnx.GraphProto:
    """Build a body with the initializer `w`, which is also its first or last input."""
    inputs = [value("w"), *inputs] if is_first else [*inputs, value("w")]
    return helper.make_graph(nodes, "body", inputs, outputs, [numpy_helper.from_array(W, "w")])


def model(
    nodes: Sequence[onnx.NodeProto],
    feeds: dict[str, Array],
    opset: int,
    ir_version: int,
    ranks: Sequence[int] = (1,),
) -> onnx.ModelProto:
    """Build a model with the outputs `y`, `z` of the given ranks."""
    inputs = [value(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for name, x in feeds.items()]
    outputs = [
        value(name, FLOAT, [f"{name}{axis}" for axis in range(rank)])
        for name, rank in zip("yz", ranks, strict=False)
    ]
    graph = helper.make_graph(nodes, "test", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)


def scan(opset: int, ir_version: int, *, is_first: bool = False) -> Any:
    nodes = [node("Mul", ["row", "w"], ["m"]), node("Add", ["s", "m"], ["s2"]), node("Neg", ["s2"], ["o"])]
    inner = body(nodes, [value("s"), value("row")], [value("s2"), value("o")], is_first=is_first)
    feeds, names = {"start": W, "x": ROWS}, ["start", "x"]
    if opset == 8:
        feeds, names = {name: each[None] for name, each in feeds.items()}, ["", *names]
    scanned = node("Scan", names, ["y", "z"], body=inner, num_scan_inputs=1)
    return model([scanned], feeds, opset, ir_version, [feeds[each].ndim for each in feeds]), feeds


def loop(opset: int, ir_version: int) -> Any:
    nodes = [CONDITION, node("Mul", ["a", "w"], ["a2"])]
    inner = body(nodes, [*COUNTERS, value("a")], [value("c2", BOOL, ()), value("a2")])
    feeds = {"n": np.array(3), "x": W}
    return model([node("Loop", ["n", "", "x"], ["y"], body=inner)], feeds, opset, ir_version), feeds


def stateless_loop(opset: int, ir_version: int) -> Any:
    nodes = [CONDITION, node("Cast", ["i"], ["f"], to=FLOAT), node("Mul", ["f", "w"], ["o"])]
    inner = body(nodes, COUNTERS, [value("c2", BOOL, ()), value("o")], is_first=True)
    feeds = {"n": np.array(3)}
    return model([node("Loop", ["n", ""], ["y"], body=inner)], feeds, opset, ir_version, [2]), feeds


def branches(opset: int, ir_version: int) -> Any:
    used = body([node("Mul", ["x", "w"], ["m"])], [], [value("m")])
    other = helper.make_graph([node("Neg", ["x"], ["m"])], "other", [], [value("m")])
    feeds = {"yes": np.array(True), "x": W}
    nodes = [node("If", ["yes"], ["y"], then_branch=used, else_branch=other)]
    return model(nodes, feeds, opset, ir_version), feeds


def sequence_map(opset: int, ir_version: int) -> Any:
    inner = body([node("Mul", ["e", "w"], ["o"])], [value("e", dims=None)], [value("o", dims=None)])
    nodes = [
        node("SplitToSequence", ["x"], ["q"], axis=0),
        node("SequenceMap", ["q"], ["q2"], body=inner),
        node("ConcatFromSequence", ["q2"], ["y"], axis=0),
    ]
    return model(nodes, {"x": ROWS}, opset, ir_version, [2]), {"x": ROWS}


def sequence_loop(opset: int, ir_version: int, count: int | None = None) -> Any:
    """Build a Loop that appends to a sequence; with `count`, the sequence pass can unroll it."""
    nodes = [CONDITION, node("Mul", ["w", "w"], ["r"]), node("SequenceInsert", ["q", "r"], ["q2"])]
    inner = body(nodes, [*COUNTERS, SEQUENCE], [value("c2", BOOL, ()), GROWN], is_first=True)
    feeds = {"n": np.array(3)} if count is None else {"x": W}
    nodes = [
        node("SequenceEmpty", [], ["empty"]),
        node("Loop", ["n", "", "empty"], ["all"], body=inner),
        node("ConcatFromSequence", ["all"], ["y"], axis=0, new_axis=1),
    ]
    if count is not None:
        nodes = [node("Constant", [], ["n"], value=numpy_helper.from_array(np.array(count))), *nodes]
    return model(nodes, feeds, opset, ir_version, [2]), feeds


def initializer_inputs(found: onnx.ModelProto) -> list[str]:
    """Return the inputs of subgraphs with an initializer."""
    graphs = [each.g for part in found.graph.node for each in part.attribute if each.HasField("g")]
    return [
        each.name
        for graph in graphs
        for each in graph.input
        if each.name in {tensor.name for tensor in graph.initializer}
    ]


@pytest.mark.parametrize(
    ("case", "target"),
    [
        pytest.param(scan(9, 4), 8, id="Scan, initializer last"),
        pytest.param(scan(9, 4, is_first=True), 8, id="Scan, initializer first"),
        pytest.param(scan(9, 3), 8, id="Scan of IR version 3"),
        pytest.param(scan(8, 3), 7, id="batched Scan of IR version 3"),
        pytest.param(scan(8, 3), 9, id="batched Scan to IR version 4"),
        pytest.param(stateless_loop(11, 4), 10, id="Loop without carried values"),
        pytest.param(stateless_loop(11, 3), 8, id="Loop without carried values, of IR version 3"),
        pytest.param(sequence_map(17, 8), 16, id="SequenceMap to Loop"),
        pytest.param(sequence_map(17, 8), 10, id="SequenceMap without sequences"),
        pytest.param(sequence_loop(13, 7), 10, id="Loop with a stacked sequence"),
        pytest.param(sequence_loop(13, 7, 2), 10, id="Loop with an unrolled sequence"),
    ],
)
def test_nodes_pass_no_values_to_initializers(case: Any, target: int) -> None:
    original, feeds = case
    result = convert_version(original, target)
    onnx.checker.check_model(result)
    assert not [each for each in check(result) if each.level == "error"]
    # onnxruntime fails to expand a SequenceMap whose body has such inputs.
    run_original = run_reference if "SequenceMap" in op_types(original) else run
    assert_equal(run(result, feeds), run_original(original, feeds))
    assert not initializer_inputs(result) or result.ir_version < 4


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("target", [9, 13, 21])
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(branches(8, 3), id="If"),
        pytest.param(loop(8, 3), id="Loop"),
        pytest.param(scan(8, 3), id="Scan"),
    ],
)
def test_initializers_of_subgraphs_stop_being_inputs(case: Any, target: int, keep: bool) -> None:
    original, feeds = case
    result = convert_version(original, target, keep_initializer_inputs=keep)
    assert result.ir_version >= 4
    onnx.checker.check_model(result, full_check=True)
    assert not initializer_inputs(result)
    assert_equal(run(result, feeds), run(original, feeds))


def test_unconverted_subgraphs_remain() -> None:
    """IR version 3 requires initializers of subgraphs to be inputs, but a conversion does not repair them."""
    original, _ = loop(8, 3)
    assert original.graph.node[0].attribute[0].g.input.pop().name == "w"
    result, report = convert(original, 8, bump=True)
    assert (result, report.model_version) == (original, None)


def test_doctor_removes_initializers_from_inputs_of_subgraphs() -> None:
    original, feeds = scan(9, 3)
    # An initializer that is not an input requires IR version 4.
    original.graph.initializer.append(numpy_helper.from_array(feeds.pop("start"), "start"))
    original.graph.input.pop(0)
    result = restamp(original)
    assert result.ir_version == 4
    onnx.checker.check_model(result, full_check=True)
    assert_equal(run(result, feeds), run(original, feeds))


def test_initializers_of_bodies_are_constants_for_steps() -> None:
    """Upsample-9 becomes Resize only with constant scales."""
    scales = numpy_helper.from_array(np.array([1, 1, 2], np.float32), "scales")
    nodes = [node("Upsample", ["x", "scales"], ["m"])]
    inputs = [value("scales")]
    branch = helper.make_graph(nodes, "b", inputs, [value("m", dims=None)], [scales])
    feeds = {"yes": np.array(True), "x": ROWS[None]}
    chosen = node("If", ["yes"], ["y"], then_branch=branch, else_branch=branch)
    result = convert_version(model([chosen], feeds, 9, 3, [3]), 10)
    assert_equal(run(result, feeds), [ROWS[None].repeat(2, axis=2)])
