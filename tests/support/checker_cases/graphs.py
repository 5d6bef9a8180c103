"""Rules for graphs, initializers, and values that nodes read and produce."""

from __future__ import annotations

from typing import Any

from support.checker_cases.case import Case, add_message, repeat_first, set_field, value

RELU = "g (float[2] x) => (float[2] y) { y = Relu(x) }"
TWO = "g (float[2] x) => (float[2] y) { [first] a = Relu(x)  [second] y = Neg(a) }"
WEIGHT = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }"
INPUT_WEIGHT = "g (float[2] x, float[2] w = {1, 2}) => (float[2] y) { y = Add(x, w) }"
BRANCH = """g (float[2] x, bool c) => (float[2] y) {
  y = If (c) <
    then_branch = t () => (float[2] p) { p = Relu(x) },
    else_branch = e () => (float[2] q) <float[2] w = {1, 2}> { q = Add(x, w) }
  >
}"""
SEQUENCE = "g (seq(float[N]) x) => (seq(float[N]) y) { y = Identity(x) }"
DIMENSION = "graph.input[0].type.tensor_type.shape.dim[0]"
ELEMENT = "graph.input[0].type.sequence_type.elem_type.tensor_type.shape.dim[0]"
THEN, ELSE = "graph.node[0].attribute[0].g", "graph.node[0].attribute[1].g"
LOOP = """g (int64 m, bool c, float[2] x) => (float[2] y) {
  y = Loop (m, c, x) <body = b (int64 i, bool go, float[2] before) => (bool on, float[2] after) {
    on = Identity(go)
    after = Relu(before)
  }>
}"""
BODY = "graph.node[0].attribute[0].g"
TOP = """g (float[2] x) => (float[2] y) <int64[1] k = {1}> {
  y, i = TopK <axis = 0> (x, k)
}"""
OLD_WEIGHT = """<ir_version: 3, opset_import: ["": 8]>
g (float[2] x, float[2] w = {1, 2}) => (float[2] y) { y = Add(x, w) }"""
OLD_BRANCH = """<ir_version: 3, opset_import: ["": 8]>
g (float[2] x, bool c) => (float[2] y) {
  y = If (c) <then_branch = t () => (float[2] p) { p = Relu(x) }, else_branch = e () => (q) { q = Neg(x) }>
}"""


def nested(model: Any, levels: int = 70) -> None:
    """Nest graphs more deeply than protobuf can parse but programs can build."""
    graph = model.graph.node[0].attribute[0].g
    for _ in range(levels):
        graph.node.add().CopyFrom(model.graph.node[0].__class__(op_type="If", input=["c"], output=["z"]))
        attribute = graph.node[-1].attribute.add(name="then_branch", type=5)
        attribute.g.name = "deeper"
        graph = attribute.g


CASES = (
    Case("graph.name", RELU, set_field("graph.name", None), "of the model"),
    Case("graph.name", BRANCH, set_field(f"{THEN}.name", ""), "of a branch"),
    Case("graph.depth", BRANCH, nested),
    Case("graph.input-unique", RELU, repeat_first("graph.input")),
    Case("graph.output-made", RELU, set_field("graph.output[0].name", "z"), "an unknown value"),
    Case(
        "graph.output-made",
        BRANCH,
        set_field(f"{THEN}.output[0].name", "x"),
        "a value of the enclosing graph",
    ),
    Case("graph.output-repeated", RELU, repeat_first("graph.output")),
    Case("initializer.name", WEIGHT, set_field("graph.initializer[0].name", None)),
    Case("initializer.unique", WEIGHT, repeat_first("graph.initializer")),
    Case("initializer.is-input", OLD_WEIGHT, lambda m: m.graph.input.pop(), "of the model"),
    Case(
        "initializer.is-input",
        OLD_BRANCH,
        add_message(f"{THEN}.initializer", name="w", data_type=1, dims=[1], float_data=[0]),
        "of a branch",
    ),
    Case(
        "initializer.is-no-input",
        LOOP,
        add_message(f"{BODY}.initializer", name="before", data_type=1, dims=[2], float_data=[0, 0]),
    ),
    Case(
        "initializer.type",
        INPUT_WEIGHT,
        set_field("graph.input[1].type.tensor_type.elem_type", 7),
    ),
    Case(
        "initializer.shape",
        INPUT_WEIGHT,
        set_field("graph.input[1].type.tensor_type.shape.dim[0].dim_value", 3),
        "a different size",
    ),
    Case(
        "initializer.shape",
        INPUT_WEIGHT,
        add_message("graph.input[1].type.tensor_type.shape.dim"),
        "a different rank",
    ),
    Case(
        "initializer.unused",
        WEIGHT,
        add_message("graph.initializer", name="v", data_type=1, dims=[1], float_data=[0]),
    ),
    Case("node.name-unique", TWO, set_field("graph.node[1].name", "first")),
    Case("name.identifier", TWO, set_field("graph.node[1].name", "layer/1"), "of a node"),
    Case("name.identifier", RELU, add_message("graph.input", name="1"), "of an input"),
    Case("name.identifier", RELU, set_field("graph.name", "main graph"), "of a graph"),
    Case("name.identifier", BRANCH, set_field(f"{THEN}.name", "then-branch"), "of a branch"),
    Case("name.identifier", RELU, add_message("graph.node[0].attribute", name="__a-b"), "of an attribute"),
    Case("name.identifier", RELU, set_field(f"{DIMENSION}.dim_param", "batch size"), "of a dimension"),
    Case("name.identifier", RELU, set_field(f"{DIMENSION}.dim_param", "*"), "of all other dimensions"),
    Case("name.identifier", SEQUENCE, set_field(f"{ELEMENT}.dim_param", "1"), "of a dimension in a sequence"),
    Case("name.identifier", WEIGHT, add_message("graph.initializer", name="w.0"), "of an initializer"),
    Case("graph.name-unique", BRANCH, set_field(f"{THEN}.name", "e"), "of branches"),
    Case("graph.name-unique", LOOP, set_field(f"{BODY}.name", "g"), "of a body"),
    Case(
        "annotation.tensor",
        RELU,
        lambda m: m.graph.quantization_annotation.add(tensor_name="x").quant_parameter_tensor_names.add(
            key="SCALE_TENSOR", value="nowhere"
        ),
    ),
    Case("value.order", TWO, lambda m: m.graph.node.sort(key=lambda node: node.name, reverse=True)),
    Case("value.order", TWO, set_field("graph.node[0].input", ["y"]), "a cycle"),
    Case("value.unknown", RELU, set_field("graph.node[0].input", ["z"]), "in the main graph"),
    Case("value.unknown", BRANCH, set_field(f"{THEN}.node[0].input", ["z"]), "in a branch"),
    Case("value.unique", TWO, set_field("graph.node[1].output", ["a"]), "by two nodes"),
    Case("value.unique", RELU, set_field("graph.node[0].output", ["x"]), "by a node and an input"),
    Case("value.unique", TOP, set_field("graph.node[0].output", ["y", "y"]), "by a node twice"),
    Case("value.shadowing", BRANCH, set_field(f"{THEN}.node[0].output", ["x"])),
    Case("value.shadowing-input", LOOP, set_field(f"{BODY}.input[2].name", "x"), "by an input"),
    Case("value.shadowing-input", BRANCH, set_field(f"{ELSE}.initializer[0].name", "c"), "by an initializer"),
    Case("value.name", RELU, set_field("graph.input[0].name", None)),
    Case("value.type", RELU, set_field("graph.output[0].type", None), "no type"),
    Case(
        "value.type",
        RELU,
        set_field("graph.output[0].type.tensor_type.elem_type", 0),
        "of undefined elements",
    ),
    Case(
        "value.type", RELU, set_field("graph.output[0].type.tensor_type.elem_type", 99), "of unknown elements"
    ),
    Case(
        "value.type",
        RELU,
        lambda m: m.graph.output[0].type.sequence_type.SetInParent(),
        "a sequence without an element type",
    ),
    Case(
        "value.type",
        RELU,
        lambda m: m.graph.output[0].type.map_type.value_type.tensor_type.SetInParent(),
        "a map without a key type",
    ),
    Case("value.shape", RELU, set_field("graph.output[0].type.tensor_type.shape", None)),
    Case("value.stated-type", TWO, add_message("graph.value_info", name="a", type={"tensor_type": {}})),
    Case("value.dimension", RELU, set_field("graph.input[0].type.tensor_type.shape.dim[0].dim_value", -1)),
    Case(
        "value.stated-once", TWO, lambda m: [add_message("graph.value_info", name="a")(m) for _ in range(2)]
    ),
    Case(
        "value.stated-alike",
        RELU,
        lambda m: m.graph.value_info.add().MergeFromString(value("x", 7).SerializeToString()),
    ),
    Case("value.stated-known", TWO, add_message("graph.value_info", name="z")),
    Case("value.stated-known", TWO, add_message("graph.value_info"), "without a name"),
)
