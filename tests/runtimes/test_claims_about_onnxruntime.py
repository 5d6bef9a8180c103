"""Claims about strings, attributes, function bodies and calls agree with the installed onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator
from support.execution import loads_and_runs

from opshift import fit
from opshift.analysis.runs import runs
from opshift.registry.runtimes.files import get_runtime
from opshift.runtimes.check_support import ModelSupport, check_support
from random_graphs.execution import run_in_onnxruntime

RUNTIME = f"onnxruntime-{onnxruntime.__version__}"
ROWS = np.ones((2, 4), np.float32)
FUNCTION_OF_TWO = '<domain: "l", opset_import: ["" : 21]> f (a) => (b, c) { b = Relu (a) c = Neg (a) }'
FUNCTION = '<domain: "l", opset_import: ["" : 21]> f (a) => (b) { b = Relu (a) }'


def _support(model: onnx.ModelProto) -> ModelSupport:
    return runs(model, [RUNTIME]).results[0].support


def _model(text: str, opset: int = 21, imports: str = "") -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}{imports}]> {text}')


@pytest.mark.parametrize("opset", [1, 11, 13])
@pytest.mark.parametrize(
    ("shape", "axis", "is_wrong"),
    [
        ((3,), 0, False),
        ((3, 4), 0, True),
        ((3, 4), 1, False),
        ((3, 4), -1, False),
        ((3, 1, 1), 0, False),
        ((3, 1, 2), 0, True),
        ((3, 2, 1), 1, False),
        ((3, 2, 2), -3, True),
        ((3, 0), 0, False),
    ],
)
def test_warns_about_gathered_blocks_of_strings(
    opset: int, shape: tuple[int, ...], axis: int, *, is_wrong: bool
) -> None:
    data = np.arange(np.prod(shape)).astype(str).astype(object).reshape(shape)
    expected = np.take(data, [1, 0], axis)
    dims = [list(each) for each in (shape, expected.shape)]
    model = _model(
        f"g (string{dims[0]} x) => (string{dims[1]} y) <int64[2] i = {{1, 0}}> "
        f"{{ y = Gather <axis = {axis}> (x, i) }}",
        opset,
    )
    assert (not np.array_equal(run_in_onnxruntime(model, {"x": data})[0], expected)) == is_wrong
    assert bool(_support(model).wrong) == is_wrong


def test_unknown_sizes_of_gathered_blocks_of_strings_are_wrong() -> None:
    model = _model("g (string[N, M] x, int64[2] i) => (string[2, M] y) { y = Gather (x, i) }")
    assert _support(model).wrong == ("ai.onnx.Gather:13",)
    model = _model("g (string[N] x, int64[2] i) => (string[2] y) { y = Gather (x, i) }")
    assert not _support(model).wrong


@pytest.mark.parametrize("opset", [18, 19])
@pytest.mark.parametrize(("mode", "is_run"), [("nearest", False), ("linear", True), ("cubic", True)])
def test_resize_with_antialias_needs_an_interpolation(opset: int, mode: str, *, is_run: bool) -> None:
    node = f'y = Resize <mode = "{mode}", antialias = 1> (x, , s)'
    text = "g (float[1, 2, 4, 4] x) => (float[1, 2, 2, 2] y) <float[4] s = {1, 1, 0.5, 0.5}>"
    model = _model(f"{text} {{ {node} }}", opset)
    assert loads_and_runs(model, {"x": np.ones((1, 2, 4, 4), np.float32)}) == is_run
    assert (not _support(model).missing) == is_run


@pytest.mark.parametrize(
    ("sizes", "start", "is_wrong", "is_certain"),
    [
        ((3, 4), (0.2, 0.2), True, True),
        ((3, 7), (0.2, 0.2), True, False),
        ((5, 4), (0.2, 0.2), True, False),
        ((3, 4), (0, 0), False, False),
        ((5, 7), (0.2, 0.2), False, False),
    ],
)
@pytest.mark.parametrize("opset", [11, 13, 18, 19])
def test_warns_about_axes_that_resize_does_not_crop(
    opset: int, sizes: tuple[int, int], start: tuple[float, float], *, is_wrong: bool, is_certain: bool
) -> None:
    region = ", ".join(map(str, (0, 0, *start, 1, 1, *(1 - each for each in start))))
    height, width = sizes
    model = _model(
        f"g (float[1, 1, 3, 4] x) => (float[1, 1, {height}, {width}] y) "
        f"<float[8] r = {{{region}}}, int64[4] s = {{1, 1, {height}, {width}}}, float[0] e = {{}}> "
        '{ y = Resize <mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize"> '
        "(x, r, e, s) }",
        opset,
    )
    feeds = {"x": np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)}
    expected = ReferenceEvaluator(model).run(None, feeds)[0]
    assert np.allclose(run_in_onnxruntime(model, feeds)[0], expected, atol=1e-5) != is_wrong
    support = _support(model)
    assert bool(support.warnings) == is_wrong
    assert bool(support.wrong) == is_certain


@pytest.mark.parametrize(("batch", "rank", "is_run"), [(1, 2, False), (2, 2, True), (1, 3, True)])
def test_predicts_affine_grids_in_float16(batch: int, rank: int, *, is_run: bool) -> None:
    sizes = ", ".join(map(str, (batch, 1, *[2] * rank)))
    shape = (batch, rank, rank + 1)
    output = [batch, *[2] * rank, rank]
    model = _model(
        f"g (float16{list(shape)} x) => (float16{output} y) <int64[{rank + 2}] s = {{{sizes}}}> "
        "{ y = AffineGrid (x, s) }",
        20,
    )
    feeds = {"x": np.ones(shape, np.float16)}
    assert loads_and_runs(model, feeds) == is_run
    assert (not _support(model).missing) == is_run
    assert loads_and_runs(fit(model, RUNTIME).model, feeds)


@pytest.mark.parametrize(("opset", "is_run"), [(9, True), (10, False), (11, False)])
@pytest.mark.parametrize(
    "node",
    [
        "Affine <alpha = 2., beta = 1.> (x)",
        "Crop <border = [0, 0, 0, 0]> (x)",
        "ImageScaler <scale = 2., bias = [1.]> (x)",
        "ParametricSoftplus <alpha = 2., beta = 1.> (x)",
        "Scale <scale = 2.> (x)",
        "ScaledTanh <alpha = 2., beta = 1.> (x)",
    ],
)
def test_refuses_operators_after_their_removal(node: str, opset: int, *, is_run: bool) -> None:
    model = _model(f"g (float[1, 1, 2, 2] x) => (float[1, 1, 2, 2] y) {{ y = {node} }}", opset)
    feeds = {"x": np.ones((1, 1, 2, 2), np.float32)}
    assert loads_and_runs(model, feeds) == is_run
    (result,) = runs(model, [RUNTIME]).results
    assert (not result.support.missing) == is_run
    assert (result.conversion and result.conversion.opsets) == (None if is_run else {"ai.onnx": 9})
    assert loads_and_runs(fit(model, RUNTIME).model, feeds)


@pytest.mark.parametrize(
    ("node", "opset", "is_run"),
    [
        ("Upsample (x, scales)", 9, True),
        ("Upsample (x, scales)", 11, False),
        ("Scatter (x, i, x)", 10, True),
        ("Scatter (x, i, x)", 13, False),
        ("GroupNormalization <num_groups = 1> (x, one, one)", 18, True),
    ],
)
def test_every_provider_refuses_deprecated_operators(node: str, opset: int, *, is_run: bool) -> None:
    constants = "float[3] scales = {1.0, 1.0, 1.0}, float[1] one = {1.0}, int64[1, 1, 2] i = {0, 0}"
    model = _model(f"g (float[1, 1, 2] x) => (float[A, B, C] y) <{constants}> {{ y = {node} }}", opset)
    assert loads_and_runs(model, {"x": np.ones((1, 1, 2), np.float32)}) == is_run
    for name in ("onnxruntime", "onnxruntime-cuda", "onnxruntime-dml", "onnxruntime-coreml", "winml-qnn-npu"):
        assert (not check_support(model, get_runtime(name))) == is_run
    assert not check_support(fit(model, "onnxruntime-dml").model, get_runtime("onnxruntime-dml"))


@pytest.mark.parametrize(
    ("body", "is_run"),
    [
        ("o = Relu (e)", True),
        ("o = Celu (e)", True),
        ("o = Mish (e)", False),
        ("q = Neg (e) o = HardSwish (q)", False),
        ("k = Constant <value_ints = [2, 4]> () o = CenterCropPad (e, k)", False),
        ("q = Mish (e) o = Add (q, x)", False),
        (
            "q = SequenceConstruct (e) r = SequenceMap (q) <body = c (float[2, 4] v) => (float[2, 4] w) "
            "{ w = Relu (v) }> o = ConcatFromSequence <axis = 0> (r)",
            False,
        ),
    ],
)
def test_predicts_function_bodies_in_sequence_map(body: str, *, is_run: bool) -> None:
    model = _model(
        "g (float[2, 4] x) => (float[4, 4] y) { s = SequenceConstruct (x, x) t = SequenceMap (s) "
        f"<body = b (float[2, 4] e) => (float[2, 4] o) {{ {body} }}> "
        "y = ConcatFromSequence <axis = 0> (t) }",
        18,
    )
    assert loads_and_runs(model, {"x": ROWS}) == is_run
    assert (not _support(model).missing) == is_run


@pytest.mark.parametrize("operator", ["Mish", "HardSwish"])
def test_fit_replaces_sequence_map_with_function_bodies(operator: str) -> None:
    model = _model(
        "g (float[2, 4] x) => (float[4, 4] y) { s = SequenceConstruct (x, x) t = SequenceMap (s) "
        f"<body = b (float[2, 4] e) => (float[2, 4] o) {{ o = {operator} (e) }}> "
        "y = ConcatFromSequence <axis = 0> (t) }",
        18,
    )
    assert loads_and_runs(fit(model, RUNTIME).model, {"x": ROWS})


def test_function_bodies_in_branches_in_sequence_map_are_uncertain() -> None:
    model = _model(
        "g (float[2, 4] x) => (float[4, 4] y) { s = SequenceConstruct (x, x) t = SequenceMap (s) "
        "<body = b (float[2, 4] e) => (float[2, 4] o) { c = Constant <value = bool {1}> () o = If (c) "
        "<then_branch = d () => (float[2, 4] p) { p = Mish (e) }, "
        "else_branch = f () => (float[2, 4] q) { q = Relu (e) }> }> y = ConcatFromSequence <axis = 0> (t) }",
        18,
    )
    assert not _support(model).missing
    (reason,) = _support(model).uncertain
    assert "the function body of Mish" in reason


@pytest.mark.parametrize(
    ("nodes", "functions", "imports", "reason"),
    [
        ("y = l.f (x)", FUNCTION, ', "l" : 1', ""),
        ("y, z = l.f (x)", FUNCTION_OF_TWO, ', "l" : 1', ""),
        ("y = l.f (x)", FUNCTION_OF_TWO, ', "l" : 1', "the function has 2 outputs, not 1"),
        ("y = l.f (x)", FUNCTION, "", "has no opset import of l"),
        (
            "y = m.g (x)",
            '<domain: "m", opset_import: ["" : 21, "l" : 1]> g (a) => (b) { b = l.f (a) }' + FUNCTION,
            ', "m" : 1',
            "has no opset import of l",
        ),
        (
            "y = l.f (x)",
            '<domain: "l", opset_import: ["" : 21]> f (a) => (b) { b = com.microsoft.Gelu (a) }',
            ', "l" : 1, "com.microsoft" : 1',
            "has no opset import of com.microsoft",
        ),
        (
            "y = MyF (x)",
            '<domain: "", opset_import: ["" : 21]> MyF (a) => (b) { b = Relu (a) }',
            "",
            "does not call local functions of ai.onnx",
        ),
        (
            "y = com.microsoft.MyF (x)",
            '<domain: "com.microsoft", opset_import: ["" : 21]> MyF (a) => (b) { b = Relu (a) }',
            ', "com.microsoft" : 1',
            "",
        ),
    ],
)
def test_predicts_calls_of_functions(nodes: str, functions: str, imports: str, reason: str) -> None:
    model = _model(f"g (float[2, 4] x) => (float[2, 4] y) {{ {nodes} }} {functions}", imports=imports)
    # Some releases end the process at a call with too few outputs.
    if RUNTIME == "onnxruntime-1.31.1" or "outputs" not in reason:
        assert loads_and_runs(model, {"x": ROWS}) == (not reason)
    missing = _support(model).missing
    assert bool(missing) == bool(reason)
    assert all(reason in each.reason for each in missing)


@pytest.mark.parametrize(
    ("nodes", "functions", "imports"),
    [
        ("y = l.f (x)", FUNCTION_OF_TWO, ', "l" : 1'),
        ("y = l.f (x)", FUNCTION, ""),
        ("y = MyF (x)", '<domain: "", opset_import: ["" : 21]> MyF (a) => (b) { b = Relu (a) }', ""),
    ],
)
def test_fit_inlines_calls_that_the_runtime_refuses(nodes: str, functions: str, imports: str) -> None:
    model = _model(f"g (float[2, 4] x) => (float[2, 4] y) {{ {nodes} }} {functions}", imports=imports)
    assert loads_and_runs(fit(model, RUNTIME).model, {"x": ROWS})


def test_names_the_missing_import_of_an_operator() -> None:
    model = _model("g (float[2, 4] x) => (float[2, 4] y) { y = com.microsoft.Gelu (x) }")
    (missing,) = _support(model).missing
    assert missing.operator == "com.microsoft.Gelu"
    assert "no opset import of com.microsoft" in missing.reason
    assert missing.remedy == "add an opset import of com.microsoft"
