"""Sizes that are equal in one run only: `simplify` and conversions do not treat them as one size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import parser
from support.execution import run

import opshift

LENGTH = "n = Shape (y)"
EQUAL = "su = Shape (u) sv = Shape (v) n = Equal (su, sv)"
CUT = "zero = Constant <value_ints = [0]> () five = Constant <value_ints = [5]> ()"

DEFAULT = f"<float[3] x = {{1, 2, 3}}> {{ y = Identity (x) {LENGTH} }}"
BRANCHES = f"""{{
    yes = Constant <value = bool {{1}}> ()
    u = If (yes) <
        then_branch = a1 () => (float[L] t) {{ {CUT} t = Slice (a, zero, five) }},
        else_branch = a2 () => (float[L] e) {{ e = Identity (a) }}
    >
    v = If (yes) <
        then_branch = b1 () => (float[L] t) {{ {CUT} t = Slice (b, zero, five) }},
        else_branch = b2 () => (float[L] e) {{ e = Identity (b) }}
    >
    {EQUAL}
}}"""
CALLS = f"{{ u = local.cut (a) v = local.cut (b) {EQUAL} }}"
CUT_FUNCTION = f"""
<domain: "local", opset_import: ["": 17]> cut (x) => (y) {{ {CUT} y = Slice (x, zero, five) }}
"""
NAMED_FUNCTION = """
<domain: "local", opset_import: ["": 17]> cut (x) => (y) <int64[1, K] t> { t = NonZero (x) y = Identity (t) }
"""
BRANCHING_FUNCTION = """
<domain: "local", opset_import: ["": 17]> cut (x) => (y) {
    last = Constant <value_ints = [-1]> () end = Gather (x, last) flag = Cast <to = 9> (end)
    y = If (flag) <
        then_branch = t () => (int64[1, K] p) { p = NonZero (x) },
        else_branch = e () => (int64[1, K] q) { q = NonZero (x) }
    >
}
"""
CALLING_FUNCTION = f"""
<domain: "local", opset_import: ["": 17, "local": 1]> cut (x) => (y) {{ y = local.find (x) }}
{NAMED_FUNCTION.replace("cut", "find")}
"""
EINSUM = f"""{{
    found = NonZero (b) axis = Constant <value_ints = [0]> ()
    row = Squeeze (found, axis) w = Cast <to = 1> (row)
    u = Einsum <equation = "i,i->i"> (a, w) v = Identity (a)
    {EQUAL}
}}"""
NAME_OF_THE_GRAPH = """<int64[1, K] v> {
    u = local.cut (a) v = NonZero (b) su = Shape (u) sv = Shape (v) n = Equal (su, sv)
}"""
ONE_AND_FOUR = {"a": np.ones(1, np.float32), "b": np.ones(4, np.float32)}
TWO_SIZES = {"a": np.ones(3, np.float32), "b": np.ones(4, np.float32)}
ONE_SIZE = {"a": np.array([0, 1, 0, 1], np.float32), "b": np.array([1, 1, 0, 1], np.float32)}

CASES: dict[str, tuple[str, str, str, Mapping[str, Any]]] = {
    "default of an input": ("float[N] x", DEFAULT, "", {"x": np.zeros(5, np.float32)}),
    "values of two branches": ("float[N] a, float[M] b", BRANCHES, "", TWO_SIZES),
    "values of two calls": ("float[N] a, float[M] b", CALLS, CUT_FUNCTION, TWO_SIZES),
    "dimension variable of two calls": ("float[N] a, float[M] b", CALLS, NAMED_FUNCTION, TWO_SIZES),
    "dimension variable of two equal calls": ("float[4] a, float[4] b", CALLS, NAMED_FUNCTION, ONE_SIZE),
    "dimension variable of two branches": ("float[4] a, float[4] b", CALLS, BRANCHING_FUNCTION, ONE_SIZE),
    "dimension variable of two nested calls": ("float[4] a, float[4] b", CALLS, CALLING_FUNCTION, ONE_SIZE),
    "name in a graph and a function": ("float[4] a, float[4] b", NAME_OF_THE_GRAPH, NAMED_FUNCTION, ONE_SIZE),
    "label of an equation": ("float[N] a, float[M] b", EINSUM, "", ONE_AND_FOUR),
}


@pytest.mark.parametrize("without", ["", "local"], ids=["called", "inlined"])
@pytest.mark.parametrize(("inputs", "graph", "functions", "feeds"), CASES.values(), ids=CASES)
def test_simplify_keeps_sizes(
    inputs: str, graph: str, functions: str, feeds: Mapping[str, Any], without: str
) -> None:
    header = '<ir_version: 10, opset_import: ["": 17, "local": 1]>'
    model = parser.parse_model(f"{header} g ({inputs}) => (n) {graph} {functions}")
    (expected,) = run(model, feeds)
    converted = opshift.convert_version(model, without=without) if without else model
    (found,) = run(opshift.simplify(converted), feeds)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("function", [CUT_FUNCTION, NAMED_FUNCTION], ids=["values", "dimension variable"])
def test_sums_of_two_calls_need_known_sizes_to_broadcast(function: str) -> None:
    model = parser.parse_model(
        '<ir_version: 10, opset_import: ["": 17, "local": 1]> g (float[N] a, float[M] b) => (y) '
        f"{{ u = local.cut (a) v = local.cut (b) y = Add (u, v) }} {function}"
    )
    with pytest.raises(opshift.ConversionRefused, match="broadcast"):
        opshift.convert_version(model, 6)


def test_slice_with_a_negative_step_and_the_largest_end_has_no_known_size() -> None:
    """For onnxruntime, this end is the start of the axis; in the specification, the slice is empty."""
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 17]> g (float[5] x) => (n) {
        start = Constant <value_ints = [-1]> ()
        end = Constant <value_ints = [9223372036854775807]> ()
        axis = Constant <value_ints = [0]> ()
        s = Slice (x, start, end, axis, start)
        n = Shape (s)
    }
    """)
    feeds = {"x": np.ones(5, np.float32)}
    np.testing.assert_array_equal(run(opshift.simplify(model), feeds)[0], run(model, feeds)[0])


def test_iteration_numbers_have_the_declared_rank() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 17]> g () => (int64[2, 1] n) {
        trips = Constant <value_ints = [2]> ()
        yes = Constant <value = bool[1] {1}> ()
        n = Loop (trips, yes) <body = b (int64[1] i, bool[1] go) => (bool[1] again, int64[1] size) {
            again = Identity (go) shape = Shape (i) size = Shape (shape)
        }>
    }
    """)
    assert opshift.check(model) == ()
    np.testing.assert_array_equal(run(opshift.simplify(model), {})[0], run(model, {})[0])
