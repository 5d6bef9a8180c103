"""Normalizations in several element types, which onnxruntime merges to LayerNormalization in one type."""

from __future__ import annotations

import onnx
import onnx.parser
import onnxruntime
import pytest
from support.runtimes import verdict_of

NUMBERS = {"float": 1, "int32": 6, "float16": 10, "double": 11}
ONES = {"float": "1.0", "float16": "15360", "double": "1.0"}
TWOS = {"float": "2.0", "float16": "16384", "double": "2.0"}

NORM = """
    <ir_version: 8, opset_import: ["" : {opset}]>
    g ({given}[3, 2] h) => ({result}[3, 2] y{returned}) {{
        x = {first} (h) q = ReduceMean <axes = [-1]> (x) c = Sub (x, q)
        e = Constant <value = {inner} {{{two}}}> () p = Pow (c, e) m = ReduceMean <axes = [-1]> (p)
        o = Constant <value = {inner} {{{one}}}> () a = Add (m, o) r = Sqrt (a) n = Div (c, r)
        k = Cast <to = {to}> (n) w = Constant <value = {result}[2] {{{w}, {w}}}> ()
        s = Mul (k, w) y = Add (s, w)
    }}
"""


@pytest.mark.parametrize("is_returned", [False, True])
@pytest.mark.parametrize("given", ["float", "int32", "float16", "double"])
@pytest.mark.parametrize("inner", ["float", "float16", "double"])
@pytest.mark.parametrize("result", ["float", "float16", "double"])
def test_refuses_norms_that_are_merged_with_several_types(
    given: str, inner: str, result: str, *, is_returned: bool
) -> None:
    text = NORM.format(
        opset=17,
        given=given,
        inner=inner,
        result=result,
        first="Identity" if given == inner else f"Cast <to = {NUMBERS[inner]}>",
        two=TWOS[inner],
        one=ONES[inner],
        w=ONES[result],
        to=NUMBERS[result],
        returned=f", {inner}[3, 2] x" if is_returned else "",
    )
    model = onnx.parser.parse_model(text)
    runs = verdict_of(model, f"onnxruntime-{onnxruntime.__version__}") != "does not run"
    assert runs is _loads(model)


def _loads(model: onnx.ModelProto) -> bool:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), options)
    except Exception:  # the errors of a graph and of a kernel have different classes
        return False
    return True
