"""Names of dimensions that the caller declares replace the old names in all shapes of the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx.parser import parse_model
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from support.execution import Feeds, assert_equal, run

import opshift
from opshift.converter.arguments import ShapesLike
from opshift.model.types import declared_dims


def input_dims(model: Any) -> dict[str, Any]:
    return {value.name: declared_dims(value.type) for value in model.graph.input}


def test_names_become_equal_in_all_declared_shapes() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 17]>
        main (float[N, M] x, float[N] z, bool c) => (float[N, M] y) <float[N, 2] u> {
            u = Relu (x)
            y = If (c) <
                then_branch = yes () => (float[N, M] a) { a = Abs (u) },
                else_branch = no () => (float[N, M] b) { b = Neg (u) }
            >
        }
    """
    result = opshift.convert_version(parse_model(text), 18, shapes={"x": ("batch", 2)})
    assert input_dims(result) == {"x": ("batch", 2), "z": ("batch",), "c": ()}
    graphs = [result.graph, *(each.g for each in result.graph.node[1].attribute)]
    values = [value for graph in graphs for value in (*graph.output, *graph.value_info)]
    assert {declared_dims(value.type) for value in values} == {("batch", 2)}


DIFFERENCE = """
    <ir_version: 8, opset_import: ["" : 17]>
    main (float[A, B, C] x, float[A, B, C] w, float[K] q, float[] r) => (int64[1] a, int64[1] b, int64[1] c) {
        sx = Shape <start = 0, end = 1> (x)
        sw = Shape <start = 1, end = 2> (w)
        sq = Shape (q)
        sr = Shape (r)
        a = Sub (sx, sw)
        b = Sub (sx, sq)
        c = Sub (sq, sr)
    }
"""

SIZES = {"x": (2, 3, 5), "w": (2, 3, 5), "q": (4,), "r": (7,)}

RENAMED: Mapping[str, tuple[ShapesLike, Mapping[str, Any]]] = {
    "swapped": ({"x": ("B", "A", None)}, {"x": ("B", "A", "C"), "q": ("K",), "r": (None,)}),
    "cycle": ({"x": ("B", "C", "A")}, {"x": ("B", "C", "A"), "q": ("K",), "r": (None,)}),
    "size and its name": ({"x": ("B", 3, "C")}, {"x": ("B", 3, "C"), "q": ("K",), "r": (None,)}),
    "swapped and a size": (
        {"x": ("B", "A", "?"), "q": (4,)},
        {"x": ("B", "A", "C"), "q": (4,), "r": (None,)},
    ),
    "repeated name": (
        {"x": (2, None, None), "w": ("A", "B", "C")},
        {"x": (2, "B", "C"), "q": ("K",), "r": (None,)},
    ),
    "name of a renamed input": ({"q": ("L",), "r": ("K",)}, {"x": ("A", "B", "C"), "q": ("L",), "r": ("K",)}),
    "chain": ({"q": ("A",), "x": ("L", None, None)}, {"x": ("L", "B", "C"), "q": ("A",), "r": (None,)}),
}


@pytest.mark.parametrize(("shapes", "expected"), RENAMED.values(), ids=RENAMED)
def test_names_change_at_once(shapes: ShapesLike, expected: Mapping[str, Any]) -> None:
    """A new name may be the old name of another dimension."""
    model = parse_model(DIFFERENCE)
    model.graph.input[3].type.tensor_type.shape.dim.add()
    result = opshift.convert_version(model, 18, shapes=shapes, fold=True)
    assert input_dims(result) == {**expected, "w": expected["x"]}
    feeds: Feeds = {name: np.zeros(size, np.float32) for name, size in SIZES.items()}
    assert_equal(run(result, feeds), run(model, feeds))


COMPUTED_NAME = """
    <ir_version: 8, opset_import: ["" : 17, "com.acme" : 1]>
    main (float[N] x, float[M] w) => (int64[1] a, int64[1] b) <float[K] h> {
        h = com.acme.Repeat (x)
        sx = Shape (x)
        sw = Shape (w)
        sh = Shape (h)
        a = Sub (sh, sw)
        b = Sub (sh, sx)
    }
"""


class Repeat(OpRun):  # type: ignore[misc]  # onnx has no types
    op_domain = "com.acme"

    def _run(self, x: Any) -> tuple[Any]:
        return (np.tile(x, 3),)


@pytest.mark.parametrize(
    "shapes",
    [{"w": ("K",), "h": ("M",)}, {"h": ("M",), "w": ("K",)}, {"x": ("K",), "w": ("N",), "h": ("M",)}],
    ids=["swapped", "computed value first", "cycle"],
)
def test_names_of_inputs_and_computed_values_change_at_once(shapes: Mapping[str, tuple[str]]) -> None:
    model = parse_model(COMPUTED_NAME)
    result = opshift.convert_version(model, 18, shapes=shapes, fold=True)
    values = (*result.graph.input, *result.graph.value_info)
    found = {value.name: declared_dims(value.type) for value in values}
    assert found == {"x": ("N",), **shapes}
    feeds = {"x": np.zeros(2, np.float32), "w": np.zeros(3, np.float32)}
    expected, actual = (
        ReferenceEvaluator(each, new_ops=[Repeat]).run(None, feeds) for each in (model, result)
    )
    assert_equal(actual, expected)


NAMED_VALUE = """
    <ir_version: 8, opset_import: ["" : 17, "acme" : 1]>
    main (float[N] x) => (float[N] y) <float[M, 4] h> { h = acme.Mystery (x) y = Relu (x) }
"""

NAMED_LIKE_INPUT = """
    <ir_version: 8, opset_import: ["" : 17]>
    main (float[N] x) => (float[N] y) <float[N] h> { h = Relu (x) y = Neg (h) }
"""


def instead(name: str, after: str, before: str) -> str:
    return f"input {name!r} is declared as {after} instead of {before}; the result may require this shape"


REPORTED: Mapping[str, tuple[str, ShapesLike, list[str]]] = {
    "renamed input": (
        DIFFERENCE,
        {"x": ("B", "A", "C")},
        [instead("x", "[B, A, C]", "[A, B, C]"), instead("w", "[B, A, C]", "[A, B, C]")],
    ),
    "computed value": (
        NAMED_VALUE,
        {"h": ("N", None), "x": ("P",)},
        [instead("x", "[P]", "[N]"), "'h' is declared as [N, 4]"],
    ),
    "repeated name": (
        NAMED_LIKE_INPUT,
        {"x": ("A",), "h": ("N",)},
        [instead("x", "[A]", "[N]"), "'h' is declared as [A]"],
    ),
    "size of a computed value": (
        NAMED_LIKE_INPUT,
        {"h": (5,)},
        [instead("x", "[5]", "[N]"), "'h' is declared as [5]"],
    ),
}


@pytest.mark.parametrize(("text", "shapes", "expected"), REPORTED.values(), ids=REPORTED)
def test_reports_shapes_of_the_result(text: str, shapes: ShapesLike, expected: list[str]) -> None:
    report = opshift.convert(parse_model(text), 17, shapes=shapes).report
    assert list(report.repairs) == expected


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (DIFFERENCE, {"x": ("A", None, "C")}),
        (NAMED_VALUE, {"h": ("M", 4)}),
        (NAMED_VALUE, {"h": ("M", None)}),
    ],
    ids=["input", "computed value", "unchanged dimension"],
)
def test_unchanged_shapes_change_nothing(text: str, shapes: ShapesLike) -> None:
    data = parse_model(text).SerializeToString()
    assert opshift.convert_version(data, 17, shapes=shapes, bump=True) == data
