"""Functions that return an input, or a value twice, are inlined only if the result can have an Identity."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from support.calls import FEEDS, X
from support.execution import assert_equal, run, run_reference

from opshift import convert_version, plan_version

NEGATION = """
    <domain: "", opset_import: ["": 15]>
    Identity (v) => (w) { w = Neg (v) }
"""

TENSORS = (
    """
    <ir_version: 8, opset_import: ["": 15, "local": 1]>
    main (float[1, 3, 4] x) => (float[1, 3, 4] y, float[1, 3, 4] z) { y, z = local.F (x) }
    <domain: "local", opset_import: ["": 15]>
    F (v) => (v, w) { w = Relu (v) }
    """
    + NEGATION
)


@pytest.mark.parametrize("options", [{"without": ["local", "ai.onnx.Identity"]}, {"ir_version": 7}])
def test_added_identity_does_not_call_a_function(options: dict[str, Any]) -> None:
    """The function named Identity is inlined, too, but no node calls it."""
    result = convert_version(onnx.parser.parse_model(TENSORS), **options)
    assert len(result.functions) == 0
    assert_equal(run(result, FEEDS), [X, np.maximum(X, 0)])


def test_inlines_calls_of_a_function_named_identity() -> None:
    model = onnx.parser.parse_model(TENSORS.replace("w = Relu (v)", "w = Identity (v)"))
    result = convert_version(model, without=["local", "ai.onnx.Identity"])
    assert_equal(run(result, FEEDS), [X, -X])


def test_refuses_an_identity_that_would_call_a_function() -> None:
    (refusal,) = plan_version(onnx.parser.parse_model(TENSORS), without="local").refusals
    assert (refusal.place, refusal.code) == ("function local.F", "function.shadows-operator")
    reason = "inlined nodes use the operator Identity, but a function of the model has that name"
    assert refusal.reason == reason
    assert refusal.remedy == "rename the function ai.onnx.Identity"


def test_inlines_unrepeated_values_beside_a_function_named_identity() -> None:
    model = onnx.parser.parse_model(TENSORS.replace("y, z = local.F (x)", '"", z = local.F (x) y = Abs (x)'))
    result = convert_version(model, without="local")
    assert_equal(run(result, FEEDS), [np.abs(X), np.maximum(X, 0)])


SEQUENCES = """
    <ir_version: 8, opset_import: ["": 15, "local": 1, "kept": 1]>
    main (float[1, 3, 4] x) => (float[2, 3, 4] y, int64 n) {{
        s = SequenceConstruct (x, x)
        t, n = {called} (s)
        y = ConcatFromSequence <axis = 0> (t)
    }}
    <domain: "local", opset_import: ["": 15]>
    F (v) => (v, n) {{ n = SequenceLength (v) }}
    <domain: "local", opset_import: ["local": 1]>
    Outer (v) => (w, n) {{ w, n = local.F (v) }}
    <domain: "kept", opset_import: ["local": 1]>
    Outer (v) => (w, n) {{ w, n = local.F (v) }}
"""


@pytest.mark.parametrize("called", ["local.F", "local.Outer", "kept.Outer"])
def test_refuses_types_that_identity_does_not_accept(called: str) -> None:
    model = onnx.parser.parse_model(SEQUENCES.format(called=called))
    assert_equal(
        run_reference(convert_version(model, 14, without="local"), FEEDS),
        [np.concatenate([X, X]), np.array(2)],
    )
    (refusal,) = plan_version(model, 13, without="local").refusals
    assert (refusal.place, refusal.code) == ("function local.F", "type.unsupported")
    assert refusal.reason == (
        "it returns an input, or a value twice, and Identity of opset 13 does not accept the type "
        "seq(tensor(float))"
    )


UNIMPORTED = """
    <ir_version: 8, opset_import: ["local": 1]>
    main ({type} x) => ({type} y) {{ y = local.F (x) }}
    <domain: "local", opset_import: ["local": 1]>
    F (v) => (v) {{ }}
"""


@pytest.mark.parametrize("options", [{"without": "local"}, {"ir_version": 7}], ids=str)
@pytest.mark.parametrize("value_type", ["seq(float[2])", "bfloat16[2]"])
def test_added_identity_has_the_opset_of_the_target(value_type: str, options: dict[str, Any]) -> None:
    model = onnx.parser.parse_model(UNIMPORTED.format(type=value_type))
    result = convert_version(model, 17, **options)
    assert {each.domain: each.version for each in result.opset_import}[""] == 17
    onnx.checker.check_model(result, full_check=True)
    if value_type.startswith("seq"):
        feeds: dict[str, Any] = {"x": [X, X]}
        assert_equal(run(result, feeds), [[X, X]])
    (refusal,) = plan_version(model, 12, **options).refusals
    assert "Identity of opset 12 does not accept the type" in refusal.reason


def test_keeps_functions_that_cannot_be_inlined_for_an_older_ir_version() -> None:
    model = onnx.parser.parse_model(SEQUENCES.format(called="local.F"))
    result = convert_version(model, 11)
    assert (result.ir_version, len(result.functions)) == (8, 3)
    (refusal,) = plan_version(model, 13, ir_version=7).refusals
    assert "Identity of opset 13 does not accept the type seq(tensor(float))" in refusal.reason


def test_refuses_maps() -> None:
    """No version of Identity accepts a map."""
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 15, "ai.onnx.ml": 1, "local": 1]>
        main (float[1, 3] x) => (seq(map(string, float)) y, seq(map(string, float)) z) { y, z = local.F (x) }
        <domain: "local", opset_import: ["ai.onnx.ml": 1]>
        F (v) => (w, w) { w = ai.onnx.ml.ZipMap <classlabels_strings = ["a", "b", "c"]> (v) }
    """)
    (refusal,) = plan_version(model, without="local").refusals
    assert refusal.reason.endswith("Identity of opset 15 does not accept the type seq(map(string, float))")
