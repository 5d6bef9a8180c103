"""onnxruntime's kernels of Attention accept fewer masks, caches and sizes than the definition."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from support.execution import assert_equal, loads_and_runs, run

from opshift import convert_version, fit, runs

INSTALLED, OLDEST, NEWEST = "onnxruntime-1.31.1", "onnxruntime-1.23.2", "onnxruntime-1.32.0"
HEADS = "T[2, 4, 3, 8] q, T[2, 2, 5, 8] k, T[2, 2, 5, 8] v"
PACKED = "T[2, 3, 32] q, T[2, 5, 16] k, T[2, 5, 16] v"
PAST = "T[2, 2, 2, 8] a, T[2, 2, 2, 8] b"
MASKED = "y = Attention (q, k, v, m)"
CACHED = "y, c, d = Attention (q, k, v, m, a, b)"
CASES = {
    "mask": (f"{HEADS}, T[3, 5] m", MASKED, True),
    "boolean mask": (f"{HEADS}, bool[2, 1, 3, 5] m", MASKED, True),
    "one row": (f"{HEADS}, T[1, 5] m", MASKED, False),
    "one row for each entry": (f"{HEADS}, bool[2, 1, 1, 5] m", MASKED, False),
    "one row for one query": (f"{HEADS.replace('4, 3, 8', '4, 1, 8')}, T[1, 5] m", MASKED, True),
    "one row, packed heads": (
        f"{PACKED}, T[1, 5] m", "y = Attention <q_num_heads = 4, kv_num_heads = 2> (q, k, v, m)", False,
    ),
    "vector": (f"{HEADS}, T[5] m", MASKED, False),
    "scalar": (f"{HEADS}, T m", MASKED, False),
    "one column": (f"{HEADS}, T[3, 1] m", MASKED, False),
    "one column for one key": (f"{HEADS.replace('2, 5, 8', '2, 1, 8')}, T[3, 1] m", MASKED, True),
    "fewer columns": (f"{HEADS}, T[3, 4] m", MASKED, False),
    "columns for past keys": (f"{HEADS}, T[3, 7] m, {PAST}", CACHED, True),
    "no columns for past keys": (f"{HEADS}, T[3, 5] m, {PAST}", CACHED, False),
    "only keys cached": (f"{HEADS}, {PAST}", 'y, c = Attention (q, k, v, "", a, b)', False),
    "only values cached": (f"{HEADS}, {PAST}", 'y, "", d = Attention (q, k, v, "", a, b)', False),
    "nothing cached": (f"{HEADS}, {PAST}", 'y = Attention (q, k, v, "", a, b)', False),
    "no past": (HEADS, "y, c = Attention (q, k, v)", True),
    "no queries": (HEADS.replace("4, 3, 8", "4, 0, 8"), "y = Attention (q, k, v)", False),
    "no batch": (HEADS.replace("[2,", "[0,"), "y = Attention (q, k, v)", False),
    "no keys": (HEADS.replace("2, 5, 8", "2, 0, 8"), "y = Attention (q, k, v)", False),
}  # fmt: skip
INVALID = ("fewer columns", "no columns for past keys", "no keys", "scalar")
"""Cases that the definition does not allow at opset 23, or that the function body cannot compute."""


def _model(inputs: str, node: str, element_type: str = "float", opset: int = 23) -> onnx.ModelProto:
    declared = inputs.replace("T[", f"{element_type}[").replace("T m", f"{element_type} m")
    rank = 3 if "q_num_heads" in node else 4
    result = f"{element_type}[{', '.join('?' * rank)}] y"
    text = f'<ir_version: 10, opset_import: ["": {opset}]> g ({declared}) => ({result}) {{ {node} }}'
    return onnx.parser.parse_model(text)


def _feeds(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    random, feeds = np.random.default_rng(31), {}
    for each in model.graph.input:
        shape = [dim.dim_value for dim in each.type.tensor_type.shape.dim]
        kind = onnx.helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type)
        values = np.asarray(random.standard_normal(shape))
        feeds[each.name] = values > -1 if kind == np.bool_ else values.astype(kind)
    return feeds


def _is_run(model: onnx.ModelProto, runtime: str = INSTALLED) -> bool:
    support = runs(model, [runtime]).results[0].support
    assert not support.uncertain
    return not support.missing


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("opset", [23, 24])
def test_predicts_what_the_installed_release_runs(opset: int, name: str) -> None:
    inputs, node, is_run = CASES[name]
    model = _model(inputs, node, opset=opset)
    feeds = _feeds(model)
    assert loads_and_runs(model, feeds) is is_run
    assert _is_run(model) is is_run


@pytest.mark.parametrize("name", [name for name in CASES if name not in INVALID])
def test_fitted_models_run(name: str) -> None:
    model = _model(*CASES[name][:2])
    feeds = _feeds(model)
    fitted = fit(model, INSTALLED).model
    assert _is_run(fitted)
    assert_equal(run(fitted, feeds), run(convert_version(model, 22), feeds))


@pytest.mark.parametrize("name", ["one row", "vector", "one column", "only keys cached", "no queries"])
def test_function_bodies_accept_other_nodes(name: str) -> None:
    """Double has no kernel, and the newest release has none for Attention 25."""
    inputs, node, _ = CASES[name]
    model = _model(inputs, node, "double")
    assert loads_and_runs(model, _feeds(model))
    assert _is_run(model)
    assert not _is_run(_model(inputs, node, opset=24), NEWEST)
    newer = _model(inputs, node, opset=25)
    assert not runs(newer, [NEWEST]).results[0].support.missing


@pytest.mark.parametrize(("heads", "is_run"), [(1, True), (4, False)])
def test_oldest_kernel_compares_heads_of_masks_with_those_of_keys(heads: int, is_run: bool) -> None:
    model = _model(f"{HEADS}, T[1, {heads}, 3, 5] m", MASKED)
    assert _is_run(model, OLDEST) is is_run
    assert _is_run(model)


def test_unknown_sizes_are_not_reported() -> None:
    dims = "float[B, 4, L, 8] q, float[B, 2, S, 8] k, float[B, 2, S, 8] v, float[B, 1, L, S] m"
    assert _is_run(_model(dims, MASKED))
