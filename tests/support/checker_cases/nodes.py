"""Rules for nodes, their attributes, their graphs and the types of their values."""

from __future__ import annotations

from typing import Any

from support.checker_cases.case import Case, Change, add_message, apply_all, field_at, repeat_first, set_field

RELU = "g (float[2] x) => (float[2] y) { y = Relu(x) }"
CLIP = "g (float[2] x) => (float[2] y) <float low = {0}> { y = Clip(x, low) }"
SOFTMAX = "g (float[2] x) => (float[2] y) { y = Softmax <axis = 0> (x) }"
CAST = "g (float[2] x) => (int64[2] y) { y = Cast <to = 7> (x) }"
ADD = "g (float[2] x, int64[2] n) => (float[2] y) { y = Add(x, x) }"
DROPOUT = "g (float[2] x) => (float[2] y, bool[2] z) { y, z = Dropout(x) }"
SHAPE = "g (float[2] x) => (int64[1] y) { y = Shape(x) }"
CONSTANT = "g () => (float[1] y) { y = Constant <value = float[1] {1}> () }"
TYPE = "g () => (optional(float[2]) y) { y = Optional <type: type_proto = float[2]> () }"
PAD = 'g (float[2] x, int64[2] p) => (float[4] y) { y = Pad <mode = "edge"> (x, p) }'
TYPE_CODE = "g (float[2] x) => (double[2] y) { y = Cast <to = 11> (x) }"
SQUARE = "g (float[2, 2] x) => (int64[0] y) { z = Det (x)  y = Shape (z) }"
SQUARE_INPUT = "graph.input[0].type.tensor_type.shape"
POOL = (
    "g (float[1,1,4,4] x) => (float[1,1,N,N] y) { y = MaxPool <kernel_shape = [2,2], pads = [0,0,0,0]> (x) }"
)
RESIZE = """g (float[1,1,2,2] x, float[4] s) => (float[1,1,N,N] y) {
  y = Resize <coordinate_transformation_mode = "asymmetric"> (x, , s)
}"""
NORMALIZATION = """g (float[1,2,3] x, float[2] s) => (float[1,2,3] y) {
  y = BatchNormalization <training_mode: int = 0> (x, s, s, s, s)
}"""
TRAINING = """g (float[1,2,3] x, float[2] s) => (float[1,2,3] y) {
  y, m, v = BatchNormalization <training_mode: int = 1> (x, s, s, s, s)
}"""
MAX = "g (float[2] x) => (float[2] y) { y = Max(x, x, x) }"
OLD_CONSTANT = """<ir_version: 10, opset_import: ["": 8]>
g () => (float[1] y) { y = Constant <value = float[1] {1}> () }"""
MODES = """<ir_version: 10, opset_import: ["": 23]> g (float[1,2,3,4] x) => (float[1,2,3,4] y) {
  y = Attention <qk_matmul_output_mode = 0> (x, x, x)
}"""
GATED = """<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>
g (float[2, 3] x) => (float[2, 3] y) { y = com.microsoft.GatedAdd (x, x, x) }"""
OLD = '<ir_version: 10, opset_import: ["": 8]> g (float[2] x) => (float[2] y) { y = Relu(x) }'
ML = """<ir_version: 10, opset_import: ["": 21, "ai.onnx.ml": 4]>
g (float[2] x) => (float[2] y) { y = ai.onnx.ml.Binarizer(x) }"""
LABELS = """<ir_version: 10, opset_import: ["": 21, "ai.onnx.ml": 4]>
g (int64[2] x) => (string[2] y) {
  y = ai.onnx.ml.LabelEncoder <keys_int64s = [0, 1], values_strings = ["a", "b"]> (x)
}"""
CALLING = """<ir_version: 10, opset_import: ["": 21, "acme": 1]>
g (float[2] x) => (float[2] y) { y = acme.F:big(x) }
<domain: "acme", overload: "big", opset_import: ["": 21]> F (a) => (b) { b = Relu(a) }
"""
REFERRING = """<ir_version: 10, opset_import: ["": 21, "acme": 1]>
g (float[2] x) => (float[2] y) { y = acme.F <slope = 0.5> (x) }
<domain: "acme", opset_import: ["": 21]> F <slope> (a) => (b) { b = LeakyRelu <alpha: float = @slope> (a) }
"""
VENDOR = """<ir_version: 10, opset_import: ["": 21, "com.acme": 1]>
g (float[2] x) => (float[2] y) { y = com.acme.Scale(x) }"""
IMPORT_ACME = add_message("opset_import", domain="com.acme", version=1)
GATHER = "g (float[2,3] x, int64[1] i) => (float[2,1] y) { y = Gather <axis = 1> (x, i) }"
SQUEEZE = "g (float[2,1] x) => (float[2] y) <int64[1] a = {1}> { y = Squeeze (x, a) }"
IF = """g (float[2] x, bool c) => (float[2] y) {
  y = If (c) <then_branch = t () => (float[2] p) { p = Relu(x) }, else_branch = e () => (q) { q = Neg(x) }>
}"""
LOOP = """g (int64 m, bool c, float[2] x) => (float[2] y) {
  y = Loop (m, c, x) <body = b (int64 i, bool go, float[2] before) => (bool on, float[2] after) {
    on = Identity(go)
    after = Relu(before)
  }>
}"""
SCAN = """g (float[2] x, float[3,2] s) => (float[2] y, float[3,2] z) {
  y, z = Scan <num_scan_inputs = 1, body = b (float[2] a, float[2] e) => (float[2] o, float[2] p) {
    o = Add(a, e)
    p = Identity(e)
  }> (x, s)
}"""
OLD_SCAN = """<ir_version: 10, opset_import: ["": 8]>
g (float[1,2] x, float[1,3,2] s) => (float[1,2] y) {
  y = Scan <num_scan_inputs = 1, body = b (float[2] a, float[2] e) => (float[2] o) { o = Add(a, e) }> (, x, s)
}"""
THEN = "graph.node[0].attribute[0].g"
ATTRIBUTE, FUNCTION_ATTRIBUTE = "graph.node[0].attribute[0]", "functions[0].node[0].attribute[0]"


def set_operator(op_type: str) -> Change:
    """Return a change of the first node's operator."""
    return set_field("graph.node[0].op_type", op_type)


def nest_optional(path: str) -> Change:
    """Return a change that wraps a type into two optionals."""

    def change(model: Any) -> None:
        declared = field_at(model, path)
        inner = type(declared).FromString(declared.SerializeToString())
        declared.Clear()
        declared.optional_type.elem_type.optional_type.elem_type.CopyFrom(inner)

    return change


CASES = (
    Case("node.op-type", RELU, set_field("graph.node[0].op_type", None)),
    Case(
        "node.values",
        RELU,
        apply_all(set_field("graph.node[0].input", []), set_field("graph.node[0].output", [])),
    ),
    Case("node.domain", ML, lambda m: m.opset_import.pop(), "of an operator"),
    Case("node.domain", CALLING, lambda m: m.opset_import.pop(), "of a function"),
    Case("node.operator", RELU, set_operator("Rule"), "unknown"),
    Case("node.operator", OLD, set_operator("Gelu"), "not yet introduced"),
    Case("node.operator", RELU, set_operator("Crop"), "removed"),
    Case("node.deprecated", RELU, set_operator("Scatter")),
    Case("node.experimental", OLD, set_operator("ParametricSoftplus")),
    Case("node.overload", CALLING, set_field("graph.node[0].overload", "small")),
    Case("node.input-count", CLIP, set_field("graph.node[0].input", []), "too few"),
    Case("node.input-count", CLIP, set_field("graph.node[0].input", ["x", "low", "low", "low"]), "too many"),
    Case(
        "node.input-count", RELU, set_field("graph.node[0].input", ["x", ""]), "too many with an omitted one"
    ),
    Case("node.output-count", DROPOUT, set_field("graph.node[0].output", []), "too few"),
    Case("node.output-count", DROPOUT, set_field("graph.node[0].output", ["y", "z", "more"]), "too many"),
    Case(
        "node.output-count",
        NORMALIZATION,
        set_field("graph.node[0].output", ["y", "m"]),
        "some outputs of training mode",
    ),
    Case("node.input-missing", CLIP, set_field("graph.node[0].input", ["", "low"])),
    Case("node.input-missing", MAX, set_field("graph.node[0].input", ["x", "", "x"]), "among several"),
    Case("node.input-missing", MAX, set_field("graph.node[0].input", ["x", "x", ""]), "the last of several"),
    Case("node.input-missing", MAX, set_field("graph.node[0].input", [""]), "the only one of several"),
    Case("node.output-mode", NORMALIZATION, set_field("graph.node[0].output", ["y", "m", "v"]), "inference"),
    Case(
        "node.output-mode",
        NORMALIZATION,
        apply_all(
            set_field("graph.node[0].attribute", None), set_field("graph.node[0].output", ["y", "m", "v"])
        ),
        "inference by default",
    ),
    Case("node.output-mode", TRAINING, set_field("graph.node[0].output", ["y"]), "training without outputs"),
    Case(
        "node.output-mode", TRAINING, set_field("graph.node[0].output", ["y", "", "v"]), "training with a gap"
    ),
    Case("node.output-missing", DROPOUT, set_field("graph.node[0].output", ["", "z"])),
    Case("node.attribute-unique", SOFTMAX, repeat_first("graph.node[0].attribute")),
    Case("node.attribute-missing", CAST, set_field("graph.node[0].attribute", None)),
    Case("node.attribute-choice", CONSTANT, set_field("graph.node[0].attribute", None), "none"),
    Case(
        "node.attribute-choice",
        CONSTANT,
        add_message("graph.node[0].attribute", name="value_int", type=2, i=1),
        "two",
    ),
    Case("node.axis", SOFTMAX, set_field(f"{ATTRIBUTE}.i", 1), "attribute"),
    Case("node.axis", GATHER, set_field(f"{ATTRIBUTE}.i", -3), "negative"),
    Case("node.axis", SQUEEZE, set_field("graph.initializer[0].int64_data", [2]), "constant input"),
    Case("node.attribute-known", SOFTMAX, set_field(f"{ATTRIBUTE}.name", "axes")),
    Case(
        "node.attribute-type",
        SOFTMAX,
        apply_all(set_field(f"{ATTRIBUTE}.i", None), set_field(f"{ATTRIBUTE}.type", 7)),
    ),
    Case("node.attribute-value", PAD, set_field(f"{ATTRIBUTE}.s", b"edgy"), "not an allowed string"),
    Case(
        "node.attribute-value",
        POOL,
        set_field("graph.node[0].attribute[1].ints", [0, 0, 0, -1]),
        "below the minimum",
    ),
    Case("node.attribute-value", MODES, set_field(f"{ATTRIBUTE}.i", 4), "not an allowed number"),
    Case("node.attribute-type-code", TYPE_CODE, set_field(f"{ATTRIBUTE}.i", 99)),
    Case("node.requires", SQUARE, set_field(f"{SQUARE_INPUT}.dim[1].dim_value", 3)),
    Case("node.attribute-flag", NORMALIZATION, set_field(f"{ATTRIBUTE}.i", 2)),
    Case("node.attribute-value-version", RESIZE, set_field(f"{ATTRIBUTE}.s", b"tf_half_pixel_for_nn")),
    Case("attribute.name", SOFTMAX, set_field(f"{ATTRIBUTE}.name", None)),
    Case("attribute.type", SOFTMAX, set_field(f"{ATTRIBUTE}.type", None)),
    Case(
        "attribute.field",
        SOFTMAX,
        apply_all(set_field(f"{ATTRIBUTE}.i", None), set_field(f"{ATTRIBUTE}.f", 1.0)),
    ),
    Case("attribute.single", SOFTMAX, set_field(f"{ATTRIBUTE}.ints", [0])),
    Case("attribute.value", CONSTANT, set_field(f"{ATTRIBUTE}.t", None)),
    Case("value.optional", TYPE, nest_optional(f"{ATTRIBUTE}.tp"), "in an attribute"),
    Case("value.optional", TYPE, nest_optional("graph.output[0].type"), "of an output"),
    Case(
        "value.optional",
        "g (seq(optional(float[2])) x) => (seq(optional(float[2])) y) { y = Identity(x) }",
        nest_optional("graph.input[0].type.sequence_type.elem_type"),
        "in a sequence",
    ),
    Case("attribute.text", PAD, set_field(f"{ATTRIBUTE}.s", b"\xff")),
    Case("attribute.type-proto", TYPE, set_field(f"{ATTRIBUTE}.tp.tensor_type.elem_type", 0)),
    Case(
        "attribute.reference",
        SOFTMAX,
        apply_all(set_field(f"{ATTRIBUTE}.i", None), set_field(f"{ATTRIBUTE}.ref_attr_name", "a")),
    ),
    Case("attribute.reference-known", REFERRING, set_field(f"{FUNCTION_ATTRIBUTE}.ref_attr_name", "other")),
    Case("attribute.reference-only", REFERRING, set_field(f"{FUNCTION_ATTRIBUTE}.f", 0.5)),
    Case("body.inputs", IF, add_message(f"{THEN}.input", name="more"), "of a branch"),
    Case("body.inputs", LOOP, add_message(f"{THEN}.input", name="more"), "of Loop"),
    Case("body.inputs", SCAN, lambda m: field_at(m, "graph.node[0].attribute[1].g").input.pop(), "of Scan"),
    Case("body.inputs", OLD_SCAN, lambda m: m.graph.node[0].input.pop(), "of Scan 8"),
    Case("body.outputs", IF, repeat_first(f"{THEN}.output"), "of a branch"),
    Case("body.outputs", LOOP, lambda m: field_at(m, THEN).output.pop(), "of Loop"),
    Case("body.outputs", SCAN, lambda m: field_at(m, "graph.node[0].attribute[1].g").output.pop(), "of Scan"),
    Case("type.input", RELU, set_field("graph.input[0].type.tensor_type.elem_type", 9)),
    Case("type.output", SHAPE, set_field("graph.output[0].type.tensor_type.elem_type", 1)),
    Case(
        "type.constant",
        OLD_CONSTANT,
        apply_all(
            set_field(f"{ATTRIBUTE}.t.data_type", 7),
            set_field(f"{ATTRIBUTE}.t.float_data", None),
            set_field(f"{ATTRIBUTE}.t.int64_data", [1]),
            set_field("graph.output[0].type.tensor_type.elem_type", 7),
        ),
    ),
    Case("type.variable", ADD, set_field("graph.node[0].input", ["x", "n"]), "of two inputs"),
    Case(
        "type.variable",
        RELU,
        set_field("graph.output[0].type.tensor_type.elem_type", 11),
        "of an input and an output",
    ),
    Case("type.named", CAST, set_field(f"{ATTRIBUTE}.i", 6), "by a number"),
    Case("type.named", CONSTANT, set_field("graph.output[0].type.tensor_type.elem_type", 11), "by a tensor"),
    Case("type.named", TYPE, set_field(f"{ATTRIBUTE}.tp.tensor_type.elem_type", 7), "by a type"),
    Case("type.named", LABELS, set_field("graph.output[0].type.tensor_type.elem_type", 7), "by a list"),
    Case("node.release", GATED, lambda m: m.graph.node[0].input.append("x")),
    Case("node.undefined", ML, apply_all(set_field("graph.node[0].domain", "com.acme"), IMPORT_ACME)),
    Case("name.op-type", VENDOR, set_field("graph.node[0].op_type", "scale-2"), "of a node"),
    Case("name.op-type", CALLING, set_field("functions[0].name", "my function"), "of a function"),
    Case("type.body-input", LOOP, set_field("graph.input[2].type.tensor_type.elem_type", 11)),
    Case("shape.body-input", SCAN, set_field("graph.input[0].type.tensor_type.shape.dim[0].dim_value", 7)),
    Case("type.body-output", IF, set_field(f"{THEN}.output[0].type.tensor_type.elem_type", 11)),
)
