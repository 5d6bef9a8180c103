"""`shape.inputs` reports only nodes that onnxruntime cannot run."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.checker_cases.case import violated_rules
from support.execution import loads_and_runs

from opshift.checker.check import check

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
OPERATORS: dict[str, tuple[int, dict[str, Any]]] = {
    "Add": (2, {}),
    "Max": (3, {}),
    "Where": (3, {}),
    "MatMul": (2, {}),
    "Gemm": (3, {}),
    "Gemm, transposed": (2, {"transA": 1, "transB": 1}),
    "Concat": (2, {"axis": 0}),
    "Concat, last axis": (3, {"axis": -1}),
    "Conv": (2, {}),
    "Conv, grouped": (2, {"group": 2}),
    "ConvTranspose": (2, {}),
    "MaxPool": (1, {"kernel_shape": [1, 1]}),
    "BatchNormalization": (5, {}),
    "Transpose": (1, {"perm": [1, 0, 2]}),
    "Reshape": (1, {}),
    "Expand": (1, {}),
    "Squeeze": (1, {}),
    "Split": (1, {}),
}
LISTS = {"Reshape": (-1, 0, 1, 2, 3), "Expand": (1, 2, 3), "Squeeze": (0, 1), "Split": (0, 1, 2)}
"""Elements of the second input of operators for which it is a list."""


def random_model(name: str, seed: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a model of one node with inputs of random shapes, and values for them."""
    rng = random.Random(f"{name}{seed}")
    op_type, (count, attributes) = name.split(",")[0], OPERATORS[name]
    ranks = (1, 3, 4) if op_type in ("Conv", "ConvTranspose", "MaxPool") else (0, 1, 2, 3)
    shared = rng.choices((1, 2, 3), k=4)
    inputs, feeds = [], {}
    rank = rng.choice(ranks)
    for position in range(count):
        is_statistic = op_type == "BatchNormalization" and position
        rank = 1 if is_statistic else rng.choice((rank, rank, rng.choice(ranks)))
        shape = [rng.choice((*shared, size)) if rng.random() < 0.4 else size for size in shared[:rank]]
        is_condition = op_type == "Where" and not position
        feeds[f"i{position}"] = np.ones(shape, bool if is_condition else np.float32)
        declared = [f"d{position}{axis}" if rng.random() < 0.2 else size for axis, size in enumerate(shape)]
        kind = TensorProto.BOOL if is_condition else FLOAT
        inputs.append(helper.make_tensor_value_info(f"i{position}", kind, declared))
    initializers = []
    if op_type in LISTS:
        listed = rng.choices(LISTS[op_type], k=2 if op_type == "Split" else rng.randint(1, 3))
        initializers.append(numpy_helper.from_array(np.array(listed, np.int64), "list"))
    outputs = ["y", "z"] if op_type == "Split" else ["y"]
    names = [*feeds, *(tensor.name for tensor in initializers)]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, outputs, **attributes)],
        "g",
        inputs,
        [helper.make_tensor_value_info(output, FLOAT, None) for output in outputs],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), feeds


@pytest.mark.parametrize("name", OPERATORS)
def test_reports_only_shapes_that_do_not_run(name: str) -> None:
    found = 0
    for seed in range(60):
        model, feeds = random_model(name, seed)
        if "shape.inputs" in violated_rules(model):
            found += 1
            assert not loads_and_runs(model, feeds), onnx.printer.to_text(model)
    assert found, "no random shapes are wrong"


def test_reports_only_equations_that_numpy_refuses() -> None:
    """Some of these equations crash onnxruntime."""
    rng = random.Random(0)
    found = 0
    for _ in range(100):
        terms = [
            "".join(rng.choices(["i", "j", "...", ".", "1", " "], k=rng.randint(0, 3))) for _ in range(3)
        ]
        equation = rng.choice((f"{terms[0]},{terms[1]}", f"{terms[0]}->{terms[2]}", ",".join(terms)))
        feeds = [np.ones(rng.choices((1, 2), k=rng.randint(0, 3))) for _ in range(rng.randint(1, 2))]
        inputs = [
            helper.make_tensor_value_info(f"x{position}", TensorProto.DOUBLE, each.shape)
            for position, each in enumerate(feeds)
        ]
        node = helper.make_node("Einsum", [each.name for each in inputs], ["y"], equation=equation)
        outputs = [helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)]
        graph = helper.make_graph([node], "g", inputs, outputs)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        if "shape.inputs" in violated_rules(model):
            found += 1
            with pytest.raises((ValueError, IndexError)):
                np.einsum(equation.replace(" ", ""), *feeds)
    assert found > 50


def test_ignores_branches_for_other_shapes() -> None:
    """A branch that never runs may not fit the shapes of the inputs."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[2,3] x, bool c) => (float[?,?] y) {
          y = If (c) <
            then_branch = t () => (float[?,?] p) { p = MatMul(x, x) },
            else_branch = e () => (float[?,?] q) { q = Relu(x) }
          >
        }"""
    )
    assert violated_rules(model) == set()


def test_reports_shapes_in_body_of_loop() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (int64 m, bool c, float[2,3] x) => (float[2,3] y) {
          y = Loop (m, c, x) <body = b (int64 i, bool go, float[2,3] s) => (bool on, float[2,3] t) {
            on = Identity(go)  t = MatMul(s, x)
          }>
        }"""
    )
    assert "shape.inputs" in violated_rules(model)


def test_ignores_functions_that_replace_operators() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[2] x, float[3] w) => (float[2] y) { y = Add(x, w) }
        <domain: "", opset_import: ["": 17]> Add (a, b) => (c) { c = Identity(a) }"""
    )
    assert not {"shape.inputs", "shape.inferred"} & violated_rules(model)


FUNCTIONS = '<ir_version: 10, opset_import: ["": 21, "acme": 1]>\n'
ADD = '<domain: "acme", opset_import: ["": 21]> F (a, b) => (c) { c = Add(a, b) }\n'
TRANSPOSE = """<domain: "acme", opset_import: ["": 21]> F <perm>(a) => (b) {
  b = Transpose <perm: ints = @perm> (a)
}"""
MATMUL = '<domain: "acme", opset_import: ["": 21]> F (a) => (b) { b = MatMul(a, a) }\n'


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("g (float[N,3] x, float[3] w) => (float[N,3] y) { y = acme.F(x, w) }\n" + ADD, set()),
        ("g (float[N,3] x, float[4] w) => (float[N,3] y) { y = acme.F(x, w) }\n" + ADD, {"shape.inputs"}),
        ("g (float[N,3] x, float[3] w) => (float[3] y) { y = acme.F(x, w) }\n" + ADD, {"shape.inferred"}),
        (
            """g (float[N,3] x, float[3] w, float[5] v) => (float[N,3] y) {
              z = acme.F(x, w)  y = Add(z, v)
            }\n"""
            + ADD,
            {"shape.inputs"},
        ),
        (
            """g (float[N,3] x, float[3] w, float[1,3] v) => (float[N,3] y) {
              z = acme.F(x, w)  y = acme.F(z, v)
            }\n"""
            + ADD,
            set(),
        ),
        ("g (float[N,3] x, int64[3] w) => (float[N,3] y) { y = acme.F(x, w) }\n" + ADD, {"type.variable"}),
        ("g (float[2,3] x) => (float[3,2] y) { y = acme.F <perm = [1,0]> (x) }\n" + TRANSPOSE, set()),
        (
            "g (float[2,3] x) => (float[3,2] y) { y = acme.F <perm = [1,0,2]> (x) }\n" + TRANSPOSE,
            {"shape.inputs"},
        ),
        (
            """g (float[2,3] x, bool c) => (float[?,?] y) {
              y = If (c) <
                then_branch = t () => (float[?,?] p) { p = acme.F(x) },
                else_branch = e () => (float[?,?] q) { q = Relu(x) }
              >
            }\n"""
            + MATMUL,
            set(),
        ),
    ],
    ids=[
        "valid",
        "input",
        "output",
        "value",
        "calls differ",
        "type",
        "attribute",
        "wrong attribute",
        "branch",
    ],
)
def test_checks_shapes_through_calls(text: str, rules: set[str]) -> None:
    assert violated_rules(onnx.parser.parse_model(FUNCTIONS + text)) == rules


def test_findings_of_functions_keep_the_order_of_the_model() -> None:
    """A function is checked after its callers, which may follow it in the model."""
    model = onnx.parser.parse_model(
        FUNCTIONS
        + """g (float[2,3] x) => (float[2,3] y) { y = acme.G(x) }
        <domain: "acme", opset_import: ["": 21]> F (a) => (b) { b = MatMul(a, a) }
        <domain: "acme", opset_import: ["": 21, "acme": 1]> G (a) => (d) { b = acme.F(a)  d = Gemm(a, a) }
        """
    )
    places = [found.place for found in check(model) if found.rule == "shape.inputs"]
    assert places == ["function acme.F, node MatMul -> b", "function acme.G, node Gemm -> d"]


@pytest.mark.parametrize(
    "functions",
    [
        '<domain: "acme", opset_import: ["": 21, "acme": 1]> F (a) => (b) { b = acme.F(a) }',
        ADD.replace("(a, b) => (c) { c = Add(a, b) }", "(a) => (b) { b = Relu(a) }") * 2,
        '<domain: "acme", opset_import: ["": 21, "ai.onnx": 20]> F (a) => (b) { b = Relu(a) }',
        '<domain: "acme"> F (a) => (b) { b = Relu(a) }',
    ],
    ids=["recursive", "repeated", "two opsets", "no opset"],
)
def test_checks_models_with_invalid_functions(functions: str) -> None:
    text = "g (float[N,3] x) => (float[3] y) { y, z = acme.F(x, x) }\n"
    found = violated_rules(onnx.parser.parse_model(FUNCTIONS + text + functions))
    assert found
    assert "model.readable" not in found
