"""Equal symbolic sizes: operators without broadcasting below opset 7 need no known sizes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser
from support.execution import Array, assert_equal, run, run_reference

from opshift.converter.convert import convert_version
from opshift.converter.refusals import ConversionRefused

SIZES = {"N": 2, "C": 3, "H": 4, "W": 5, "M": 3}

POSSIBLE = {
    "equal shapes": ("N,3", "N,3", "Add"),
    "equal symbols only": ("N,C", "N,C", "Sub"),
    "sizes per channel": ("N,C,H,W", "N,C,1,1", "Mul"),
    "leading dimensions in the second input": ("N,C,1,1", "N,C,H,W", "Mul"),
    "trailing dimension": ("N,C", "C", "Div"),
    "ones on both sides": ("N,C,H,W", "1,C,1,1", "Sub"),
    "one middle dimension": ("N,C,H,W", "H,1", "Add"),
    "both tiled along known sizes": ("N,3,1", "N,1,4", "Add"),
    "comparison": ("N,C,H,W", "N,C,1,1", "Greater"),
    "swapped comparison": ("N,C,1,1", "N,C,H,W", "Less"),
    "Max of equal shapes": ("N,3", "N,3", "Max"),
    "Min tiled along known sizes": ("N,3,1", "N,1,4", "Min"),
    "Max with sizes per channel": ("N,C,H,W", "N,C,1,1", "Max"),
    "Sum of equal shapes": ("N,C", "N,C", "Sum"),
    "Mean of equal shapes": ("N,C", "N,C", "Mean"),
}

IMPOSSIBLE = {
    "different symbols": ("N,3", "C,3", "Add"),
    "symbol and number": ("N,3", "2,3", "Add"),
    "unnamed sizes": ("?,3", "?,3", "Add"),
    "repetition to a symbol": ("N,1", "1,C", "Add"),
    "symbol of another axis": ("N,M", "M,1", "Add"),
}

FORMS = {
    "fed": "{p} = Identity (x) {q} = Identity (w)",
    "computed": "a0 = Relu (x) {p} = Abs (a0) b0 = Neg (w) {q} = Exp (b0)",
}


def model_of(first: str, second: str, op_type: str, form: str) -> onnx.ModelProto:
    body = FORMS[form].format(p="p", q="q")
    result = "bool" if op_type in ("Less", "Greater") else "float"
    return without_output_shape(
        f"""<ir_version: 3, opset_import: ["" : 8]>
        g (float[{first}] x, float[{second}] w) => ({result} y) {{
            {body}
            r = {op_type} (p, q)
            y = Identity (r)
        }}"""
    )


def without_output_shape(text: str) -> onnx.ModelProto:
    model = parser.parse_model(text)
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    return model


def array_of(dims: str, seed: int) -> Array:
    shape = [int(each) if each.isdigit() else SIZES[each] for each in dims.split(",")]
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def outputs_of(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    """Run an opset 6 model in onnxruntime if possible, else after an upgrade: each has its own rules."""
    try:
        return run(model, feeds)
    except Exception as error:
        if "NOT_IMPLEMENTED" not in str(error):
            raise
    return run(convert_version(model, 8), feeds)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("first", "second", "op_type"), POSSIBLE.values(), ids=POSSIBLE)
def test_equal_symbols_are_enough(first: str, second: str, op_type: str, form: str) -> None:
    model = model_of(first, second, op_type, form)
    feeds = {"x": array_of(first, 1), "w": array_of(second, 2)}
    # The second conversion uses the cached rewrite.
    for _ in range(2):
        result = convert_version(model, 6)
        onnx.shape_inference.infer_shapes(result, check_type=True, strict_mode=True)
        assert_equal(outputs_of(result, feeds), run(model, feeds))


@pytest.mark.parametrize("sizes", [{"N": 1}, {"C": 1}, {"N": 0}, {"H": 1, "W": 1}], ids=str)
@pytest.mark.parametrize(("first", "second", "op_type"), POSSIBLE.values(), ids=POSSIBLE)
def test_holds_for_sizes_of_one_and_zero(
    first: str, second: str, op_type: str, sizes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in sizes.items():
        monkeypatch.setitem(SIZES, name, size)
    model = model_of(first, second, op_type, "fed")
    feeds = {"x": array_of(first, 1), "w": array_of(second, 2)}
    assert_equal(outputs_of(convert_version(model, 6), feeds), run_reference(model, feeds))


@pytest.mark.parametrize(("first", "second", "op_type"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_refuses_sizes_that_may_differ(first: str, second: str, op_type: str) -> None:
    with pytest.raises(ConversionRefused, match="must be fully known to broadcast"):
        convert_version(model_of(first, second, op_type, "fed"), 6)


def test_cached_rewrites_distinguish_equal_and_different_symbols() -> None:
    """The nodes differ only in the relation of their symbols."""
    for first, second in (("A,3", "A,3"), ("B,3", "B,3"), ("A,3", "B,3"), ("B,3", "A,3"), ("C,3", "C,3")):
        model = without_output_shape(
            f"""<ir_version: 3, opset_import: ["" : 8]>
            g (float[{first}] x, float[{second}] w) => (float y) {{ r = Mul (x, w) y = Identity (r) }}"""
        )
        if first == second:
            assert convert_version(model, 6).graph.node[0].op_type == "Mul"
        else:
            with pytest.raises(ConversionRefused):
                convert_version(model, 6)


@pytest.mark.parametrize("yes", [False, True])
def test_symbols_in_branches_and_functions(yes: bool) -> None:
    model = without_output_shape(
        """<ir_version: 10, opset_import: ["" : 8, "local" : 1]>
        g (float[N, C, H, W] x, float[N, C, 1, 1] w, bool yes) => (float y) {
            y = If (yes) <
                then_branch = t () => (float p) { p = Mul (x, w) },
                else_branch = e () => (float q) { q = local.Scale (x, w) }
            >
        }
        <domain: "local", opset_import: ["" : 8]>
        Scale (a, b) => (c) { d = Neg (b)  c = Add (a, d) }"""
    )
    feeds = {"x": array_of("N,C,H,W", 1), "w": array_of("N,C,1,1", 2), "yes": np.array(yes)}
    result = convert_version(model, 6, ir_version="keep")
    assert_equal(outputs_of(result, feeds), run(model, feeds))
