"""Nodes that a runtime does not implement."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import onnx
import pytest
from support.toy_runtime import model, toy_runtime

from opshift.model.element_types import BY_NAME
from opshift.model.messages import ModelProto
from opshift.registry.registry import default_registry
from opshift.runtimes import kernel_lookup
from opshift.runtimes.check_support import RuntimeCheck, check_support
from opshift.runtimes.conditions import concerns
from opshift.runtimes.model_nodes import ModelNode, ModelNodes

if TYPE_CHECKING:
    from opshift.registry.runtimes.restrictions import Restriction

RUNTIME = toy_runtime()


def reasons(tested: onnx.ModelProto) -> list[str]:
    return [each.reason for each in check_support(tested, RUNTIME)]


def test_accepts_nodes_with_kernels_for_their_inferred_types() -> None:
    assert check_support(model("h = Relu (x) y = Add (h, h)"), RUNTIME) == ()


def test_reports_place_operator_types_reason_and_remedy() -> None:
    runtime = toy_runtime(expands_functions=False)
    (found,) = check_support(model("y = Relu (x)", "double[2] x"), runtime)
    assert (found.place, found.operator) == ("graph, node Relu -> y", "ai.onnx.Relu:14")
    assert found.types == {"T": "tensor(double)", "X": "tensor(double)", "Y": "tensor(double)"}
    assert found.reason == "toy-1.0 has no kernel of ai.onnx.Relu:14 for T: double"
    assert found.remedy == "it has T: float"
    assert pickle.loads(pickle.dumps(found)) == found


def test_infers_types_of_computed_values() -> None:
    (found,) = check_support(model("h = Cast <to = 7> (x) y = Add (h, h)"), RUNTIME)
    assert found.operator == "ai.onnx.Cast:19"
    (found,) = check_support(model("h = Add (x, x) y = Mul (h, h)", "int64[2] x"), RUNTIME)
    assert found.operator == "ai.onnx.Mul:14"


def test_expands_function_bodies() -> None:
    gelu = model("y = Gelu (x)")
    assert check_support(gelu, toy_runtime(expands_functions=False)) != ()
    assert check_support(gelu, RUNTIME) == ()
    (found,) = check_support(model("y = Gelu (x)", "double[2] x"), RUNTIME)
    own, _, inner = found.reason.partition("; in its function body, ")
    assert own == "toy-1.0 has no kernel of ai.onnx.Gelu"
    assert inner == "toy-1.0 has no kernel of ai.onnx.Div:14 for T: double"


def test_expands_only_bodies_whose_operators_have_not_changed() -> None:
    kernels = {name: [{"versions": [1, 28]}] for name in ("CastLike", "Constant", "Mul", "Sigmoid")}
    operators = {f"ai.onnx.{name}": each for name, each in kernels.items()}
    runtime = toy_runtime(opsets={"ai.onnx": 28}, operators=operators)
    assert check_support(model("y = Swish (x)", opset=24), runtime) == ()
    (found,) = check_support(model("y = Swish (x)", opset=25), runtime)
    assert found.reason == "toy-1.0 has no kernel of ai.onnx.Swish"


@pytest.mark.parametrize(
    ("node", "opset", "is_expanded"),
    [
        ("MeanVarianceNormalization (x)", 9, True),
        ("MeanVarianceNormalization (x)", 13, True),
        ("MeanVarianceNormalization (x)", 18, True),
        ("Relu (x)", 17, False),
        ("Relu (x)", 18, True),
    ],
)
def test_expands_a_body_from_the_first_opset_of_the_library_with_it(
    node: str, opset: int, *, is_expanded: bool
) -> None:
    tested = model(f"y = {node}", opset=opset)
    (found,) = ModelNodes(read(tested), default_registry()).nodes
    body = onnx.defs.get_schema(found.node.op_type, opset)
    assert bool(body.get_function_with_opset_version(opset)) == is_expanded
    assert found.has_fixed_body == is_expanded


def test_does_not_expand_operators_of_open_domains() -> None:
    (found,) = check_support(model("y = com.microsoft.FastGelu (x)"), RUNTIME)
    assert found.reason == "toy-1.0 has no kernel of com.microsoft.FastGelu"


def test_checks_subgraphs_and_called_functions() -> None:
    branches = "then_branch = t () => (a) { a = Abs (x) }, else_branch = e () => (b) { b = Relu (x) }"
    (found,) = check_support(model(f"y = If <{branches}> (c)", "bool c, float[2] x"), RUNTIME)
    assert found.place == "graph / If.then_branch, node Abs -> a"
    function = '<domain: "local", opset_import: ["" : 20]> F (a) => (b) { b = Relu (a) }'
    assert reasons(model("y = local.F (x)", functions=function)) == []
    (found,) = check_support(
        model("h = local.F (x) y = local.F (h)", "double[2] x", functions=function), RUNTIME
    )
    assert found.place == "graph, node F -> h, function local.F, node Relu -> b"


def test_accepts_operators_of_the_runtime() -> None:
    assert reasons(model("y = com.microsoft.QuickGelu (x)")) == []
    assert reasons(model("y = SimplifiedLayerNormalization (x, x)")) == []
    assert reasons(model("y = com.microsoft.FastGelu (x)")) == [
        "toy-1.0 has no kernel of com.microsoft.FastGelu"
    ]
    assert reasons(model("y = local.Unknown (x)")) == ["toy-1.0 does not support the domain local"]


def test_reports_opsets_and_ir_version_once() -> None:
    new = model("y = Relu (x)", opset=21)
    new.ir_version = 10
    assert reasons(new) == [
        "toy-1.0 supports opset 20 of ai.onnx, the model has 21",
        "toy-1.0 supports IR version 9, the model has 10",
    ]
    assert len(check_support(new, replace(RUNTIME, ir_version=None))) == 1


def test_does_not_expand_operators_of_newer_opsets() -> None:
    swish = model("y = Swish (x)", opset=24)
    assert [each.operator for each in check_support(swish, RUNTIME)] == [""]


@pytest.mark.parametrize(
    ("opset", "validates_nodes", "expected"),
    [
        (9, True, []),
        (10, True, ["toy-1.0 has no kernel of ai.onnx.Affine:10"]),
        (20, True, ["toy-1.0 has no kernel of ai.onnx.Affine:10"]),
        (20, False, []),
    ],
)
def test_runtimes_with_schemas_do_not_use_kernels_of_removed_operators(
    opset: int, expected: list[str], *, validates_nodes: bool
) -> None:
    operators = {"ai.onnx.Affine": [{"versions": [1, 1]}]}
    runtime = toy_runtime(operators=operators, validates_nodes=validates_nodes)
    tested = model("y = Affine <alpha = 2.0> (x)", opset=opset)
    assert [each.reason for each in check_support(tested, runtime)] == expected


def test_checks_each_recursive_function_once() -> None:
    header = '<domain: "local", opset_import: ["" : 20, "local" : 1]>'
    function = f"{header} F (a) => (b) {{ c = Abs (a) b = local.F (c) }}"
    recursive = model("y = local.F (x)", functions=function)
    assert [each.operator for each in check_support(recursive, RUNTIME)] == ["ai.onnx.Abs:13"]


RESHAPED = """
    rows = Shape <start = 0, end = 1> (z) rest = Constant <value_ints = [-1]> ()
    shape = Concat <axis = 0> (rows, rest) r = Reshape (z, shape)
"""
"""Nodes that compute `r`: the sizes of a graph input determine its sizes."""


@pytest.mark.parametrize(
    ("restriction", "nodes", "is_refused"),
    [
        ({"when": {"attributes": {"k": [0, 2]}}}, "y = Trilu (x)", False),
        ({"when": {"attributes": {"upper": [1]}}}, "y = Trilu (x)", True),
        ({"when": {"attributes": {"upper": [1]}}}, "y = Trilu <upper = 0> (x)", False),
        ({"when": {"attributes": {"upper": [1]}}, "versions": [1, 13]}, "y = Trilu (x)", False),
        ({"when": {"attributes": {"upper": [1]}}, "unless": {"present": ["k"]}}, "y = Trilu (x)", True),
        ({"when": {"present": ["k"]}}, "k = Constant <value_int = 1> () y = Trilu (x, k)", True),
        ({"when": {"absent": ["k"]}}, "y = Trilu (x)", True),
        ({"when": {"constant": ["k"]}}, "k = Constant <value_int = 1> () y = Trilu (x, k)", True),
        ({"when": {"computed": ["k"]}}, "k = Constant <value_int = 1> () y = Trilu (x, k)", False),
        ({"when": {"computed": ["k"]}}, "s = Size (x) y = Trilu (x, s)", True),
        ({"when": {"computed": ["k"]}}, "s = Size (z) k = BitwiseNot (s) y = Trilu (x, k)", False),
        ({"when": {"computed": ["k"]}}, "r = ReduceMax (i) s = Abs (r) y = Trilu (x, s)", True),
        ({"when": {"computed": ["k"]}}, "s = Size (z) k = Add (s, i) y = Trilu (x, k)", True),
        ({"when": {"computed": ["k"]}}, f"{RESHAPED} k = Size (r) y = Trilu (x, k)", False),
        ({"when": {"computed": ["k"]}}, f"{RESHAPED} n = NonZero (r) k = Size (n) y = Trilu (x, k)", True),
        ({"when": {"computed": ["k"]}}, "e = Tile (z, v) k = Size (e) y = Trilu (x, k)", True),
        ({"when": {"fed": ["k"]}}, "y = Trilu (x, i)", True),
        ({"when": {"fed": ["k"]}}, "y = Trilu (x)", False),
        ({"when": {"fed": ["k"]}}, "s = Size (x) k = BitwiseNot (s) y = Trilu (x, k)", False),
        ({"when": {"fed": ["k"]}}, "s = Size (x) k = Add (s, i) y = Trilu (x, k)", True),
        ({"when": {"fed": ["k"]}}, "n = NonZero (x) k = Size (n) y = Trilu (x, k)", False),
        ({"when": {"fed": ["k"]}}, "r = ReduceMax (i) s = Abs (r) y = Trilu (x, s)", True),
        ({"when": {"values": {"k": [1]}}}, "k = Constant <value_int = 1> () y = Trilu (x, k)", True),
        ({"when": {"values": {"k": [1]}}}, "k = Constant <value_int = 2> () y = Trilu (x, k)", False),
        ({"unless": {"ranks": {"input": [2, 3]}}}, "y = Trilu (x)", False),
        ({"unless": {"ranks": {"input": [4]}}}, "y = Trilu (x)", True),
        ({"unless": {"dimensions": {"input": {"-1": [3]}}}}, "y = Trilu (x)", False),
        ({"unless": {"dimensions": {"input": {"1": [3]}}}}, "y = Trilu (x)", True),
        ({"unless": {"dimensions": {"input": {"0": [3]}}}}, "y = Trilu (x)", False),
        ({"unless": {"dimensions": {"input": {"7": [1]}}}}, "y = Trilu (x)", False),
        ({"when": {"equal_sizes": {"input": 1, "output": 1}}}, "y = Trilu (x)", True),
        ({"when": {"equal_sizes": {"input": 1, "output": 2}}}, "y = Trilu (x)", False),
        ({"when": {"equal_sizes": {"input": 0, "output": 0}}}, "y = Trilu (x)", True),
        ({"when": {"equal_sizes": {"input": 0, "output": 1}}}, "y = Trilu (x)", False),
        ({"unless": {"equal_sizes": {"input": 0, "output": 1}}}, "y = Trilu (x)", False),
        ({"unless": {"equal_sizes": {"input": 1, "output": 2}}}, "y = Trilu (x)", True),
        ({"when": {"sized": ["input"]}}, "y = Trilu (x)", False),
        ({"when": {"sized": ["input"]}}, "y = Trilu (z)", True),
        ({"when": {"sized_axes": {"input": [1]}}}, "y = Trilu (z)", True),
        ({"when": {"sized_axes": {"input": [0, 1]}}}, "y = Trilu (x)", False),
        ({"when": {"ranked": ["input"]}}, "y = Trilu (x)", True),
        ({"when": {"ranked": ["k"]}}, "y = Trilu (x)", False),
        ({"when": {"empty": ["input"]}}, "y = Trilu (x)", False),
        ({"when": {"empty": ["input"]}}, "e = Constant <value = float[2, 0] {}> () y = Trilu (e)", True),
        ({"when": {"odd_sizes": {"input": -1}}}, "y = Trilu (x)", True),
        ({"when": {"single": ["input"]}}, "y = Trilu (x)", True),
        ({"when": {"stated": ["upper"]}}, "y = Trilu (x)", False),
        ({"when": {"stated": ["upper"]}}, "y = Trilu <upper = 1> (x)", True),
        ({"when": {"some_types": {"input": ["int8", "float"]}}}, "y = Trilu (x)", True),
        ({"when": {"some_types": {"input": ["int8"]}}}, "y = Trilu (x)", False),
        ({"when": {"types": {"T": ["double", "float"]}}}, "y = Trilu (x)", True),
        ({"when": {"types": {"output": ["int8"]}}}, "y = Trilu (x)", False),
        ({}, "y = Trilu (x)", False),
    ],
)
def test_evaluates_restrictions(restriction: dict[str, Any], nodes: str, is_refused: bool) -> None:
    used = (
        *("Abs", "Add", "BitwiseNot", "Concat", "Constant", "NonZero", "ReduceMax", "Reshape", "Shape"),
        *("Size", "Tile", "Trilu"),
    )
    runtime = toy_runtime(
        operators={f"ai.onnx.{each}": [{"versions": [1, 20]}] for each in used},
        restrictions={"ai.onnx.Trilu": [{"reason": "a reason", **restriction}]},
    )
    found = [
        each.reason
        for each in check_support(
            model(nodes, "float[N, 2, 3] x, float[4, 5] z, int64 i, int64[2] v"), runtime
        )
    ]
    assert found == (["toy-1.0 refuses the node: a reason"] if is_refused else [])


def test_defaults_of_graph_inputs_are_constant() -> None:
    runtime = toy_runtime(
        operators={"ai.onnx.Trilu": [{"versions": [14, 14]}]},
        restrictions={"ai.onnx.Trilu": [{"reason": "a reason", "when": {"computed": ["k"]}}]},
    )
    tested = model("y = Trilu (x, k)", "float[2, 3] x, int64 k")
    assert len(check_support(tested, runtime)) == 1
    tested.graph.initializer.add(name="k", data_type=BY_NAME["int64"].number, int64_data=[1])
    assert check_support(tested, runtime) == ()


def test_leaves_nodes_to_the_runtime_that_it_falls_back_to() -> None:
    device = toy_runtime(
        opsets={"ai.onnx": 28},
        operators={"ai.onnx.Relu": [{"versions": [13, 14]}]},
        expands_functions=False,
        falls_back="onnxruntime-1.31.1",
    )
    tested = model("h = Relu (x) y = Abs (h)")
    assert check_support(tested, device) == ()
    support = RuntimeCheck(device).check(ModelNodes(read(tested), default_registry()))
    assert (support.missing, support.fallback) == ((), ("ai.onnx.Abs:13",))
    (found,) = check_support(model("y = Abs (x)", "bfloat16[2] x"), device)
    assert found.reason == "toy-1.0 has no kernel of ai.onnx.Abs"


def test_notes_known_errors_and_unknown_facts() -> None:
    restriction = {"reason": "only matrices", "unless": {"ranks": {"X": [2]}}}
    noting = toy_runtime(
        wrong={"ai.onnx.Relu:14": "off by one"}, restrictions={"ai.onnx.Relu": [restriction]}
    )
    tested = model("z = local.Unknown (x) y = Relu (z)")
    support = RuntimeCheck(noting).check(ModelNodes(read(tested), default_registry()))
    assert support.warnings == ("ai.onnx.Relu:14: off by one",)
    assert support.uncertain == (
        "ai.onnx.Relu:14: only matrices",
        "ai.onnx.Relu:14: an element type is unknown",
    )


def test_notes_restrictions_without_conditions() -> None:
    runtime = toy_runtime(restrictions={"ai.onnx.Relu": "only small tensors"})
    nodes = ModelNodes(read(model("y = Relu (x)")), default_registry())
    assert RuntimeCheck(runtime).check(nodes).uncertain == ("ai.onnx.Relu:14: only small tensors",)


def test_repeats_the_notes_about_a_function_body() -> None:
    runtime = toy_runtime(wrong={"ai.onnx.Erf:13": "off by one"})
    check, nodes = RuntimeCheck(runtime), ModelNodes(read(model("y = Gelu (x)")), default_registry())
    first = check.check(nodes)
    assert first.warnings == ("ai.onnx.Erf:13: off by one",)
    assert check.check(nodes) == first


def test_looks_for_missing_kernels_of_some_operators() -> None:
    nodes = ModelNodes(read(model("h = Abs (x) y = Relu (h)")), default_registry())
    found = RuntimeCheck(RUNTIME).find_missing(nodes, ["ai.onnx.Relu", "ai.onnx.Abs"])
    assert found is not None
    assert found.operator == "ai.onnx.Abs:13"
    assert RuntimeCheck(RUNTIME).find_missing(nodes, ["ai.onnx.Relu"]) is None


def test_runtimes_share_the_answers_about_some_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def count_and_answer(restriction: Restriction, node: ModelNode) -> bool | None:
        asked.append(node)
        return concerns(restriction, node)

    monkeypatch.setattr(kernel_lookup, "concerns", count_and_answer)
    restrictions = {"ai.onnx.Relu": [{"reason": "too many axes", "when": {"ranks": {"X": [5]}}}]}
    runtimes = [toy_runtime(version=each, restrictions=restrictions) for each in ("1.0", "2.0")]
    nodes = ModelNodes(read(model("h = Relu (x) y = Relu (h)")), default_registry())
    for each in runtimes:
        assert RuntimeCheck(each).find_missing(nodes, ["ai.onnx.Relu"]) is None
        assert not RuntimeCheck(each).check(nodes).missing
    assert len(asked) == 2


def test_refuses_calls_of_functions_without_expansion() -> None:
    function = '<domain: "local", opset_import: ["" : 20]> F (a) => (b) { b = Relu (a) }'
    tested = model("h = local.F (x) y = local.F (h)", functions=function)
    found = check_support(tested, toy_runtime(expands_functions=False))
    assert [(each.place, each.operator) for each in found] == [
        ("graph, node F -> h", "local.F"),
        ("graph, node F -> y", "local.F"),
    ]


def test_groups_nodes_by_operator_and_types() -> None:
    tested = model("h = Abs (x) y = Abs (h)")
    support = RuntimeCheck(RUNTIME).check(ModelNodes(read(tested), default_registry()))
    (found,) = support.missing
    assert found.places == ("graph, node Abs -> h", "graph, node Abs -> y")


def read(tested: onnx.ModelProto) -> ModelProto:
    return ModelProto.FromString(tested.SerializeToString())


@pytest.mark.parametrize(("alpha", "warns"), [("", True), ("<alpha = 1.0>", True), ("<alpha = 0.5>", False)])
def test_warns_about_wrong_results_of_the_nodes_that_they_concern(alpha: str, *, warns: bool) -> None:
    errors = {"ai.onnx.Elu:6": [{"reason": "off by one", "when": {"attributes": {"alpha": [1]}}}]}
    runtime = toy_runtime(operators={"ai.onnx.Elu": [{"versions": [6, 6]}]}, wrong=errors)
    nodes = ModelNodes(read(model(f"h = Elu <alpha = 0.5> (x) y = Elu {alpha} (h)")), default_registry())
    assert RuntimeCheck(runtime).check(nodes).warnings == (("ai.onnx.Elu:6: off by one",) if warns else ())


@pytest.mark.parametrize(("declared", "is_refused"), [("float[] x", True), ("float[N, 2] x", False)])
def test_refuses_inputs_of_unknown_rank(declared: str, is_refused: bool) -> None:
    tested = model("y = Relu (x)", declared)
    assert check_support(tested, RUNTIME) == ()
    found = check_support(tested, toy_runtime(needs_input_ranks=True))
    option = "--shape x=... (shapes= in Python) of `opshift convert` or `opshift fit`"
    places = [(each.place, each.remedy) for each in found]
    assert places == ([("graph, input 'x'", f"declare the shape of 'x' with {option}")] if is_refused else [])


@pytest.mark.parametrize(
    ("declared", "is_uncertain"),
    [("float[2] x", False), ("float x", False), ("float[N, 2] x", True), ("float[] x", True)],
)
def test_inputs_of_unknown_size_are_uncertain_if_the_runtime_may_need_them(
    declared: str, *, is_uncertain: bool
) -> None:
    nodes = ModelNodes(read(model("y = Relu (x)", declared)), default_registry())
    found = RuntimeCheck(toy_runtime(may_need_input_sizes=True)).check(nodes)
    reason = "graph, input 'x': toy-1.0 refuses some models with inputs whose sizes are not all declared"
    assert (found.missing, found.uncertain) == ((), (reason,) if is_uncertain else ())
    assert RuntimeCheck(RUNTIME).check(nodes).uncertain == ()


@pytest.mark.parametrize(
    ("nodes", "warns"),
    [
        ("y = Relu (x)", False),
        ("h = Cast <to = 11> (x) y = Cast <to = 1> (h)", True),
        ("h = Cast <to = 10> (x) y = Cast <to = 1> (h)", False),
    ],
)
def test_warns_about_types_that_the_runtime_computes_in_another_one(nodes: str, *, warns: bool) -> None:
    runtime = toy_runtime(inexact_types={"double": "computed in float"})
    found = RuntimeCheck(runtime).check(ModelNodes(read(model(nodes, "float[2] x")), default_registry()))
    assert found.warnings == (("double: computed in float",) if warns else ())


@pytest.mark.parametrize(("sometimes", "alpha"), [(True, 1), (True, 2), (False, 1), (False, 2)])
def test_restrictions_that_hold_sometimes_are_uncertain(alpha: int, *, sometimes: bool) -> None:
    limit = {"reason": "alpha", "sometimes": sometimes, "when": {"attributes": {"alpha": [1]}}}
    kernels = {"ai.onnx.Elu": [{"versions": [6, 6]}]}
    nodes = ModelNodes(read(model(f"y = Elu <alpha = {alpha}.0> (x)")), default_registry())
    refuses = RuntimeCheck(toy_runtime(operators=kernels, restrictions={"ai.onnx.Elu": [limit]}))
    found = refuses.check(nodes)
    assert bool(found.missing) == (alpha == 1 and not sometimes)
    assert found.uncertain == (("ai.onnx.Elu:6: alpha",) if alpha == 1 and sometimes else ())
    errs = toy_runtime(operators=kernels, wrong={"ai.onnx.Elu:6": [limit]})
    found = RuntimeCheck(errs, refuses_wrong=True).check(nodes)
    assert bool(found.missing) == (alpha == 1 and not sometimes)
    assert bool(found.warnings) == (alpha == 1 and sometimes)


@pytest.mark.parametrize(
    ("nodes", "types", "is_certain"),
    [
        ("y = Abs (x)", "float[2] x", True),
        ("y = Abs (x)", "double[2] x", False),
        ("y = Not (x)", "bool[2] x", True),  # bool is the only type of Not
        ("y = IsInf (x)", "double[2] x", False),
        ("y = NonMaxSuppression (x, s)", "float[1, 2, 4] x, float[1, 1, 2] s", True),
    ],
)
def test_documentation_without_types_promises_float_and_the_only_types(
    nodes: str, types: str, *, is_certain: bool
) -> None:
    names = ("Abs", "IsInf", "NonMaxSuppression", "Not")
    documented = toy_runtime(
        evidence={"kind": "documentation", "source": "tests", "date": "2026-11-23"},
        operators={f"ai.onnx.{each}": [{"versions": [1, 20]}] for each in names},
    )
    support = RuntimeCheck(documented).check(ModelNodes(read(model(nodes, types)), default_registry()))
    assert support.missing == ()
    assert (support.uncertain == ()) == is_certain


@pytest.mark.parametrize(
    ("nodes", "verdict"),
    [
        ("k = Constant <value_ints = [1, 1]> () y = Tile (x, k)", "runs"),
        ("k = Constant <value_ints = [1, 2]> () y = Tile (x, k)", "does not run"),
        ("y = Tile (x, v)", "may run"),
        ("y = Tile (x, one)", "runs"),  # a single element
    ],
)
def test_asks_whether_the_elements_of_an_input_differ(nodes: str, verdict: str) -> None:
    runtime = toy_runtime(
        operators={f"ai.onnx.{each}": [{"versions": [1, 20]}] for each in ("Constant", "Tile")},
        restrictions={"ai.onnx.Tile": [{"reason": "a reason", "when": {"differing": ["repeats"]}}]},
    )
    tested = read(model(nodes, "float[2, 3] x, int64[2] v, int64[1] one"))
    support = RuntimeCheck(runtime).check(ModelNodes(tested, default_registry()))
    found = "does not run" if support.missing else "may run" if support.uncertain else "runs"
    assert found == verdict


@pytest.mark.parametrize(
    ("element_type", "ir_version", "is_refused"), [(1, 8, False), (10, 8, True), (10, 3, False)]
)
def test_refuses_initializers_that_callers_can_override(
    element_type: int, ir_version: int, is_refused: bool
) -> None:
    tested = model("y = Relu (x)")
    tested.ir_version = ir_version
    tested.graph.input.add(name="w").type.tensor_type.elem_type = element_type
    tested.graph.initializer.add(name="w", data_type=element_type, dims=[0])
    found = check_support(tested, toy_runtime(constant_types=["float16"]))
    assert [(each.place, each.remedy) for each in found] == (
        [("graph, initializer 'w'", "make the initializer constant: opshift doctor --fix")]
        if is_refused
        else []
    )
