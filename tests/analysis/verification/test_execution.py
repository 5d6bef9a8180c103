"""Search for inputs and runtimes with which both models run and produce comparable outputs."""

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


def model_of(nodes: list[onnx.NodeProto], inputs: Any, output: Any, opset: int = 17) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", [value(*each) for each in inputs], [value(*output)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


X = ("x", FLOAT, ["N", "C", "H", "W"])
Y = ("y", FLOAT, None)
LARGE_POOL = model_of([node("MaxPool", ["x"], ["y"], kernel_shape=[40, 40])], [X], Y)
MATMUL = model_of(
    [node("MatMul", ["a", "b"], ["y"])], [("a", FLOAT, ["I", "J"]), ("b", FLOAT, ["K", "L"])], Y
)
GATHER = model_of([node("Gather", ["x", "i"], ["y"])], [("x", FLOAT, [2, 3]), ("i", INT64, ["N"])], Y)
TRANSPOSE = model_of([node("Transpose", ["x"], ["y"], perm=[2, 0, 1])], [("x", FLOAT, None)], Y)
EXPAND = model_of([node("Expand", ["x", "s"], ["y"])], [("x", FLOAT, [1, 1]), ("s", INT64, [2])], Y)
CAST_FROM_STRING = model_of([node("Cast", ["x"], ["y"], to=FLOAT)], [("x", TensorProto.STRING, ["N"])], Y)
EXPAND_TO_DECLARED_SHAPE = model_of(
    [node("Expand", ["x", "s"], ["y"])], [("x", FLOAT, [1, 1]), ("s", INT64, [2])], ("y", FLOAT, [1, 1])
)
BATCH_OF_ONE = model_of(
    [node("Squeeze", ["x", "axis"], ["s"]), node("Softmax", ["s"], ["y"])], [("x", FLOAT, ["N", "L"])], Y
)
BATCH_OF_ONE.graph.initializer.append(helper.make_tensor("axis", INT64, [1], [0]))
INPUT_CASES = {
    "large images": (LARGE_POOL, "x", (1, 64, 64, 64)),
    "equal sizes": (MATMUL, "a", (3, 3)),
    "indices in range": (GATHER, "i", (2,)),
    "rank of an input": (TRANSPOSE, "x", (2, 3, 4)),
    "nonzero sizes": (EXPAND, "s", (2,)),
    "several elements in a batch of 1": (BATCH_OF_ONE, "x", (1, 3)),
    "numeric strings": (CAST_FROM_STRING, "x", (2,)),
    "declared sizes": (EXPAND_TO_DECLARED_SHAPE, "s", (2,)),
}


@pytest.mark.parametrize(("model", "name", "shape"), INPUT_CASES.values(), ids=INPUT_CASES)
def test_finds_inputs_that_model_accepts(model: onnx.ModelProto, name: str, shape: tuple[int, ...]) -> None:
    verification = verify(model, model)
    assert next(each.shape for each in verification.inputs if each.name == name) == shape
    assert all(output.count for output in verification.outputs)


def test_outputs_have_declared_sizes() -> None:
    (output,) = verify(EXPAND_TO_DECLARED_SHAPE, EXPAND_TO_DECLARED_SHAPE).outputs
    assert (output.shape, output.count) == ((1, 1), 3)


def test_reports_reason_if_no_inputs_work() -> None:
    unsatisfiable = model_of([node("Reshape", ["x", "s"], ["y"])], [("x", FLOAT, [7]), ("s", INT64, [2])], Y)
    with pytest.raises(CannotVerify, match=r"never ran on the same inputs: onnxruntime .*Reshape"):
        verify(unsatisfiable, unsatisfiable)
    assert verify(unsatisfiable, unsatisfiable, {"s": np.array([7, 1])}).equal


def test_failure_with_valid_inputs_is_a_difference() -> None:
    """The converted model accepts one row only, the original any number of rows."""
    fixed_size = model_of(
        [node("Reshape", ["x", "s"], ["y"])], [("x", FLOAT, ["N", 3])], ("y", FLOAT, [None, None])
    )
    fixed_size.graph.initializer.append(helper.make_tensor("s", INT64, [2], [1, 3]))
    any_size = model_of([node("Relu", ["x"], ["y"])], [("x", FLOAT, ["N", 3])], ("y", FLOAT, [None, None]))
    with pytest.raises(VerificationFailed, match="the converted model does not run: onnxruntime"):
        verify(any_size, fixed_size)


def test_refuses_to_compare_outputs_without_elements() -> None:
    empty = model_of([node("Sub", ["x", "x"], ["n"]), node("NonZero", ["n"], ["y"])], [X], ("y", INT64, None))
    with pytest.raises(CannotVerify, match="has no elements in any sample"):
        verify(empty, empty)


def test_compares_shapes_of_outputs_that_never_have_elements() -> None:
    inputs = [("x", FLOAT, [0, 2]), ("z", FLOAT, ["N", 2])]
    relu, transposed = (
        model_of([node(op, ["x"], ["y"]), node("Neg", ["z"], ["w"])], inputs, Y)
        for op in ("Relu", "Transpose")
    )
    for each in (relu, transposed):
        each.graph.output.append(value("w", FLOAT, None))
    found = verify(relu, relu)
    assert (found.equal, [each.count for each in found.outputs]) == (True, [0, 12])
    with pytest.raises(VerificationFailed, match=r"changed from \[0, 2\] to \[2, 0\]"):
        verify(relu, transposed)


def test_selects_runtime_by_release_of_onnxruntime(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that is newer than the registry is treated like the newest release in it."""
    relu = [model_of([node("Relu", ["x"], ["y"])], [X], Y, opset) for opset in (17, 26)]
    runtimes = {
        "1.11.0": ["onnx.reference", "onnx.reference"],
        "1.12.1": ["onnxruntime", "onnx.reference"],
        "9.99.0": ["onnxruntime", "onnxruntime"],
    }
    for version, expected in runtimes.items():
        monkeypatch.setattr(ort, "__version__", version)
        assert [name.split()[0] for name in verify(*relu).runtimes] == expected


def test_does_not_change_runtime_for_invalid_model() -> None:
    """The original has an opset that onnxruntime does not support; onnx.reference would run both models."""
    newer = model_of([node("Relu", ["x"], ["y"])], [X], Y, 28)
    invalid = model_of([node("Relu", ["x"], ["y"], nonsense=1)], [X], Y)
    assert verify(newer, invalid, runtime="reference").equal
    with pytest.raises(VerificationFailed, match="does not run: onnxruntime"):
        verify(newer, invalid)


def test_changes_runtime_if_both_models_are_refused() -> None:
    invalid = model_of([node("Relu", ["x"], ["y"], nonsense=1)], [X], Y)
    assert [name.split()[0] for name in verify(invalid, invalid).runtimes] == ["onnx.reference"] * 2


def test_changes_runtime_for_unsupported_operator() -> None:
    inputs = [("r", FLOAT, []), ("t", INT64, []), *((name, FLOAT, [2]) for name in "xgh")]
    adagrad = node("Adagrad", ["r", "t", "x", "g", "h"], ["y", "z"], domain="ai.onnx.preview.training")
    model = model_of([adagrad], inputs, Y)
    model.opset_import.append(helper.make_opsetid("ai.onnx.preview.training", 1))
    assert [name.split()[0] for name in verify(model, model).runtimes] == ["onnx.reference"] * 2


def test_prefers_one_runtime_for_both_models(monkeypatch: pytest.MonkeyPatch) -> None:
    run = ReferenceEvaluator.run

    def off_by_one(self: Any, *arguments: Any, **options: Any) -> list[Any]:
        return [each + np.float32(1) for each in run(self, *arguments, **options)]

    monkeypatch.setattr(ReferenceEvaluator, "run", off_by_one)
    relu = model_of([node("Relu", ["x"], ["y"])], [X], Y)
    assert [name.split()[0] for name in verify(relu, relu).runtimes] == ["onnxruntime"] * 2
    newer = model_of([node("Relu", ["x"], ["y"])], [X], Y, 28)
    assert [name.split()[0] for name in verify(relu, newer).runtimes] == ["onnx.reference"] * 2
    with pytest.raises(VerificationFailed, match="output 'y' differs"):
        verify(relu, model_of([node("Neg", ["x"], ["y"])], [X], Y, 28))
