"""Omitted last inputs of nodes, which some runtimes count as given."""

from __future__ import annotations

import onnx.parser
import pytest

from opshift import fit, runs

TRACT, OPENVINO, OTHER = "tract-0.23.9", "openvino-2026.4.1", "onnxruntime-1.31.1"


@pytest.mark.parametrize(
    ("node", "inputs"),
    [
        pytest.param('y = Conv (x, w, "")', ["x", "w"], id="last input"),
        pytest.param('y = Clip (x, "", "")', ["x"], id="two inputs"),
        pytest.param("y = Conv (x, w)", None, id="no omitted input"),
        pytest.param('y = Clip (x, "", m)', None, id="omitted before a given input"),
        pytest.param("y = Loop (\"\", \"\") <body = b (int64 i, bool c) => (bool d, float z) "
                     "{ d = Identity (c) z = Cast <to = 1> (i) }>", None, id="minimum of the definition"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("runtime", [TRACT, OPENVINO, OTHER])
def test_fit_removes_omitted_last_inputs(runtime: str, node: str, inputs: list[str] | None) -> None:
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 13]> g (float[1, 1, 3] x, float m) => (float[] y) '
        f"<float[1, 1, 1] w = {{2.0}}> {{ {node} }}"
    )
    support = runs(model, [runtime]).results[0].support
    is_noted = any("omitted inputs" in each for each in support.uncertain)
    assert is_noted == (inputs is not None and runtime != OTHER)
    if not support.missing:
        fitted = fit(model, runtime)
        assert not any("omitted inputs" in each for each in fitted.report.uncertain)
        assert list(fitted.model.graph.node[-1].input) == (inputs or list(model.graph.node[0].input))
