"""Bounds of the elements of integer tensors, and elements that differ from 0 in every run."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

import opshift
from opshift.inference.root_scopes import graph_scopes
from opshift.inference.scope import Scope

HEADER = """<ir_version: 8, opset_import: ["" : 17]>
main (float[N, 4] x, int64[M] i, int64[2] i2, int32[2] j2, bool[2] c2) => (int64[K] y)
<int64[2] k = {3, 0}, int64[2] k2 = {2, 5}, int64[2] same = {3, 3}, int64[2] large = {4294967296, 8589934592},
 int32[2] k32 = {2147483647, 5}, uint8[2] k8 = {128, 5}, int64[1] negative = {-1}, int64[1] axis = {0},
 int64 one = {1}, int64 two = {2}, int64 three = {3}, int64 four = {4}, int64 back = {-1},
 int32 one32 = {1}, int32 two32 = {2}> {
"""


def _scope(nodes: str) -> Scope:
    model = onnx.parser.parse_model(f"{HEADER}{nodes}}}")
    ((scope, _),) = graph_scopes(model, opshift.default_registry())
    return scope


NONZERO = {
    "shape": ("y = Shape (x)", (False, True)),
    "constant": ("y = Identity (k)", (True, False)),
    "list": ("s = Shape (x) y = Concat <axis = 0> (k, s, axis)", (True, False, False, True, False)),
    "input": ("y = Identity (i)", None),
    "size that is rounded up": (
        "s = Shape <end = 1> (x) t = Add (s, negative) q = Div (t, two) y = Add (q, one)",
        (True,),
    ),
    "size that is rounded down": ("s = Shape <end = 1> (x) y = Div (s, two)", (False,)),
    "quotient of a negative number": (
        "s = Shape <end = 1> (x) t = Add (s, back) u = Add (t, back) q = Div (u, two) y = Add (q, one)",
        (False,),
    ),
    "quotient by a negative number": ("s = Shape <end = 1> (x) q = Div (s, back) y = Add (q, one)", (False,)),
    "quotient by an unknown size": ("s = Shape (x) t = Add (s, one) y = Div (t, t)", (False, True)),
    "product that may wrap around": ("s = Shape (x) t = Add (s, one) y = Mul (t, t)", (False, True)),
    "product with a small number": ("s = Shape (x) t = Add (s, one) y = Mul (t, two)", (False, True)),
    "product of a size": ("s = Shape <end = 1> (x) t = Max (s, one) y = Mul (t, two)", (True,)),
    "large product of a size": ("s = Shape <end = 1> (x) t = Max (s, one) y = Mul (t, four)", (False,)),
    "product of a divided size": (
        "s = Shape <end = 1> (x) q = Div (s, four) t = Add (q, one) y = Mul (t, three)",
        (True,),
    ),
    "constant product that wraps around": ("a = Gather (large, i2) y = Mul (a, a)", (False, False)),
    "constant product": ("a = Gather (k2, i2) y = Mul (a, a)", (True, True)),
    "sum of two sizes": (
        "s = Shape <end = 1> (x) r = Shape <end = 1> (i) t = Add (s, r) y = Add (t, one)",
        (True,),
    ),
    "sum of three sizes": (
        "s = Shape <end = 1> (x) r = Shape <end = 1> (i) t = Add (s, r) u = Add (t, s) y = Add (u, one)",
        (False,),
    ),
    "sum that may wrap around before a division": (
        "s = Shape <end = 1> (x) t = Add (s, one) q = Div (t, four) y = Add (q, one)",
        (False,),
    ),
    "difference after a sum": (
        "s = Shape <end = 1> (x) p = Add (s, two) w = Sub (p, three) q = Div (w, two) y = Add (q, one)",
        (True,),
    ),
    "int32 sum that wraps around": (
        "a = Gather (k32, i2) b = Add (a, a) c = Add (b, two32) y = Cast <to = 7> (c)",
        (False, False),
    ),
    "int32 maximum": ("a = Max (j2, one32) y = Cast <to = 7> (a)", (True, True)),
    "size as int32": (
        "s = Shape <end = 1> (x) a = Cast <to = 6> (s) b = Cast <to = 7> (a) y = Add (b, one)",
        (False,),
    ),
    "uint8 sum": ("a = Gather (k8, i2) b = Add (a, a) y = Cast <to = 7> (b)", (False, False)),
    "cast of uint8": ("a = Gather (k8, i2) b = Cast <to = 7> (a) y = Add (b, one)", (True, True)),
    "minimum of an input": ("m = Min (i2, negative) y = Add (m, back)", (True, True)),
    "product of a number that may be negative": (
        "s = Shape (x) t = Add (s, negative) y = Mul (t, t)",
        (False, True),
    ),
    "largest": ("s = Shape (x) y = Max (s, axis, one)", (True, True)),
    "smallest": ("s = Shape (x) t = Max (s, one) y = Min (t, two)", (True, True)),
    "smallest of a sum": ("s = Shape (x) t = Add (s, one) y = Min (t, two)", (False, True)),
    "choice": ("s = Shape (x) t = Add (s, one) y = Where (c2, t, two)", (True, True)),
    "difference": ("s = Shape (x) y = Sub (s, one)", (False, True)),
    "difference of a negative number": ("s = Shape (x) y = Sub (s, negative)", (True, True)),
}


@pytest.mark.parametrize("name", NONZERO)
def test_knows_nonzero_elements(name: str) -> None:
    nodes, expected = NONZERO[name]
    assert _scope(nodes).nonzero_elements("y") == expected


def test_follows_long_chains() -> None:
    chain = " ".join(f"v{n + 1} = Add (v{n}, one)" for n in range(5000))
    assert _scope(f"v0 = Gather (k2, i2) {chain} y = Identity (v5000)").nonzero_elements("y") == (True, True)


def test_bounds_the_numbers_of_repeated_products() -> None:
    chain = " ".join(f"v{n + 1} = Mul (v{n}, v{n})" for n in range(100))
    assert _scope(f"v0 = Gather (k2, i2) {chain}").element_bounds("v100") is None
    # Modulo 2 ** 64, the number 3 to the power of 2 ** 62 is 1.
    assert _scope(f"v0 = Gather (same, i2) {chain}").element_bounds("v100") == (1, 1)


EXTREMES = (-(2**63), -(2**62), -(2**32), -3, -1, 0, 1, 2, 3, 2**31, 2**32, 2**62, 2**63 - 1)


@pytest.mark.parametrize("seed", range(40))
def test_claims_hold_for_numbers_that_wrap_around(seed: int) -> None:
    random = np.random.default_rng(seed)
    names, nodes = [], []
    for index in range(4):
        numbers = ", ".join(str(random.choice(np.array(EXTREMES, object))) for _ in range(2))
        nodes.append(f"k{index} = Constant <value_ints = [{numbers}]> () v{index} = Gather (k{index}, i)")
        names.append(f"v{index}")
    for index in range(4, 12):
        op_type = random.choice(["Add", "Sub", "Mul", "Max", "Min", "Where"])
        first, second = random.choice(names, 2)
        inputs = f"c, {first}, {second}" if op_type == "Where" else f"{first}, {second}"
        nodes.append(f"v{index} = {op_type} ({inputs})")
        names.append(f"v{index}")
    outputs = ", ".join(f"int64[64] {name}" for name in names)
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        main (int64[64] i, bool[64] c) => ({outputs}) {{ {" ".join(nodes)} }}"""
    )
    ((scope, _),) = graph_scopes(model, opshift.default_registry())
    feeds = {"i": random.integers(0, 2, 64), "c": random.integers(0, 2, 64).astype(bool)}
    for name, values in zip(names, ReferenceEvaluator(model).run(None, feeds), strict=True):
        claims = scope.nonzero_elements(name)
        assert claims is not None
        assert not any(claim and not value for claim, value in zip(claims, values, strict=True)), name
