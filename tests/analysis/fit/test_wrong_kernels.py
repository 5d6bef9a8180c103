"""Kernels with known wrong results, which other operators or opsets avoid; results run in onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.execution import assert_equal, build, op_types, run
from support.forms import in_form
from support.runtimes import fictional_runtime

from opshift import fit
from opshift.registry.runtimes.restrictions import Condition, Restriction
from opshift.registry.runtimes.runtime import Kernel, Runtime

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
