"""Kernels with known wrong results, which other operators or opsets avoid; results run in onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper
from support.execution import assert_equal, build, op_types, run
from support.forms import in_form
from support.runtimes import fictional_runtime
from support.tree_ensembles import ML, data, regressor

from opshift import convert_version, fit
from opshift.registry.runtimes.restrictions import Condition, Restriction
from opshift.registry.runtimes.runtime import Kernel, Runtime
from random_graphs.forests import Forest, votes

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
OTHERS = ("Add", "Cast", "Constant", "Div", "Elu", "Identity", "Mul", "Neg")


def _runtime(*names: str, versions: tuple[int, int] = (1, 99)) -> Runtime:
    """Return a runtime that ignores `alpha` in some versions of Celu and ThresholdedRelu."""
    wrong = Restriction(reason="`alpha` is ignored", unless=Condition(attributes={"alpha": (1.0,)}))
    return fictional_runtime(
        opsets={"ai.onnx": 28},
        operators={f"ai.onnx.{each}": (Kernel(versions=versions),) for each in names},
        wrong=dict.fromkeys(("ai.onnx.Celu:12", "ai.onnx.ThresholdedRelu:10"), (wrong,)),
    )


@pytest.mark.parametrize("form", ["fed", "symbolic", "branch"])
def test_other_operators_replace_a_wrong_kernel(form: str) -> None:
    nodes = [helper.make_node("Celu", ["x"], ["h"], alpha=2.0), helper.make_node("Celu", ["h"], ["y"])]
    model, feeds = in_form(form, nodes, {"x": X}, {"y": TensorProto.FLOAT}, 13)
    fitted = fit(model, _runtime("Celu", "If", *OTHERS))
    assert fitted.report.warnings == ()
    assert fitted.report.replaced == ("ai.onnx.Celu",)
    assert fitted.report.opsets == {"ai.onnx": 13}
    assert_equal(run(fitted.model, feeds), run(model, feeds))
    if form == "fed":
        assert op_types(fitted.model).count("Celu") == 1  # the kernel is right for the default of `alpha`


def test_another_opset_avoids_a_wrong_kernel() -> None:
    model = build([helper.make_node("ThresholdedRelu", ["x"], ["y"], alpha=2.0)], {"x": X}, ["y"], 21)
    fitted = fit(model, _runtime("ThresholdedRelu"))
    assert fitted.report.warnings == ()
    assert fitted.report.opsets == {"ai.onnx": 22}
    assert op_types(fitted.model) == ["ThresholdedRelu"]
    assert_equal(run(fitted.model, {"x": X}), run(model, {"x": X}))


def test_simple_nodes_replace_a_wrong_function_body() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 23]>
        g (double[1, 2, 3, 2] x) => (double[1, 2, 3, 2] y) { y = Attention (x, x, x) }
    """)
    feeds = {"x": X.reshape(1, 2, 3, 2).astype(np.float64)}
    fitted = fit(model, "onnxruntime-1.23.2")
    assert fitted.report.warnings == ()
    assert "Attention" not in op_types(fitted.model)
    assert_equal(run(fitted.model, feeds), run(model, feeds))


@pytest.mark.parametrize("others", [(), ("Elu", "Constant")], ids=["no operators", "some operators"])
def test_keeps_a_wrong_kernel_that_nothing_replaces(others: Any) -> None:
    model = build([helper.make_node("Celu", ["x"], ["y"], alpha=2.0)], {"x": X}, ["y"], 13)
    fitted = fit(model, _runtime("Celu", *others, versions=(1, 13)))
    assert fitted.report.warnings == ("ai.onnx.Celu:12: `alpha` is ignored",)
    assert op_types(fitted.model) == ["Celu"]


def test_moves_values_in_a_type_whose_casts_are_right() -> None:
    """The kernels that cast 4-bit integers to int8 are wrong in onnxruntime 1.23.2."""
    nodes = [
        helper.make_node("Cast", ["x"], ["q"], to=TensorProto.INT4),
        helper.make_node("Flatten", ["q"], ["f"]),
        helper.make_node("Cast", ["f"], ["y"], to=TensorProto.FLOAT),
    ]
    model = build(nodes, {"x": X}, {"y": TensorProto.FLOAT}, 21, ir_version=10)
    fitted = fit(model, "onnxruntime-1.23.2")
    assert fitted.report.bridges == ("ai.onnx.Flatten:21: T in int32 instead of int4",)
    assert fitted.report.warnings == ()
    assert fit(model, "onnxruntime-1.22.1").report.bridges[0].endswith("int8 instead of int4")


POOL = """<ir_version: 8, opset_import: ["": 21]>
g (float[1, 1, 6, 6] x) => (float[a, b, c, d] y) {
    y = AveragePool <count_include_pad = 1, kernel_shape = [3, 3], pads = [1, 0, 1, 0]> (x)
}"""

CEILING = """<ir_version: 8, opset_import: ["": 18]>
g (float[1, 1, 6, 6] x) => (float[a, b, c, d] y) {
    y = MaxPool <ceil_mode = 1, kernel_shape = [3, 3], pads = [2, 2, 2, 2], strides = [2, 2]> (x)
}"""


@pytest.mark.parametrize(
    ("text", "runtime", "opset"),
    [
        (POOL, "onnxruntime-1.23.2", 18),
        (POOL, "onnxruntime-1.25.1", 21),
        (CEILING, "onnxruntime-1.20.1", 9),
        (CEILING, "onnxruntime-1.21.1", 18),
    ],
)
def test_finds_an_opset_with_another_version_of_the_operator(text: str, runtime: str, opset: int) -> None:
    """The nearest opsets have the same version of the operator, and so the same wrong kernel."""
    model, feeds = onnx.parser.parse_model(text), {"x": np.linspace(-2, 2, 36, dtype=np.float32)}
    feeds["x"] = feeds["x"].reshape(1, 1, 6, 6)
    fitted = fit(model, runtime)
    assert fitted.report.warnings == ()
    assert fitted.report.opsets == {"ai.onnx": opset}
    assert_equal(run(fitted.model, feeds), run(model, feeds))


@pytest.mark.parametrize(("runtime", "warnings"), [("onnxruntime-1.22.1", 1), ("onnxruntime-1.23.2", 0)])
def test_reads_conditions_about_tensors(runtime: str, warnings: int) -> None:
    """Onnxruntime 1.22 computes trees wrongly if all modes in the tensor are BRANCH_EQ."""
    forest = regressor(Forest(votes((0, 1)), modes=("BRANCH_EQ",)), data(), 2)
    fitted = fit(convert_version(forest, {ML: 5}), runtime)
    assert len(fitted.report.warnings) == warnings
    assert fitted.report.opsets[ML] == 5


def test_replaces_experts_in_float16() -> None:
    text = """<ir_version: 8, opset_import: ["": 18, "com.microsoft": 1]>
    g (float16[3, 4] x, float16[3, 2] r, float16[2, 4, 4] w) => (float16[3, 4] y) {
        y = com.microsoft.MoE (x, r, w, "", w)
    }"""
    fitted = fit(onnx.parser.parse_model(text), "onnxruntime-1.31.1")
    assert fitted.report.replaced == ("com.microsoft.MoE",)
    assert fitted.report.warnings == ()


@pytest.mark.parametrize(
    ("keys", "attributes", "is_replaced"),
    [
        (3, "", False),
        (4, "", True),
        (3, "unidirectional = 1, ", False),
        (4, "unidirectional = 1, ", True),
    ],
)
@pytest.mark.parametrize("mask", ["mask", ""])
def test_compares_sizes(keys: int, attributes: str, is_replaced: bool, mask: str) -> None:
    """Masks are wrong in onnxruntime 1.20 unless there are as many keys as queries."""
    text = f"""<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
    g (float[2, 3, 4] q, float[2, {keys}, 4] k, int32[2, {keys}] mask) => (float[2, 3, 4] y) {{
        y = com.microsoft.MultiHeadAttention <{attributes}num_heads = 2> (q, k, k, "", {mask or '""'})
    }}"""
    fitted = fit(onnx.parser.parse_model(text), "onnxruntime-1.20.1")
    assert fitted.report.warnings == ()
    uses_size = bool(mask or attributes)
    assert bool(fitted.report.replaced) == (is_replaced and uses_size)
    assert fit(onnx.parser.parse_model(text), "onnxruntime-1.21.1").report.replaced == ()


def test_wrong_results_that_cannot_be_avoided_are_warnings() -> None:
    sometimes = Restriction(reason="NaN becomes 0", sometimes=True, when=Condition())
    kernels = {f"ai.onnx.{each}": (Kernel(versions=(1, 99)),) for each in ("Celu", *OTHERS)}
    runtime = fictional_runtime(
        opsets={"ai.onnx": 28},
        operators=kernels,
        wrong={"ai.onnx.Celu:12": (sometimes,)},
        inexact_types={"float": "computed in float16"},
    )
    model = build([helper.make_node("Celu", ["x"], ["y"], alpha=2.0)], {"x": X}, ["y"], 13)
    fitted = fit(model, runtime)
    assert op_types(fitted.model) == ["Celu"]
    assert fitted.report.warnings == ("float: computed in float16", "ai.onnx.Celu:12: NaN becomes 0")
