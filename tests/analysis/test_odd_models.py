"""Reports about odd models agree: plan with conversion, reach with the model's own opset, runs with fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from support.execution import assert_equal, run

from opshift import (
    DoesNotFit,
    NoCommonOpset,
    OpshiftError,
    Report,
    common_opset,
    convert,
    convert_version,
    fit,
    plan_version,
    runs,
    simplify,
)
from opshift.analysis.reach import reach
from opshift.model.operator_ids import opset_imports


def parse(imports: str, nodes: str, outputs: str = "float[2,4] y", functions: str = "") -> onnx.ModelProto:
    header = f"<ir_version: 8, opset_import: [{imports}]>"
    return onnx.parser.parse_model(f"{header} g (float[2,4] x) => ({outputs}) {{ {nodes} }} {functions}")


LOCAL = '<domain: "l", opset_import: ["" : 17]> f (x) => (y) { g = Sigmoid (x) y = Mul (x, g) }'
SCALER = "y = ai.onnx.ml.Scaler <offset = [0.0], scale = [2.0]> (x)"
RESIZED = 'y = Upsample <mode = "nearest", scales = [1.0, 2.0]> (x)'
MODELS = {
    "relu": parse('"" : 17', "y = Relu (x)"),
    "unknown operator": parse('"" : 17', "y = Foo (x)"),
    "operator of a newer opset": parse('"" : 17', "y = Mish (x)"),
    "upsample": parse('"" : 7', RESIZED, "float[2,8] y"),
    "only ml": parse('"ai.onnx.ml" : 3', SCALER),
    "only a custom domain": parse('"acme" : 1', "y = acme.Foo (x)"),
    "function": parse('"" : 17, "l" : 1', "h = l.f (x) y = l.f (h)", functions=LOCAL),
    "only a function": parse('"l" : 1', "y = l.f (x)", functions=LOCAL),
    "unused import": parse('"com.microsoft" : 1', "", "float[2,4] x"),
}
RUNTIMES = ["onnxruntime-1.20.1", "tract-0.23.9", "tensorrt-10.1"]
X = {"x": np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)}


def outcome(call: Any, *arguments: Any, **options: Any) -> str:
    """Return the class of the error that a call raises; empty for a result without refusals."""
    try:
        found = call(*arguments, **options)
    except OpshiftError as error:
        return type(error).__name__
    return "ConversionRefused" if getattr(found, "refusals", ()) else ""


@pytest.mark.parametrize("options", [{}, {"check": True}, {"bump": True}, {"fold": True}], ids=str)
@pytest.mark.parametrize("case", MODELS)
def test_plan_agrees_with_conversion(case: str, options: dict[str, Any]) -> None:
    model = MODELS[case]
    content = model.SerializeToString()
    planned = outcome(plan_version, model, 18, **options)
    assert model.SerializeToString() == content
    assert planned == outcome(convert_version, model, 18, **options)
    if not planned:
        assert Report.of(plan_version(model, 18, **options)).model_version == (
            convert(model, 18, **options).report.model_version
        )


@pytest.mark.parametrize("case", ["relu", "unknown operator", "operator of a newer opset", "function"])
def test_reach_agrees_with_conversion_to_the_own_opset(case: str) -> None:
    model = MODELS[case]
    found = reach(model)
    is_refused = bool(outcome(convert_version, model, found.opset))
    assert found.is_empty == is_refused
    assert (found.lowest <= found.opset <= found.highest) == (not is_refused)
    if is_refused:
        assert [each.opset for each in found.limits] == [found.opset]
        with pytest.raises(NoCommonOpset, match=f"cannot be converted to its own opset {found.opset}: "):
            common_opset([MODELS["relu"], model])


RUN, RUN_CALLS = ("runs", 0), ("runs", 1)
CONVERTED, INLINED, UNFIT = ("after conversion", 0), ("does not run", 0), ("does not run", None)
OUTCOMES: dict[str, tuple[tuple[str, int | None], ...]] = {
    "relu": (RUN, RUN, RUN),
    "unknown operator": (UNFIT, UNFIT, UNFIT),
    "operator of a newer opset": (UNFIT, UNFIT, UNFIT),
    "upsample": (RUN, CONVERTED, CONVERTED),
    "only ml": (RUN, UNFIT, UNFIT),
    "only a custom domain": (UNFIT, UNFIT, UNFIT),
    "function": (RUN_CALLS, CONVERTED, CONVERTED),
    "only a function": (RUN_CALLS, INLINED, INLINED),
    "unused import": (RUN, RUN, RUN),
}
"""Verdict of `runs`, and number of local functions that `fit` keeps, for each of RUNTIMES.

The number is None if the model does not fit. `runs` converts to other opsets, but does not inline functions.
"""


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("case", MODELS)
def test_fit_finds_what_runs_finds(case: str, runtime: str) -> None:
    model = MODELS[case]
    (result,) = runs(model, runtime).results
    verdict, kept_functions = OUTCOMES[case][RUNTIMES.index(runtime)]
    assert result.verdict == verdict
    if kept_functions is None:
        assert outcome(fit, model, runtime) == DoesNotFit.__name__
        return
    fitted = fit(model, runtime).model
    assert bool(runs(fitted, runtime))
    assert len(fitted.functions) == kept_functions
    assert_equal(run(fitted, X), run(model, X))


@pytest.mark.parametrize(
    ("runtime", "verdict", "opset"),
    [
        ("onnxruntime-1.14.1", "after conversion", 18),
        ("onnxruntime-1.16.3", "after conversion", 19),
        ("onnxruntime-1.20.1", "runs", None),
        ("tensorrt-10.1", "does not run", None),
    ],
)
def test_runs_converts_a_model_that_imports_only_the_domain_of_a_function(
    runtime: str, verdict: str, opset: int | None
) -> None:
    """The opset of the function is converted, although the model does not import the default domain."""
    gelu = '<domain: "l", opset_import: ["" : 20]> f (x) => (y) { y = Gelu (x) }'
    model = parse('"l" : 1', "y = l.f (x)", functions=gelu)
    (result,) = runs(model, runtime).results
    assert result.verdict == verdict
    assert (result.conversion and result.conversion.opsets) == (opset and {"ai.onnx": opset})
    if opset:
        converted = convert_version(model, opset)
        assert [bool(each) for each in (runs(converted, runtime), runs(model, runtime))] == [True, False]
        assert_equal(run(converted, X), run(model, X))


EMPTY: dict[str, tuple[Callable[[onnx.ModelProto], onnx.ModelProto], int | None]] = {
    "simplify": (simplify, None),
    "fold": (lambda model: convert_version(model, 17, fold=True), 17),
    "without": (lambda model: convert_version(model, without=["com.microsoft", "ai.onnx.ml"]), None),
    "runtime": (lambda model: convert_version(model, "tensorrt-8.6", fold=True), None),
}


@pytest.mark.parametrize(("domain", "opset", "companion"), [("com.microsoft", 1, 1), ("ai.onnx.ml", 3, 16)])
@pytest.mark.parametrize("case", EMPTY)
def test_a_model_keeps_an_opset_import(case: str, domain: str, opset: int, companion: int) -> None:
    """The default domain is imported if no other import remains."""
    nodes = "" if domain == "com.microsoft" else "y = ai.onnx.ml.Binarizer <threshold = 1.0> (x)"
    model = parse(f'"{domain}" : {opset}', nodes, "float[2,4] x")
    change, target = EMPTY[case]
    result = change(model)
    imports = opset_imports(result.opset_import)
    if case != "runtime":
        assert imports == {"ai.onnx": target or companion}
    onnx.checker.check_model(result)
    assert_equal(run(result, X), [X["x"]])
    assert outcome(convert_version, result, 17) == ""
