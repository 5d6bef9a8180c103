"""Normalizations in several element types, which onnxruntime merges to LayerNormalization in one type."""

from __future__ import annotations

from itertools import permutations

import onnx
import onnx.parser
import onnxruntime
import pytest
from support.execution import loads
from support.runtimes import verdict_of

NUMBERS = {"float": 1, "int32": 6, "float16": 10, "double": 11}
ONES = {"float": "1.0", "float16": "15360", "double": "1.0"}
TWOS = {"float": "2.0", "float16": "16384", "double": "2.0"}

NORM = """
    <ir_version: 8, opset_import: ["" : {opset}]>
    g ({given}[3, 2] h) => ({result}[3, 2] y{returned}) {{
        x = {first} (h) q = ReduceMean <axes = [-1]> (x) c = Sub (x, q)
        f = {second} (c) {other} e = Constant <value = {middle} {{{two}}}> () p = Pow (f, e)
        m = ReduceMean <axes = [-1]> (p) o = Constant <value = {middle} {{{one}}}> ()
        a = Add (m, o) r = Sqrt (a) n = Div ({third}, r)
        k = Cast <to = {to}> (n) w = Constant <value = {result}[2] {{{w}, {w}}}> ()
        s = Mul (k, w) y = Add (s, w) {reader}
    }}
"""


@pytest.mark.parametrize("opset", [11, 14, 17])
@pytest.mark.parametrize("use", ["none", "returned", "read"])
@pytest.mark.parametrize("given", ["float", "int32", "float16", "double"])
@pytest.mark.parametrize("inner", ["float", "float16", "double"])
@pytest.mark.parametrize("result", ["float", "float16", "double"])
def test_refuses_norms_that_are_merged_with_several_types(
    opset: int, use: str, given: str, inner: str, result: str
) -> None:
    model = _norm(opset, use, given, inner, result)
    verdict = verdict_of(model, f"onnxruntime-{onnxruntime.__version__}")
    depends_on_other_kernels = opset < 17 and use != "none" and (inner, result) == ("float16", "double")
    is_uncertain = depends_on_other_kernels and verdict == "may run"
    assert is_uncertain or (verdict != "does not run") is loads(model)


@pytest.mark.parametrize("opset", [14, 17])
@pytest.mark.parametrize(("use", "third"), [("none", "f"), ("read", "f"), ("none", "g"), ("read", "g")])
@pytest.mark.parametrize("given", ["float", "float16", "double"])
@pytest.mark.parametrize(("inner", "middle"), [*permutations(["float", "float16", "double"], 2)])
@pytest.mark.parametrize("result", ["float", "float16", "double"])
def test_refuses_merged_norms_with_casts_of_the_difference(
    opset: int, use: str, given: str, inner: str, middle: str, result: str, third: str
) -> None:
    model = _norm(opset, use, given, inner, result, middle, third)
    verdict = verdict_of(model, f"onnxruntime-{onnxruntime.__version__}")
    assert (verdict != "does not run") is loads(model)


@pytest.mark.parametrize(
    ("release", "opset", "use", "types", "is_refused"),
    [
        ("1.16.3", 17, "read", "float double float", True),
        ("1.16.3", 17, "none", "double float16 float", False),
        ("1.16.3", 17, "none", "float16 double float", True),
        ("1.18.1", 17, "returned", "int32 float double", True),
        ("1.18.1", 11, "none", "int32 float16 double", False),
        ("1.18.1", 11, "none", "float16 double float", False),
        ("1.20.1", 11, "read", "float16 double float", True),
        ("1.20.1", 11, "none", "float float16 double", False),
        ("1.20.1", 17, "none", "float float16 double", True),
        ("1.23.2", 14, "returned", "double float double", True),
        ("1.23.2", 14, "none", "float float16 double", True),
        ("1.16.3", 17, "none", "float float double double", True),
        ("1.18.1", 17, "read", "float16 double float float", True),
        ("1.18.1", 17, "read", "float float16 double float", False),
        ("1.20.1", 11, "none", "float float16 float double", False),
        ("1.20.1", 17, "none", "float16 float16 float float", True),
        ("1.23.2", 11, "none", "float16 float16 float float", False),
    ],
)
def test_knows_which_releases_refuse_merged_norms(
    release: str, opset: int, use: str, types: str, *, is_refused: bool
) -> None:
    verdict = verdict_of(_norm(opset, use, *types.split()), f"onnxruntime-{release}")
    assert (verdict == "does not run") is is_refused


def _norm(
    opset: int, use: str, given: str, inner: str, result: str, middle: str = "", third: str = "f"
) -> onnx.ModelProto:
    middle = middle or inner
    cast = f"Cast <to = {NUMBERS[middle]}>"
    text = NORM.format(
        opset=opset,
        given=given,
        inner=inner,
        middle=middle,
        result=result,
        first="Identity" if given == inner else f"Cast <to = {NUMBERS[inner]}>",
        second="Identity" if inner == middle else cast,
        third=third,
        two=TWOS[middle],
        one=ONES[middle],
        w=ONES[result],
        to=NUMBERS[result],
        returned={"none": "", "returned": f", {inner}[3, 2] x", "read": f", {inner}[3, 2] z"}[use],
        reader="z = Abs (x)" if use == "read" else "",
        other=f"g = {cast} (c)" if third == "g" else "",
    )
    return onnx.parser.parse_model(text)
