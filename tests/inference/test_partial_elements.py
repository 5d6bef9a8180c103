"""Values with elements that are partly known: they are not negative, or all equal."""

from __future__ import annotations

import onnx.parser
import pytest

import opshift
from opshift.inference.root_scopes import graph_scopes

HEADER = """<ir_version: 8, opset_import: ["" : 17]>
main (float[N, 4] x, int64[M] i, int32[M] j, uint64[M] u, bool[M] c) => (int64[K] y)
<int64[2] k = {3, 0}, int64[1] negative = {-1}, int64 zero = {0}, int64 one = {1}, int64 two = {2},
 int64 back = {-1}, int64[1] axis = {0}> {
"""
CASES = {
    "shape": ("y = Shape (x)", True),
    "positions": ("y = NonZero (x)", True),
    "place of a maximum": ("y = ArgMax (x)", True),
    "places of largest": ("v, y = TopK (x, one)", True),
    "largest": ("y, p = TopK (i, one)", False),
    "input": ("y = Identity (i)", False),
    "constant": ("y = Identity (k)", True),
    "negative constant": ("y = Identity (negative)", False),
    "range of a size": ("s = Size (x) r = Range (zero, s, two) y = Unsqueeze (r, axis)", True),
    "range from an input": ("s = Gather (i, zero) y = Range (s, two, one)", False),
    "range downward": ("s = Size (x) y = Range (s, zero, back)", False),
    "quotient": ("s = Shape (x) y = Div (s, k)", True),
    "quotient of an input": ("s = Shape (x) y = Div (s, i)", False),
    "choice": ("s = Shape (x) y = Where (c, s, k)", True),
    "list": ("s = Shape (x) y = Concat <axis = 0> (s, k)", True),
    "list with an input": ("s = Shape (x) y = Concat <axis = 0> (s, i)", False),
    "range with an extra input": ("s = Size (x) y = Range (s, two, one, zero)", False),
    "difference": ("s = Size (x) d = Sub (s, one) y = Unsqueeze (d, axis)", False),
    "wider": ("s = ArgMax (x) t = Cast <to = 6> (s) y = Cast <to = 7> (t)", False),
    "wrapped": ("y = Cast <to = 7> (u)", False),
}


@pytest.mark.parametrize("name", CASES)
def test_knows_values_without_negative_elements(name: str) -> None:
    nodes, expected = CASES[name]
    model = onnx.parser.parse_model(f"{HEADER}{nodes}}}")
    ((scope, _),) = graph_scopes(model, opshift.default_registry())
    assert scope.is_nonnegative("y") is expected


def test_ends_for_long_chains() -> None:
    chain = " ".join(f"v{n + 1} = Identity (v{n})" for n in range(5000))
    model = onnx.parser.parse_model(f"{HEADER}v0 = Abs (i) {chain} y = Identity (v5000)}}")
    ((scope, _),) = graph_scopes(model, opshift.default_registry())
    assert not scope.is_nonnegative("y")


NUMBERS = {
    "filled": ("s = Shape (x) y = ConstantOfShape <value = int64[1] {7}> (s)", 7),
    "default": ("s = Shape (x) y = ConstantOfShape (s)", 0.0),
    "expanded": ("s = Shape (x) y = Expand (one, s)", 1),
    "expanded input": ("s = Shape (x) t = Gather (i, zero) y = Expand (t, s)", None),
    "constant": ("y = Identity (negative)", -1),
    "two numbers": ("y = Identity (k)", None),
    "list of sizes": ("y = Shape (x)", None),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_knows_the_only_number_of_a_value(name: str) -> None:
    nodes, expected = NUMBERS[name]
    model = onnx.parser.parse_model(f"{HEADER}{nodes}}}")
    ((scope, _),) = graph_scopes(model, opshift.default_registry())
    found = scope.uniform_element("y")
    assert (found and found.scalar) == expected


GRADIENT = """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.preview.training" : 1]>
main (float[2] x) => (float[1] d)
<int64[1] one = {1}> {
    y = ConstantOfShape <value = int64[1] {3}> (one)
    f = Cast <to = 1> (y)
    d = ai.onnx.preview.training.Gradient <xs = ["NAME"], y = "f"> (NAME)
}
"""


@pytest.mark.parametrize(("name", "is_known"), [("y", False), ("f", True)])
def test_values_that_gradients_replace_are_unknown(name: str, *, is_known: bool) -> None:
    model = onnx.parser.parse_model(GRADIENT.replace("NAME", name))
    ((scope, _),) = graph_scopes(model, opshift.default_registry())
    found = scope.is_nonnegative("y"), scope.uniform_element("y") is not None, scope.nonzero_elements("y")
    assert found == (is_known, is_known, (is_known,))
