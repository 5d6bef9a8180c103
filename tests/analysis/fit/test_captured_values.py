"""Subgraphs that read values of enclosing graphs, for runtimes that refuse this."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from support.execution import assert_equal, run

from opshift import fit, runs
from opshift.model.graphs import nested_nodes

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
example (float[2] s, float[3, 2] x{inputs}) => (float[2] total, float[3, 2] y) {initializers} {{
    {before}
    total, y = Scan <
        num_scan_inputs = 1,
        body = step (float[2] state, float[2] row) => (float[2] sum, float[2] out) {{
            sum = Add (state, row)
            {inside}
        }}
    > (s, x)
}}
"""

READS_SCALE = "out = Mul (sum, scale)"
NESTED = """
    yes = Constant <value = bool {1}> ()
    out = If (yes) <then_branch = one () => (float[2] o) { o = Mul (sum, scale) },
                    else_branch = two () => (float[2] p) { p = Identity (sum) }>
"""


@pytest.mark.parametrize("inside", [READS_SCALE, NESTED], ids=["in the body", "in a branch of the body"])
@pytest.mark.parametrize(
    ("inputs", "initializers", "before", "is_refused"),
    [
        (", float[2] scale", "", "", True),
        ("", "", "scale = Neg (s)", True),
        ("", "", "c = Constant <value = float[2] {2, 3}> () scale = Neg (c)", True),
        ("", "", "scale = Constant <value = float[2] {2, 3}> ()", False),
        ("", "<float[2] scale = {2, 3}>", "", False),
    ],
    ids=["graph input", "computed", "computed from a constant", "constant", "initializer"],
)
def test_replaces_a_scan_that_reads_computed_values_by_a_loop(
    inputs: str, initializers: str, before: str, inside: str, *, is_refused: bool
) -> None:
    text = MODEL.format(inputs=inputs, initializers=initializers, before=before, inside=inside)
    model = onnx.parser.parse_model(text)
    (result,) = runs(model, "openvino-2026.4.1").results
    assert bool(result.support.missing) == is_refused
    if is_refused:
        assert "reads computed values of enclosing graphs" in result.support.missing[0].reason
    fitted = fit(model, "openvino-2026.4.1").model
    kinds = {each.op_type for each in nested_nodes(fitted.graph)}
    assert kinds & {"Scan", "Loop"} == {"Loop" if is_refused else "Scan"}
    feeds = {"s": np.ones(2, np.float32), "x": np.arange(6, dtype=np.float32).reshape(3, 2)}
    if inputs:
        feeds["scale"] = np.array([2, -3], np.float32)
    assert_equal(run(fitted, feeds), run(model, feeds))
