"""Patterns of nodes that an optimizer replaces together."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from support.toy_runtime import model, toy_runtime

from opshift.registry.record import from_plain_data
from opshift.registry.runtimes.restrictions import NodePattern
from opshift.runtimes.check_support import check_support
from opshift.runtimes.pattern_search import PatternSearch

INPUTS = "float[2, 2] x, float[2, 2] u, float[2] v, int64[2, 2] n, bool c"

QUICK = {"nodes": "m = Mul (x, k) s = Sigmoid (m) y = Mul (x, s)", "scalars": ["k"]}
"""`QuickGelu`: both Mul read the same value, and one of them a constant."""

TURNED = {"nodes": "t = Transpose (a) y = MatMul (t, b)", "attributes": {"perm": [None, [1, 0]]}}

BIASED = {"nodes": "m = MatMul (a, b) y = Add (m, v)", "node": "m", "ranks": {"v": [1]}}
"""The node with the condition is the first one."""

MIXED = {"nodes": "c = Cast (a) s = Relu (c) y = Mul (s, c)", "types": {"a": ["int64"]}}

VECTOR = {
    "nodes": "m = MatMul (a, b) y = Add (m, c)",
    "node": "m",
    "vectors": ["c"],
    "skips": ["Relu", "Mul"],
}
"""The constant has several elements, and other nodes may be before it."""

BRANCHED = {**VECTOR, "shared": ["m"], "skips": ["Mul", "Sigmoid"]}
"""Nodes before the constant may branch."""

COMPUTED = {"nodes": "r = Add (a, s) y = Mul (r, b)", "computed": ["s"]}

GIVEN = {"nodes": "r = Relu (a) y = Mul (r, b)", "given": ["a"]}

FROM_MUL = {"nodes": "r = Relu (a) y = Mul (r, b)", "sources": {"a": ["Mul", "Add"]}}

NOT_FROM_MUL = {"nodes": "r = Relu (a) y = Mul (r, b)", "excluded_sources": {"a": ["Mul"]}}

REUSED = {"nodes": "r = Mul (a, k) y = Add (r, b)", "reused": {"k": ["Relu", "Add"]}, "scalars": ["k"]}

HOLDS = {"nodes": "r = Mul (a, k) y = Add (r, b)", "holds": ["k > 1 and rank(a) == 2 and highest(k) > k"]}

JOINED = {"nodes": "r = Relu (a) y = Concat (r)"}

K = "k = Constant <value_float = 1.5> ()"

SAME, OTHER, SINGLE = (
    f"g = Constant <{each}> ()" for each in ("value_float = 1.5", "value_float = 2.5", "value_floats = [1.5]")
)

PAIR = "k = Constant <value_floats = [1.0, 2.0]> ()"

FOLDED = "o = Constant <value = float[2, 2] {1, 2, 3, 4}> () t = Transpose (o)"

BRANCHES = (
    "h0 = Mul (m, m) " + " ".join(f"h{i + 1} = Mul (h{i}, h{i})" for i in range(60)) + " z = Mul (h60, m)"
)
"""A search that follows each of the 2 ** 60 paths does not end."""

SWISH = "s = Sigmoid (m) y = Mul (x, s)"


@pytest.mark.parametrize(
    ("pattern", "nodes", "is_found"),
    [
        (QUICK, f"{K} m = Mul (x, k) {SWISH}", True),
        (QUICK, f"{K} m = Mul (k, x) s = Sigmoid (m) y = Mul (s, x)", True),
        (QUICK, f"{K} m = Mul (x, k) s = Sigmoid (m) y = Mul (u, s)", False),
        (QUICK, f"m = Mul (x, u) {SWISH}", False),
        (QUICK, f"{PAIR} m = Mul (x, k) {SWISH}", False),
        # `s` is read twice
        (QUICK, f"{K} m = Mul (x, k) s = Sigmoid (m) z = Mul (x, s) y = Mul (z, s)", False),
        (QUICK, f"{K} m = Mul (x, k) s = Sigmoid (m) z = Mul (x, s) y = Relu (z)", True),
        (QUICK, f"{K} m = Mul (x, k) i = Identity (m) s = Sigmoid (i) y = Mul (x, s)", True),
        (QUICK, f"{K} h = Mul (x, k) m = Relu (h) {SWISH}", False),
        ({**QUICK, "skips": ["Relu"]}, f"{K} h = Mul (x, k) m = Relu (h) {SWISH}", True),
        (
            QUICK,
            f"{K} m = Mul (x, k) s = Sigmoid (m) z = If <"
            "then_branch = t () => (p) { p = Relu (s) }, else_branch = e () => (q) { q = Relu (x) }"
            "> (c) w = Mul (x, s) y = Add (w, z)",
            False,  # a subgraph reads `s`
        ),
        (TURNED, "t = Transpose (x) y = MatMul (t, u)", True),
        (TURNED, "t = Transpose <perm = [1, 0]> (x) y = MatMul (t, u)", True),
        (TURNED, "t = Transpose <perm = [0, 1]> (x) y = MatMul (t, u)", False),
        (TURNED, "t = Transpose (x) y = MatMul (u, t)", False),
        (TURNED, f"{FOLDED} y = MatMul (t, u)", False),
        (TURNED, "t = Transpose (x) z = MatMul (t, u) y = Add (z, t)", False),
        ({**TURNED, "shared": ["t"]}, "t = Transpose (x) z = MatMul (t, u) y = Add (z, t)", True),
        (TURNED, "t = com.microsoft.Transpose (x) y = MatMul (t, u)", False),
        (BIASED, "m = MatMul (x, u) y = Add (m, v)", True),
        (BIASED, "m = MatMul (x, u) y = Add (v, m)", True),
        (BIASED, "m = MatMul (x, u) y = Add (m, u)", False),
        (BIASED, "m = MatMul (x, u) h = Add (m, v) y = Mul (h, m)", False),
        (BIASED, "m = MatMul (x, u) y = Relu (m)", False),
        (MIXED, "h = Cast <to = 1> (n) s = Relu (h) y = Mul (s, h)", True),
        (MIXED, "h = Cast <to = 1> (x) s = Relu (h) y = Mul (s, h)", False),
        (MIXED, "h = Cast <to = 1> (n) s = Relu (h) z = Mul (s, h) y = Add (h, z)", False),
        (VECTOR, f"{PAIR} m = MatMul (x, u) y = Add (k, m)", True),
        (VECTOR, f"{PAIR} m = MatMul (x, u) i = Identity (k) y = Add (m, i)", True),
        (VECTOR, f"{K} m = MatMul (x, u) y = Add (m, k)", False),
        (VECTOR, "m = MatMul (x, u) y = Add (m, v)", False),
        (VECTOR, f"{PAIR} m = MatMul (x, u) r = Relu (m) z = Mul (r, v) y = Add (z, k)", True),
        (VECTOR, f"{PAIR} m = MatMul (x, u) z = Mul (k, m) y = Add (z, k)", True),
        (VECTOR, f"{PAIR} m = MatMul (x, u) z = Mul (v, m) y = Add (z, k)", False),
        (VECTOR, f"{PAIR} m = MatMul (x, u) r = Sigmoid (m) y = Add (r, k)", False),
        (VECTOR, f"{PAIR} m = MatMul (x, u) r = Relu (m) z = Add (r, k) y = Add (z, r)", False),
        (BRANCHED, f"{PAIR} m = MatMul (x, u) s = Sigmoid (m) z = Mul (m, s) y = Add (z, k)", True),
        (BRANCHED, f"{PAIR} m = MatMul (x, u) s = Sigmoid (m) z = Mul (s, m) y = Add (z, k)", True),
        (BRANCHED, f"{PAIR} m = MatMul (x, u) s = Sigmoid (m) z = Mul (v, s) y = Add (z, k)", False),
        (BRANCHED, f"{PAIR} m = MatMul (x, u) s = Relu (m) z = Mul (v, s) y = Add (z, k)", False),
        ({**BRANCHED, "shared": []}, f"{PAIR} m = MatMul (x, u) {BRANCHES} y = Add (z, k)", False),
        (BRANCHED, f"{PAIR} m = MatMul (x, u) {BRANCHES} y = Add (z, k)", True),
        (BRANCHED, f"{PAIR} m = MatMul (x, u) {BRANCHES} y = Add (z, x)", False),
        (COMPUTED, "s = Relu (u) r = Add (x, s) y = Mul (r, u)", True),
        (COMPUTED, "s = Relu (u) i = Identity (s) r = Add (x, i) y = Mul (r, u)", True),
        (COMPUTED, "r = Add (x, u) y = Mul (r, u)", False),
        (COMPUTED, "i = Identity (u) r = Add (x, i) y = Mul (r, u)", False),
        (COMPUTED, f"{PAIR} s = Relu (k) r = Add (x, s) y = Mul (r, u)", False),
        (GIVEN, "r = Relu (x) y = Mul (r, u)", True),
        (GIVEN, "i = Identity (x) j = Cast <to = 1> (i) r = Relu (j) y = Mul (r, u)", True),
        (GIVEN, "h = Add (x, u) r = Relu (h) y = Mul (r, u)", False),
        (GIVEN, f"{PAIR} r = Relu (k) y = Mul (r, u)", False),
        (FROM_MUL, "r = Relu (x) y = Mul (r, u)", True),
        (FROM_MUL, "h = Add (x, u) i = Identity (h) r = Relu (i) y = Mul (r, u)", True),
        (FROM_MUL, "h = Sigmoid (x) r = Relu (h) y = Mul (r, u)", False),
        (NOT_FROM_MUL, "r = Relu (x) y = Mul (r, u)", True),
        (NOT_FROM_MUL, "h = Mul (x, u) r = Relu (h) y = Mul (r, u)", False),
        (REUSED, f"{K} r = Mul (x, k) y = Add (r, u)", False),
        (REUSED, f"{K} r = Mul (x, k) y = Add (r, u) z = Add (u, k)", True),
        (REUSED, f"{K} {SAME} r = Mul (x, k) y = Add (r, u) z = Relu (g)", True),
        (REUSED, f"{K} {SAME} r = Mul (x, k) y = Add (r, u) z = Sigmoid (g)", False),
        (REUSED, f"{K} {OTHER} r = Mul (x, k) y = Add (r, u) z = Relu (g)", False),
        (REUSED, f"{K} {SINGLE} r = Mul (x, k) y = Add (r, u) z = Relu (g)", False),
        (REUSED, f"{PAIR} r = Mul (v, k) y = Add (r, u) z = Relu (k)", False),
        (HOLDS, "k = Constant <value_int = 2> () r = Mul (n, k) y = Add (r, n)", True),
        (HOLDS, "k = Constant <value_int = 1> () r = Mul (n, k) y = Add (r, n)", False),
        (HOLDS, "k = Constant <value_float = 2.0> () r = Mul (x, k) y = Add (r, x)", False),
        (JOINED, "r = Relu (x) y = Concat <axis = 0> (r)", True),
        (JOINED, "r = Relu (x) q = Relu (u) y = Concat <axis = 0> (r, q)", True),
        (JOINED, "r = Relu (x) y = Concat <axis = 0> (r, u)", False),
        (JOINED, "r = Relu (x) y = Concat <axis = 0> (u, r)", False),
    ],
)  # fmt: skip
def test_refuses_the_last_node_of_a_pattern(pattern: dict[str, Any], nodes: str, *, is_found: bool) -> None:
    used = (
        *("Add", "Cast", "Concat", "Constant", "Identity", "If", "MatMul", "Mul", "Relu", "Sigmoid"),
        "Transpose",
    )
    name = pattern.get("node", "y")
    op_type = pattern["nodes"].partition(f"{name} = ")[2].partition(" ")[0]
    runtime = toy_runtime(
        operators={
            **{f"ai.onnx.{each}": [{"versions": [1, 20]}] for each in used},
            "com.microsoft.Transpose": [{"versions": [1, 1]}],
        },
        restrictions={f"ai.onnx.{op_type}": [{"reason": "a reason", "when": {"patterns": [pattern]}}]},
    )
    found = check_support(model(nodes, INPUTS), runtime)
    assert [each.reason for each in found] == (["toy-1.0 refuses the node: a reason"] if is_found else [])


def test_an_omitted_value_has_no_source() -> None:
    runtime = toy_runtime(
        operators={f"ai.onnx.{each}": [{"versions": [1, 20]}] for each in ("Add", "Identity", "Mul")},
        restrictions={"ai.onnx.Mul": [{"reason": "a reason", "when": {"patterns": [COMPUTED]}}]},
    )
    tested = model("r = Add (x, u) y = Mul (r, u)", INPUTS)
    tested.graph.node[0].input[1] = ""
    tested.graph.node.add(op_type="Identity", input=[""], output=[""])
    assert "a reason" not in str(check_support(tested, runtime))


def test_the_inputs_of_a_sum_are_checked_once_for_all_products(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = {"nodes": "m = MatMul (a, b) y = Sum (m, c)", "node": "m", "computed": ["c"]}
    runtime = toy_runtime(
        operators={f"ai.onnx.{each}": [{"versions": [1, 20]}] for each in ("MatMul", "Sum")},
        restrictions={"ai.onnx.MatMul": [{"reason": "a reason", "when": {"patterns": [pattern]}}]},
    )
    checked: list[str] = []
    is_allowed = PatternSearch._is_allowed

    def count(search: PatternSearch, name: str, value: str) -> bool:
        checked.append(name)
        return is_allowed(search, name, value)

    monkeypatch.setattr(PatternSearch, "_is_allowed", count)
    products = [f"m{position}" for position in range(100)]
    nodes = " ".join(f"{each} = MatMul (x, u)" for each in products)
    found = check_support(model(f"{nodes} y = Sum ({', '.join(products)})", INPUTS), runtime)
    assert found
    assert len(checked) < 10 * len(products)


@pytest.mark.parametrize(("outputs", "count"), [([], 0), (["t"], 1)])
def test_a_graph_output_is_not_inside_of_a_pattern_by_default(outputs: list[str], count: int) -> None:
    pattern = {"nodes": "t = Transpose (a) y = MatMul (t, b)", "shared": ["t"], "outputs": outputs}
    runtime = toy_runtime(
        operators={f"ai.onnx.{each}": [{"versions": [1, 20]}] for each in ("MatMul", "Transpose")},
        restrictions={"ai.onnx.MatMul": [{"reason": "a reason", "when": {"patterns": [pattern]}}]},
    )
    tested = model("t = Transpose (x) y = MatMul (t, u)", INPUTS)
    assert len(check_support(tested, runtime)) == 1
    tested.graph.output.add(name="t")
    assert len(check_support(tested, runtime)) == count


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ("y = Add (", "expected the name of a value"),
        ("<ir_version: 9> g () => () {}", "is a model"),
        (1, "valid string"),
    ],
)
def test_refuses_text_that_is_not_nodes(nodes: object, reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        from_plain_data(NodePattern, {"nodes": nodes})
