"""Evaluator of constants and shape elements, compared with onnxruntime on random computations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.execution import one_node_model, run
from support.shape_computations import OPSET, SIZES, random_graph

from opshift.inference.evaluator.rule_table import EVALUATED, MAX_ELEMENTS
from opshift.inference.scope import Scope
from opshift.model.node import Tensor
from opshift.model.types import Symbol
from opshift.registry.shapes.sizes import exact_symbol_quotient, symbol_named

if TYPE_CHECKING:
    from support.execution import Array

ScopeFactory = Callable[..., Scope]
GRAPHS = 60


def test_agrees_with_onnxruntime_on_random_computations(scope_of: ScopeFactory) -> None:
    """Known elements are those of every run, and a symbol has one value per run."""
    constants: dict[str, int] = {}
    symbols = 0
    for seed in range(GRAPHS):
        graph = random_graph(seed)
        model = graph.model()
        scope = scope_of(model.graph, model.opset_import)
        sizes: list[dict[int, int]] = [{} for _ in SIZES]
        for node in graph.nodes:
            for name in node.output:
                found, expected = scope.elements(name), graph.values[name]
                constant = scope.constant(name)
                if constant is not None:
                    constants[node.op_type] = constants.get(node.op_type, 0) + 1
                if found is None:
                    continue
                symbols += any(type(each) is Symbol for each in found.values)
                for array, run_sizes in zip(expected, sizes, strict=True):
                    _check(found, array, run_sizes, f"seed {seed}, {node.op_type} -> {name}")
    assert set(constants) == set(EVALUATED)
    assert symbols > GRAPHS


def _check(found: Tensor, expected: Array, sizes: dict[int, int], where: str) -> None:
    assert found.dims == expected.shape, where
    assert (
        helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(found.element_type.upper()))
        == expected.dtype
    )
    for element, number in zip(found.values, expected.ravel().tolist(), strict=True):
        if type(element) is Symbol:
            assert sizes.setdefault(element, number) == number, where
        elif element is not None:
            assert repr(element) == repr(number), where


UNDEFINED = {
    "signed overflow": ("Add", np.array([2**63 - 1, 1]), np.array([1]), (None, 2)),
    "signed overflow of a product": (
        "Mul",
        np.array([2**31 - 1], np.int32),
        np.array([2], np.int32),
        (None,),
    ),
    "unsigned overflow wraps": ("Add", np.array([255], np.uint8), np.array([2], np.uint8), (1,)),
    "division by zero": ("Div", np.array([4, 4]), np.array([0, 2]), (None, 2)),
    "remainder of zero": ("Mod", np.array([4]), np.array([0]), (None,)),
    "overflow of a quotient": ("Div", np.array([-(2**63)]), np.array([-1]), (None,)),
    "quotient toward zero": ("Div", np.array([-7]), np.array([2]), (-3,)),
    "rounded sum": ("Add", np.array([0.1], np.float32), np.array([0.2], np.float32), (None,)),
    "rounded sum of integers": ("Add", np.array([2.0**53, 2.0**52]), np.array([1.0]), (None, 2.0**52 + 1)),
    "rounded quotient": ("Div", np.array([2.0**53, 6]), np.array([3.0]), (None, 2.0)),
    "exact product": ("Mul", np.array([0.5, 3]), np.array([0.25]), (0.125, 0.75)),
    "infinity": ("Mul", np.array([np.inf]), np.array([1.0]), (None,)),
    "underflow": ("Mul", np.array([1e-30], np.float32), np.array([1e-10], np.float32), (None,)),
}


def scope_with(
    scope_of: ScopeFactory, *nodes: onnx.NodeProto, shape: Any = ("N", 3), **weights: Array
) -> Scope:
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return scope_of(graph, [helper.make_opsetid("", OPSET)])


@pytest.mark.parametrize(("op_type", "first", "second", "expected"), UNDEFINED.values(), ids=UNDEFINED)
def test_undefined_and_rounded_results_are_unknown(
    op_type: str, first: Array, second: Array, expected: tuple[Any, ...], scope_of: ScopeFactory
) -> None:
    scope = scope_with(scope_of, helper.make_node(op_type, ["a", "b"], ["c"]), a=first, b=second)
    found = scope.elements("c")
    assert found is not None
    assert found.values == expected
    assert (scope.constant("c") is None) == (None in expected)


@pytest.mark.parametrize("op_type", ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
def test_compares_special_floats(op_type: str, scope_of: ScopeFactory) -> None:
    numbers = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5], np.float32)
    first, second = (each.ravel() for each in np.meshgrid(numbers, numbers))
    expected = run(one_node_model(op_type, OPSET, bool, first, second), {"x0": first, "x1": second})
    scope = scope_with(scope_of, helper.make_node(op_type, ["a", "b"], ["c"]), a=first, b=second)
    assert scope.constant("c") == Tensor("bool", (36,), tuple(expected[0].tolist()))


def test_unknown_elements_leave_others_known(scope_of: ScopeFactory) -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["unknown"]),
        helper.make_node("Reshape", ["unknown", "one"], ["single"]),
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Concat", ["single", "s"], ["joined"], axis=0),
        helper.make_node("Gather", ["joined", "two"], ["picked"]),
    ]
    scope = scope_with(scope_of, *nodes, one=np.array([1]), two=np.array([2]))
    joined = scope.elements("joined")
    assert joined is not None
    assert (joined.values[0], joined.values[2]) == (None, 3)
    assert scope.constant("joined") is None
    assert scope.constant("picked") == Tensor("int64", (1,), (3,))


SYMBOLS = {
    "sums commute": ("Add", "Add", True),
    "products commute": ("Mul", "Mul", True),
    "differences may be negative": ("Sub", "Sub", False),
    "quotients may divide by zero": ("Div", "Div", False),
}


@pytest.mark.parametrize(("first", "second", "is_equal"), SYMBOLS.values(), ids=SYMBOLS)
def test_computes_with_symbols(first: str, second: str, is_equal: bool, scope_of: ScopeFactory) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["n"], end=1),
        helper.make_node("Shape", ["x"], ["m"], start=1),
        helper.make_node(first, ["n", "m"], ["a"]),
        helper.make_node(second, ["m", "n"], ["b"]),
        helper.make_node("Equal", ["a", "b"], ["same"]),
    ]
    scope = scope_with(scope_of, *nodes, shape=("N", "M"))
    found = scope.constant("same")
    assert (found is not None and found.values == (True,)) == is_equal


QUOTIENTS = {
    "product with a number": ("Mul", "n", "k", "k", True),
    "product with a size": ("Mul", "n", "m", "m", True),
    "size that may not be divisible": ("Add", "n", "zero", "k", False),
    "sum": ("Add", "n", "m", "two", False),
}


@pytest.mark.parametrize(
    ("op_type", "first", "second", "divisor", "is_equal"), QUOTIENTS.values(), ids=QUOTIENTS
)
def test_divides_products_exactly(
    op_type: str, first: str, second: str, divisor: str, is_equal: bool, scope_of: ScopeFactory
) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["n"], end=1),
        helper.make_node("Shape", ["x"], ["m"], start=1),
        helper.make_node(op_type, [first, second], ["p"]),
        helper.make_node("Div", ["p", divisor], ["q"]),
        helper.make_node("Mul", ["q", divisor], ["again"]),
    ]
    constants = {"zero": np.array([0]), "two": np.array([2]), "k": np.array([16])}
    scope = scope_with(scope_of, *nodes, shape=("N", "M"), **constants)
    assert (scope.elements("q") == scope.elements("n")) == is_equal
    assert (scope.elements("again") == scope.elements("p")) == is_equal


def test_sums_of_symbols_are_no_products() -> None:
    for number in range(1000):
        one, other = symbol_named(f"N{number}"), symbol_named(f"M{number}")
        sums = [exact_symbol_quotient(one + factor * other, by) for factor in (1, 2, 4) for by in (2, 3, 5)]
        assert set(sums) == {None}
        assert exact_symbol_quotient(one, 2) is None
        assert exact_symbol_quotient(6 * one, 6) == one == exact_symbol_quotient(one * other, other)


@pytest.mark.parametrize(("number", "expected"), [(-1, (False,)), (0, None), (5, None)])
def test_sizes_differ_from_negative_numbers_only(
    number: int, expected: tuple[bool, ...] | None, scope_of: ScopeFactory
) -> None:
    nodes = [helper.make_node("Shape", ["x"], ["n"], end=1), helper.make_node("Equal", ["n", "k"], ["c"])]
    found = scope_with(scope_of, *nodes, k=np.array([number])).constant("c")
    assert (found and found.values) == expected


HUGE = {
    "Expand": {"w": np.array([1]), "s": np.array([2**40])},
    "ConstantOfShape": {"s": np.array([2**20, 2**20])},
    "Tile": {"w": np.array([1]), "s": np.array([2**62])},
    "Range": {"w": np.array(0), "s": np.array(2**62), "t": np.array(1)},
    "Reshape": {"w": np.zeros(MAX_ELEMENTS + 1, np.int64), "s": np.array([-1])},
}


@pytest.mark.parametrize("op_type", HUGE)
def test_does_not_evaluate_large_values(op_type: str, scope_of: ScopeFactory) -> None:
    scope = scope_with(scope_of, helper.make_node(op_type, list(HUGE[op_type]), ["c"]), **HUGE[op_type])
    assert scope.elements("c") is None


def test_elements_of_large_values_of_a_model_are_bounded(scope_of: ScopeFactory) -> None:
    nodes = [helper.make_node("ConstantOfShape", ["s"], [f"c{number}"]) for number in range(100)]
    scope = scope_with(scope_of, *nodes, s=np.array([MAX_ELEMENTS]))
    known = [scope.constant(f"c{number}") is not None for number in range(100)]
    assert known[0]
    assert not known[-1]


COPIES = {
    "Gather": ({"s": np.array([999, 3])}, 3, np.array([999, 3])),
    "Reshape": ({"s": np.array([10, -1])}, 3, np.arange(1000).reshape(10, -1)),
    "Slice": ({"s": np.array([998]), "t": np.array([1000])}, 3, np.arange(998, 1000)),
    "Split": ({"s": np.array([1000])}, 1, np.arange(1000)),
}
"""Further inputs, number of nodes, and output of each node that copies elements of 1000 numbers."""


@pytest.mark.parametrize("op_type", COPIES)
def test_bounds_count_only_the_copied_elements(
    op_type: str, scope_of: ScopeFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Half of the elements count for the initializer.
    monkeypatch.setattr("opshift.inference.facts.MAX_EVALUATED_ELEMENTS", 2000)
    inputs, count, expected = COPIES[op_type]
    nodes = [helper.make_node(op_type, ["w", *inputs], [f"c{number}"]) for number in range(count)]
    scope = scope_with(scope_of, *nodes, w=np.arange(1000), **inputs)
    for number in range(count):
        found = scope.constant(f"c{number}")
        assert found is not None
        assert (found.dims, list(found.values)) == (expected.shape, expected.ravel().tolist())


def test_empty_parts_take_no_time_per_row(scope_of: ScopeFactory) -> None:
    """The test takes minutes if each empty part looks at each row."""
    lengths = np.array([1, *[0] * (MAX_ELEMENTS - 1)])
    node = helper.make_node("Split", ["w", "s"], [f"c{number}" for number in range(len(lengths))], axis=1)
    scope = scope_with(scope_of, node, w=np.ones((MAX_ELEMENTS, 1), np.int64), s=lengths)
    assert scope.constant("c1") == Tensor("int64", (MAX_ELEMENTS, 0), ())


SYMBOLIC_SHAPES = {
    "Reshape, which copies the same size": ("Reshape", "x", {}, (0, None)),
    "Reshape with allowzero": ("Reshape", "y", {"allowzero": 1}, (0, None)),
    "Reshape, whose 0 would copy another size": ("Reshape", "y", {}, (None, None)),
    "Expand": ("Expand", "one", {}, (0, 3)),
}


@pytest.mark.parametrize(
    ("op_type", "data", "attributes", "expected"), SYMBOLIC_SHAPES.values(), ids=SYMBOLIC_SHAPES
)
def test_shapes_follow_from_symbols(
    op_type: str, data: str, attributes: dict[str, int], expected: Any, scope_of: ScopeFactory
) -> None:
    """The expected shape refers to the first dimension of `x` by 0."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["y"]),
        helper.make_node("Shape", ["x"], ["n"], end=1),
        helper.make_node("Concat", ["n", "rest"], ["s"], axis=0),
        helper.make_node(op_type, [data, "s"], ["c"], **attributes),
    ]
    rest = np.array([3 if op_type == "Expand" else -1])
    scope = scope_with(scope_of, *nodes, rest=rest, one=np.ones((1, 1), np.float32))
    shape, batch = scope.symbolic_shape("c"), (scope.symbolic_shape("x") or ())[0]
    assert shape is not None
    if expected[0] == 0:
        assert shape[0] == batch
    else:
        assert type(shape[0]) is not Symbol or shape[0] != batch


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ([-1, 4], (0, 2, 4)),  # N * 8 / (N * 4)
        ([2, -1], (0, 2, 4)),
        ([-1, 3], (0, None, 3)),  # 8 is not a multiple of 3
        ([-1], (0, 8)),
    ],
)
def test_symbols_cancel_out_in_reshape(
    rest: list[int], expected: tuple[int | None, ...], scope_of: ScopeFactory
) -> None:
    """The expected shape refers to the first dimension of `x` by 0."""
    nodes = [
        helper.make_node("Shape", ["x"], ["n"], end=1),
        helper.make_node("Concat", ["n", "rest"], ["s"], axis=0),
        helper.make_node("Reshape", ["x", "s"], ["c"]),
    ]
    scope = scope_with(scope_of, *nodes, shape=("N", 8), rest=np.array(rest))
    shape = scope.shape("c")
    assert shape == (None, *expected[1:])
    assert (scope.symbolic_shape("c") or ())[0] == (scope.symbolic_shape("x") or ())[0]


SLICES = {
    "last element": (-1, True, 1),
    "last element, if there is one": (-1, False, None),
    "elements after the first": (1, True, None),
}


@pytest.mark.parametrize(("start", "is_positive", "expected"), SLICES.values(), ids=SLICES)
def test_slices_to_the_end(
    start: int, is_positive: bool, expected: int | None, scope_of: ScopeFactory
) -> None:
    """Slice `N`, and `N * M` and twice this size, which may be larger than the end of the slice."""
    nodes = [
        helper.make_node("Reshape", ["x", "flat"], ["p"]),
        helper.make_node("Concat", ["p", "p"], ["twice"], axis=0),
        *(helper.make_node("Slice", [each, "s", "e"], [f"{each} cut"]) for each in ("x", "p", "twice")),
    ]
    constants = {"flat": np.array([-1]), "s": np.array([start]), "e": np.array([2**63 - 1])}
    scope = scope_with(scope_of, *nodes, shape=("N", "M"), **constants)
    scope.evaluation.assumes_positive_sizes = is_positive
    sizes = [(scope.symbolic_shape(f"{each} cut") or (None,))[0] for each in ("x", "p", "twice")]
    known = [each for each in sizes if each is not None]
    assert len(set(known)) == (1 if expected else len(known))
    assert expected in (None, sizes[0])


def test_size_behind_last_dimension_is_not_copied(scope_of: ScopeFactory) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["n"], end=1),
        helper.make_node("Concat", ["sizes", "n"], ["s"], axis=0),
        helper.make_node("Reshape", ["x", "s"], ["c"]),
    ]
    scope = scope_with(scope_of, *nodes, sizes=np.array([1, 3]))
    assert (scope.symbolic_shape("c") or ())[2] == (scope.symbolic_shape("x") or ())[0]


@pytest.mark.parametrize("count", range(7))
@pytest.mark.parametrize("op_type", sorted(EVALUATED))
def test_knows_nothing_of_nodes_with_a_wrong_number_of_inputs(
    op_type: str, count: int, scope_of: ScopeFactory
) -> None:
    names = [f"c{position}" for position in range(count)]
    graph = helper.make_graph([helper.make_node(op_type, names, ["y"])], "g", [], [])
    graph.initializer.extend(numpy_helper.from_array(np.array([1, 1]), name) for name in names)
    found = scope_of(graph, [helper.make_opsetid("", OPSET)]).elements("y")
    schema = onnx.defs.get_schema(op_type, OPSET)
    assert found is None or schema.min_input <= count <= schema.max_input
