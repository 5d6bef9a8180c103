"""Parts of models in forms that strict runtimes read; results run in onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper
from support.execution import assert_equal, op_types, run
from support.forms import in_form

from opshift import DoesNotFit, fit
from opshift.analysis.fit.fit import write_strict_forms
from opshift.registry.registry import default_registry
from opshift.registry.runtimes.files import get_runtime
from opshift.runtimes.check_support import check_support

TRACT = "tract-0.23.9"
X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)

ACCUMULATE = """
    <ir_version: 8, opset_import: ["" : 18]>
    g (float[5, 2] x) => (float[2] total, float[5, 2] sums) {
        zero = Constant <value_ints = [2]> ()
        start = ConstantOfShape (zero)
        total, sums = Scan <num_scan_inputs = 1, body = b (state, item) => (new, out) {
            new = Add (state, item)
            out = Identity (new)
        }> (start, x)
    }
"""


@pytest.mark.parametrize("form", ["initializer", "computed", "branch"])
@pytest.mark.parametrize("opset", [11, 18])
def test_pads_with_scalars(opset: int, form: str) -> None:
    nodes = [
        helper.make_node("Constant", [], ["pads"], value_ints=[1, 0, 0, 2]),
        helper.make_node("Neg", ["value"], ["minus"]),
        helper.make_node("Pad", ["x", "pads", "minus"], ["h"]),
        helper.make_node("Pad", ["h", "pads", "minus"], ["y"]),
    ]
    feeds = {"x": X, "value": np.array([3], np.float32)}
    if opset == 11:
        nodes[0] = helper.make_node(
            "Constant", [], ["pads"], value=helper.make_tensor("v", TensorProto.INT64, [4], [1, 0, 0, 2])
        )
    model, fed = in_form(form, nodes, feeds, {"y": TensorProto.FLOAT}, opset)
    before = model.SerializeToString(deterministic=True)
    expected = run(model, fed)
    changed = onnx.ModelProto.FromString(before)
    write_strict_forms(changed, default_registry())
    assert_equal(run(changed, fed), expected)
    if form == "initializer":
        assert op_types(changed).count("Squeeze") == 2
        assert [each.reason for each in check_support(model, get_runtime(TRACT))] == [
            "tract-0.23.9 refuses the node: `constant_value` is not a scalar"
        ] * 2
        assert check_support(changed, get_runtime(TRACT)) == ()
        fitted = fit(model, TRACT).model
        assert_equal(run(fitted, fed), expected)
    assert model.SerializeToString(deterministic=True) == before


def test_declares_types_of_subgraph_inputs() -> None:
    model = onnx.parser.parse_model(ACCUMULATE)
    fed = {"x": np.arange(10, dtype=np.float32).reshape(5, 2)}
    assert {each.reason for each in check_support(model, get_runtime(TRACT))} == {
        "tract-0.23.9 refuses the node: the inputs of `body` have no types",
        "tract-0.23.9 refuses the node: without `value`, the result is double",
    }
    fitted = fit(model, TRACT)
    assert fitted.report.opsets == {"ai.onnx": 18}
    assert fitted.report.assumptions == ()
    assert check_support(fitted.model, get_runtime(TRACT)) == ()
    inputs = fitted.model.graph.node[2].attribute[1].g.input
    assert [each.type.tensor_type.elem_type for each in inputs] == [TensorProto.FLOAT] * 2
    assert fitted.model.graph.node[1].attribute[0].name == "value"
    assert_equal(run(fitted.model, fed), run(model, fed))


def _reshaped(nodes: str, sizes: str) -> onnx.ModelProto:
    """Return a model with nodes that may read `c`, a computed shape."""
    return onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 13]>
        g (float[3, 4] x, int64[2] s) => (float[{sizes}] y) {{ c = Abs (s) {nodes} }}
    """)


@pytest.mark.parametrize(
    "nodes",
    [
        "r = Reshape (x, c) y = Reshape (r, n)",
        "r = Reshape (x, c) m = Constant <value_ints = [3, 4]> () q = Reshape (r, m) y = Reshape (q, n)",
        "r = Reshape (x, c) i = Identity (r) y = Reshape (i, n)",
    ],
)
def test_reshapes_data_once(nodes: str) -> None:
    model = _reshaped(f"n = Constant <value_ints = [12]> () {nodes}", "12")
    (reason,) = {each.reason for each in check_support(model, get_runtime("onnxruntime-1.23.2"))}
    assert "the optimizer joins the node and the Reshape before it" in reason
    fitted = fit(model, "onnxruntime-1.23.2").model
    assert check_support(fitted, get_runtime("onnxruntime-1.23.2")) == ()
    assert op_types(fitted).count("Reshape") == 1
    fed = {"x": X, "s": np.array([2, -6])}
    assert_equal(run(fitted, fed), run(model, fed))


@pytest.mark.parametrize(
    "nodes",
    [
        "r = Reshape (x, c) y = Unsqueeze (r, a)",
        "z = Constant <value_ints = [1, 3, 0]> () r = Reshape (x, c) y = Reshape (r, z)",
    ],
)
def test_refuses_shapes_that_an_optimizer_cannot_join(nodes: str) -> None:
    model = _reshaped(f"a = Constant <value_ints = [0]> () {nodes}", "1, 3, 4")
    with pytest.raises(DoesNotFit, match="joins the node and the Reshape before it"):
        fit(model, "onnxruntime-1.23.2")


def test_joins_reshapes_in_front_of_constants_of_subgraphs() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 13]>
        g (float[3, 4] x, int64[2] s, int64[3] t, bool b) => (float[12] y, float[A, B, C] z) {
            c = Abs (s) d = Abs (t) n = Constant <value_ints = [12]> ()
            r = Reshape (x, c) y = Reshape (r, n)
            k = Constant <value_ints = [0, -1, 1]> ()
            e = Constant <value_ints = [3, 4, 1]> ()
            z = If (b) <
                then_branch = g1 () => (float[D, E, F] u) { q = Reshape (x, d) u = Reshape (q, k) },
                else_branch = g2 () => (float[G, H, I] v) { v = Reshape (x, e) }
            >
        }
    """)
    result = onnx.ModelProto()
    result.CopyFrom(model)
    write_strict_forms(result, default_registry())
    assert op_types(result).count("Reshape") == 1
    fed = {"x": X, "s": np.array([2, -6]), "t": np.array([6, 1, 2]), "b": np.array(True)}
    assert_equal(run(result, fed), run(model, fed))


def test_joins_reshapes_to_a_size_of_the_reshape_before() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[3, 4] a_long_input_name) => (float[A, B] y) {
            s = Constant <value_ints = [12]> () t = Constant <value_ints = [2, 6]> ()
            a = Reshape (a_long_input_name, s) b = Reshape (a, t) h = Shape (b)
            n = Constant <value_ints = [3]> () z = Constant <value_ints = [0]> ()
            i = Constant <value_ints = [1]> () e = Slice (h, z, i) m = Mul (e, n)
            k = Constant <value_ints = [2]> () d = Concat <axis = 0> (m, k) y = Reshape (b, d)
        }
    """)
    result = onnx.ModelProto()
    result.CopyFrom(model)
    write_strict_forms(result, default_registry())
    assert op_types(result).count("Reshape") == 2
    assert_equal(run(result, {"a_long_input_name": X}), run(model, {"a_long_input_name": X}))


def test_keeps_models_that_run() -> None:
    model = onnx.parser.parse_model(ACCUMULATE)
    assert fit(model, "onnxruntime-1.20.1").model.SerializeToString() == model.SerializeToString()
