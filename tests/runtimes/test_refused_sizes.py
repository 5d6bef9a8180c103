"""Sizes of results in `value_info`, which tract refuses if it infers different ones."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest

from opshift import fit, runs
from opshift.model.messages import ModelProto
from opshift.model.types import declared_dims
from opshift.registry.registry import Registry
from opshift.runtimes.model_nodes import ModelNodes

TRACT, OTHER = "tract-0.23.9", "onnxruntime-1.31.1"
PICKED = "n = NonZero (x) h = Abs (n) y = Cast <to = 1> (h)"
COUNTED = "s = Size (x) k = Cast <to = 1> (s) h = Range (z, k, o) y = Neg (h)"
NUMBERS = "float z = {0.0}, float o = {1.0}"


def _model(inputs: str, declared: str, nodes: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 13]> g ({inputs}) => (float[] y) <{declared}> {{ {nodes} }}'
    )


@pytest.mark.parametrize(
    ("inputs", "declared", "nodes", "left"),
    [
        pytest.param("float[2, 3] x", "int64[2, 4] h", PICKED, "[?, ?]", id="later result"),
        pytest.param("float[2, 3] x", "int64[2, N] n", PICKED, "[?, ?]", id="name of the size"),
        pytest.param("float[2, 3] x", "int64[?, ?] h", PICKED, "", id="rank"),
        pytest.param("float[2, 3] x", f"float[6] h, {NUMBERS}", COUNTED, "", id="computed from a size"),
        pytest.param("float[2, N] x", f"float[M] h, {NUMBERS}", COUNTED, "[?]", id="from a size of the run"),
        pytest.param("float[2, 3] x", "float[2, 3] h", "h = Abs (x) y = Neg (h)", "", id="inferred"),
        pytest.param("float[N, 3] x", "float[N, 3] h", "h = Abs (x) y = Neg (h)", "", id="name of an input"),
        pytest.param("float[2, 3] x", "float[M, 3] h", "h = Abs (x) y = Neg (h)", "[?, 3]", id="other name"),
        pytest.param("float[?, 3] x", "float[M, 3] h", "h = Abs (x) y = Neg (h)", "", id="unnamed input"),
        pytest.param(
            "float[2] x, float s", "float[M] h", "q = Relu (s) h = Mul (x, q) y = Neg (h)", "[?]", id="scalar"
        ),
        pytest.param(
            "float s",
            "float[M] h, int64[1] k = {1}",
            "h = Reshape (s, k) y = Neg (h)",
            "[?]",
            id="only scalar inputs",
        ),
        pytest.param(
            "float[2, 3] x, int64[1] k", "float[2, 1] h", "h, i = TopK (x, k) y = Neg (h)", "[?, ?]", id="fed"
        ),
        pytest.param(
            "float[2, 3] x",
            "float[2, 1] h, int64[1] k = {1}",
            "h, i = TopK (x, k) y = Neg (h)",
            "",
            id="constant",
        ),
        pytest.param(
            "int32[4] x",
            "int32[2] h, int64[1] k = {2}",
            "h, i = TopK (x, k) y = Cast <to = 1> (h)",
            "",
            id="integers as data",
        ),
    ],
)
def test_fit_removes_sizes_that_tract_refuses(inputs: str, declared: str, nodes: str, left: str) -> None:
    """An empty `left` shows that the declarations stay."""
    model = _model(inputs, declared, nodes)
    notes = runs(model, [TRACT]).results[0].support.uncertain
    assert any("refuses sizes in `value_info`" in each for each in notes) == bool(left)
    fitted = fit(model, TRACT)
    assert not any("value_info" in each for each in fitted.report.uncertain)
    (old, *_), (new, *_) = model.graph.value_info, fitted.model.graph.value_info
    assert (new == old) != bool(left)
    dims = declared_dims(new.type) or ()
    assert left in ("", f"[{', '.join('?' if each is None else str(each) for each in dims)}]")
    assert fit(model, OTHER).model.graph.value_info[0] == old


@pytest.mark.parametrize(("declared", "count"), [("float[2, 3] h", 1), ("float[M, 3] h", 2)])
def test_fit_analyzes_a_model_again_only_after_a_change(
    monkeypatch: pytest.MonkeyPatch, declared: str, count: int
) -> None:
    analyzed: list[ModelNodes] = []

    def analyze(model: ModelProto, registry: Registry) -> ModelNodes:
        analyzed.append(ModelNodes(model, registry))
        return analyzed[-1]

    monkeypatch.setattr("opshift.analysis.fit.attempt.ModelNodes", analyze)
    fit(_model("float[2, 3] x", declared, "h = Abs (x) y = Neg (h)"), TRACT)
    assert len(analyzed) == count
