"""Inputs and runtimes are looked for with which both models run and something can be told."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from opshift import CannotVerify, VerificationFailed, verify

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
node, value = helper.make_node, helper.make_tensor_value_info


def of(nodes: list[onnx.NodeProto], inputs: Any, output: Any, opset: int = 17) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", [value(*each) for each in inputs], [value(*output)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


X = ("x", FLOAT, ["N", "C", "H", "W"])
Y = ("y", FLOAT, None)
POOLED = of([node("MaxPool", ["x"], ["y"], kernel_shape=[40, 40])], [X], Y)
EQUAL_SIZES = of([node("MatMul", ["a", "b"], ["y"])], [("a", FLOAT, ["I", "J"]), ("b", FLOAT, ["K", "L"])], Y)
TABLE = of([node("Gather", ["x", "i"], ["y"])], [("x", FLOAT, [2, 3]), ("i", INT64, ["N"])], Y)
UNRANKED = of([node("Transpose", ["x"], ["y"], perm=[2, 0, 1])], [("x", FLOAT, None)], Y)
SIZES = of([node("Expand", ["x", "s"], ["y"])], [("x", FLOAT, [1, 1]), ("s", INT64, [2])], Y)
NUMERALS = of([node("Cast", ["x"], ["y"], to=FLOAT)], [("x", TensorProto.STRING, ["N"])], Y)
STATED = of(
    [node("Expand", ["x", "s"], ["y"])], [("x", FLOAT, [1, 1]), ("s", INT64, [2])], ("y", FLOAT, [1, 1])
)
FOUND = {
    "images that are large enough": (POOLED, "x", (1, 64, 64, 64)),
    "sizes that are alike": (EQUAL_SIZES, "a", (3, 3)),
    "indices that are in the table": (TABLE, "i", (2,)),
    "a rank": (UNRANKED, "x", (2, 3, 4)),
    "sizes other than 0": (SIZES, "s", (2,)),
    "text that is a number": (NUMERALS, "x", (2,)),
    "sizes as they are stated": (STATED, "s", (2,)),
}


@pytest.mark.parametrize(("model", "name", "shape"), FOUND.values(), ids=FOUND)
def test_inputs_are_found_that_a_model_runs_with(
    model: onnx.ModelProto, name: str, shape: tuple[int, ...]
) -> None:
    found = verify(model, model)
    assert next(each.shape for each in found.inputs if each.name == name) == shape
    assert all(output.count for output in found.outputs)


def test_stated_sizes_are_met() -> None:
    (output,) = verify(STATED, STATED).outputs
    assert (output.shape, output.count) == ((1, 1), 3)


def test_if_no_inputs_do_the_reason_is_told() -> None:
    never = of([node("Reshape", ["x", "s"], ["y"])], [("x", FLOAT, [7]), ("s", INT64, [2])], Y)
    with pytest.raises(CannotVerify, match=r"with which both models run: onnxruntime .*Reshape"):
        verify(never, never)
    assert verify(never, never, {"s": np.array([7, 1])}).equal


def test_a_failure_with_fitting_inputs_is_a_difference() -> None:
    """The converted model takes only one row, the original any."""
    strict = of([node("Reshape", ["x", "s"], ["y"])], [("x", FLOAT, ["N", 3])], ("y", FLOAT, [None, None]))
    strict.graph.initializer.append(helper.make_tensor("s", INT64, [2], [1, 3]))
    relaxed = of([node("Relu", ["x"], ["y"])], [("x", FLOAT, ["N", 3])], ("y", FLOAT, [None, None]))
    with pytest.raises(VerificationFailed, match="the converted model does not run: onnxruntime"):
        verify(relaxed, strict)


def test_outputs_without_elements_are_compared_as_such() -> None:
    empty = of([node("Relu", ["x"], ["y"])], [("x", FLOAT, [0, 2])], Y)
    assert verify(empty, empty).outputs[0].count == 0


def test_onnxruntime_is_asked_for_what_its_release_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a release that is newer than the registry the same is expected as of the newest there."""
    relu = [of([node("Relu", ["x"], ["y"])], [X], Y, opset) for opset in (17, 28)]
    for version in ("1.12.1", "9.99.0"):
        monkeypatch.setattr(ort, "__version__", version)
        found = verify(*relu)
        assert [name.split()[0] for name in found.runtimes] == ["onnxruntime", "onnx.reference"]
    monkeypatch.setattr(ort, "__version__", "1.11.0")
    assert [name.split()[0] for name in verify(*relu).runtimes] == ["onnx.reference"] * 2


def test_what_a_runtime_refuses_as_wrong_is_not_run_in_another() -> None:
    """Of the original onnxruntime does not know the opset; onnx.reference would run both."""
    newer = of([node("Relu", ["x"], ["y"])], [X], Y, 28)
    wrong = of([node("Relu", ["x"], ["y"], nonsense=1)], [X], Y)
    assert verify(newer, wrong, runtime="reference").equal
    with pytest.raises(VerificationFailed, match="does not run: onnxruntime"):
        verify(newer, wrong)


def test_what_a_runtime_refuses_in_both_is_run_in_another() -> None:
    odd = of([node("Relu", ["x"], ["y"], nonsense=1)], [X], Y)
    assert [name.split()[0] for name in verify(odd, odd).runtimes] == ["onnx.reference"] * 2


def test_an_operator_that_a_runtime_does_not_have_is_run_in_another() -> None:
    inputs = [("r", FLOAT, []), ("t", INT64, []), *((name, FLOAT, [2]) for name in "xgh")]
    adagrad = node("Adagrad", ["r", "t", "x", "g", "h"], ["y", "z"], domain="ai.onnx.preview.training")
    model = of([adagrad], inputs, Y)
    model.opset_import.append(helper.make_opsetid("ai.onnx.preview.training", 1))
    assert [name.split()[0] for name in verify(model, model).runtimes] == ["onnx.reference"] * 2


def test_where_runtimes_differ_one_that_runs_both_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    run = ReferenceEvaluator.run

    def off_by_one(self: Any, *arguments: Any, **options: Any) -> list[Any]:
        return [each + np.float32(1) for each in run(self, *arguments, **options)]

    monkeypatch.setattr(ReferenceEvaluator, "run", off_by_one)
    relu = of([node("Relu", ["x"], ["y"])], [X], Y)
    assert [name.split()[0] for name in verify(relu, relu).runtimes] == ["onnxruntime"] * 2
    newer = of([node("Relu", ["x"], ["y"])], [X], Y, 28)
    assert [name.split()[0] for name in verify(relu, newer).runtimes] == ["onnx.reference"] * 2
    with pytest.raises(VerificationFailed, match="output 'y' differs"):
        verify(relu, of([node("Neg", ["x"], ["y"])], [X], Y, 28))
