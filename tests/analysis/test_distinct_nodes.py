"""Copies of models with one node of each kind, and the answers that they make faster."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import onnx
import onnx.parser
import pytest
from onnx.compose import add_prefix_graph, merge_graphs
from support.published import Case, published
from support.toy_runtime import toy_runtime

import opshift
from opshift import DoesNotFit, fit, runs
from opshift.analysis import runs as runs_module
from opshift.analysis.distinct_nodes import with_distinct_nodes
from opshift.analysis.fit import cheapest
from opshift.converter.convert import try_convert
from opshift.model.messages import ModelProto
from opshift.registry.registry import default_registry
from opshift.registry.runtimes.files import runtime_files

HEADER = '<ir_version: 8, opset_import: ["": 17]> g '

BRANCHES = (
    "If (k) <then_branch = t () => (float[2] u) {{ u = Relu({0}) }},"
    " else_branch = e () => (float[2] v) {{ v = Abs({0}) }}>"
)

KEPT: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "the same nodes": (
        "(float[2] x) => (float[2] y) { a = Relu(x) b = Relu(x) c = Relu(x) y = Sum(a, b, c) }",
        ("a", "y"),
    ),
    "a chain: the first node reads an input": (
        "(float[2] x) => (float[2] y) { a = Relu(x) b = Relu(a) c = Relu(b) d = Relu(c) y = Abs(d) }",
        ("a", "b", "y"),
    ),
    "outputs of the model": (
        "(float[2] x) => (float[2] a, float[2] b, float[2] c) { a = Relu(x) b = Relu(x) c = Relu(x) }",
        ("a",),
    ),
    "equal subgraphs": (
        f"(bool k, float[2] x) => (float[2] a, float[2] b) {{"
        f" a = {BRANCHES.format('x')} b = {BRANCHES.format('x')} }}",
        ("a",),
    ),
    "outputs of a variadic operator": (
        "(float[6] x) => (float[2] a)"
        "{ p, q, r = Split(x) u = Relu(p) v = Relu(q) w = Relu(r) a = Sum(u, v, w) }",
        ("p", "u", "a"),
    ),
}
"""Models, each with the outputs of the nodes that the copy keeps."""

DIFFERENT: Mapping[str, str] = {
    "attributes": "(float[2] x) => (float[2] a, float[2] b)"
    "{ a = LeakyRelu<alpha = 0.1>(x) b = LeakyRelu<alpha = 0.2>(x) }",
    "shapes": "(float[2] x, float[3] z) => (float[2] a, float[3] b) { a = Relu(x) b = Relu(z) }",
    "types": "(float[2] x, double[2] z) => (float[2] a, double[2] b) { a = Relu(x) b = Relu(z) }",
    "constants": "(float[2] x) => (float[2] a, float[2] b) <int64[1] k = {0}, int64[1] l = {1}>"
    "{ a = Unsqueeze(x, k) b = Unsqueeze(x, l) }",
    "omitted outputs": "(float[2] x) => (float[2] a, float[2] b, bool[2] m)"
    "{ a, m = Dropout(x) b = Dropout(x) }",
    "subgraphs": f"(bool k, float[2] x, float[2] z) => (float[2] a, float[2] b) {{"
    f" a = {BRANCHES.format('x')} b = {BRANCHES.format('z')} }}",
    "values that subgraphs read": "(bool k, float[2] x) => (float[2] a) { p = Relu(x) q = Relu(x)"
    " a = If (k) <then_branch = t () => (float[2] u) { u = Neg(p) },"
    " else_branch = e () => (float[2] v) { v = Abs(q) }> }",
}
"""Models whose nodes are all of different kinds."""


def _parse(text: str) -> ModelProto:
    return ModelProto.FromString(onnx.parser.parse_model(HEADER + text).SerializeToString())


@pytest.mark.parametrize("name", KEPT)
def test_one_node_of_each_kind_remains(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opshift.analysis.distinct_nodes.MAX_KEPT", 0.9)
    text, kept = KEPT[name]
    copy = with_distinct_nodes(_parse(text), default_registry())
    assert copy is not None
    assert tuple(each.output[0] for each in copy.graph.node) == kept
    opshift.check(copy)


@pytest.mark.parametrize("name", DIFFERENT)
def test_nodes_that_conversions_may_treat_differently_remain(name: str) -> None:
    assert with_distinct_nodes(_parse(DIFFERENT[name]), default_registry()) is None


def test_initializers_of_removed_nodes_are_not_copied() -> None:
    text = "(float[2] x) => (float[2] y) <float[2] k = {1, 2}, float[2] l = {1, 2}, float[2] unread = {3, 4}>"
    body = "{ a = Add(x, k) b = Add(x, l) c = Add(x, l) d = Add(x, l) e = Add(x, k) y = Sum(a, b, c, d, e) }"
    copy = with_distinct_nodes(_parse(text + body), default_registry())
    assert copy is not None
    assert [each.name for each in copy.graph.initializer] == ["k", "unread"]


COPIES, SAMPLE = 3, 40


def _repeated(case: Case) -> onnx.ModelProto:
    """Return a model with copies of a node, which read separate inputs."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = case.model.graph
    for number in range(COPIES):
        graph = merge_graphs(graph, add_prefix_graph(case.model.graph, f"copy_{number}/"), [])
    model.graph.CopyFrom(graph)
    return model


def _answers(model: onnx.ModelProto, runtime: str) -> tuple[Any, ...]:
    try:
        fitted = fit(model, runtime)
        return fitted.model.SerializeToString(deterministic=True), fitted.report, runs(model)
    except DoesNotFit as error:
        return str(error), error.missing, runs(model)


def test_answers_do_not_depend_on_the_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(0)
    cases = [case for of_operator in published().values() for case in of_operator]
    for case in random.sample(cases, SAMPLE):
        model, runtime = _repeated(case), random.choice(list(runtime_files()))
        answers = _answers(model, runtime)
        with monkeypatch.context() as context:
            for module in (runs_module, cheapest):
                context.setattr(module, "with_distinct_nodes", lambda *_: None)
            assert _answers(model, runtime) == answers, f"{model.graph.node[0].op_type} in {runtime}"


PATTERN = {"nodes": "c = Cast (x) a = Abs (c) s = Sign (a) y = Neg (s)", "shared": ["s"]}
KERNELS: Mapping[str, Any] = {
    f"ai.onnx.{name}": [{"versions": versions}]
    for name, versions in {
        "Abs": [1, 21], "Add": [1, 21], "Cast": [1, 21], "Constant": [1, 21], "Erf": [1, 21], "Neg": [1, 21],
        "Relu": [6, 12], "Sign": [1, 21],
    }.items()
}  # fmt: skip


@pytest.mark.parametrize(
    ("source", "when"),
    [
        ("c = Cast <to = 7> (i)", {"computed_by": {"X": ["Cast"]}}),
        ("c = Cast <to = 7> (i)", {"depends_on": {"X": ["Cast"]}}),
        ("c = Cast <to = 7> (i)", {"patterns": [PATTERN]}),
        (
            "k = Constant <value_floats = [1.0, 2.0]> () h = Erf (k) c = Cast <to = 7> (h)",
            {"constant": ["X"]},
        ),
    ],
)
def test_verdicts_do_not_depend_on_the_other_runtimes(source: str, when: dict[str, Any]) -> None:
    """The copy feeds Neg from Cast, because the producers of the inputs of the Sign nodes are equal."""
    count = 20
    outputs = ", ".join(f"float[2] r{number}" for number in range(count))
    nodes = " ".join(f"r{number} = Relu (x)" for number in range(count))
    model = onnx.parser.parse_model(f"""
        <ir_version: 7, opset_import: ["" : 14]>
        g (int32[2] i, int64[2] m, float[2] x) => (int64[2] o, int64[2] p, {outputs}) {{
            {source} a = Abs (c) b = Abs (m) d = Sign (a) e = Sign (b) o = Add (d, m) p = Neg (e) {nodes}
        }}
    """)
    failing = {"ai.onnx.Abs": [{"reason": "in no opset", "when": {"opsets": [1, 25]}}]}
    others = [
        toy_runtime(version=f"0.{number}", operators=KERNELS, restrictions=failing)
        for number in range(runs_module.MIN_FAILURES + 1)
    ]
    tested = toy_runtime(
        operators=KERNELS, restrictions={"ai.onnx.Neg": [{"reason": "not supported", "when": when}]}
    )
    (alone,) = runs(model, tested).results
    assert (alone.verdict, alone.conversion and dict(alone.conversion.opsets)) == (
        "after conversion",
        {"ai.onnx": 12},
    )
    assert runs(model, [*others, tested]).results[-1] == alone


def test_functions_that_nothing_calls_are_not_copied() -> None:
    functions = "".join(
        f'<domain: "l", opset_import: ["": 17, "l": 1]> {name} (a) => (b) {{ {nodes} }}'
        for name, nodes in {
            "Outer": "b = l.Inner(a)",
            "Inner": "b = Relu(a)",
            "Unused": "b = l.Other(a)",
            "Other": "b = Abs(a)",
        }.items()
    )
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17, "l": 1]> g (float[2] x) => (float[2] y) '
        "{ a = l.Outer(x) b = l.Outer(x) c = l.Outer(x) d = l.Outer(x) y = Sum(a, b, c, d) }" + functions
    )
    copy = with_distinct_nodes(ModelProto.FromString(model.SerializeToString()), default_registry())
    assert copy is not None
    assert [each.name for each in copy.functions] == ["Outer", "Inner"]


def test_functions_that_nothing_calls_are_converted_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the copy lacks no nodes, its failures are certain even if restrictions concern distant nodes."""
    function = '<domain: "l", opset_import: ["": 1]> F{} (a) => (b) {{ b = Abs(a) }}'
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 1]> g (float16[1, 1, 1] x, float[1, 1, 1] w) => (float y) '
        "{ y = GRU <hidden_size = 1> (x, w, w) }" + "".join(map(function.format, range(9)))
    )
    converted: list[int] = []

    def convert(source: ModelProto, *rest: Any, **named: Any) -> Any:
        converted.append(len(source.functions))
        return try_convert(source, *rest, **named)

    monkeypatch.setattr(runs_module, "try_convert", convert)
    runs(model)
    assert converted.count(len(model.functions)) < converted.count(0)
