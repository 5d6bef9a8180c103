"""Rules for models and their opset imports."""

from __future__ import annotations

from support.checker_cases.case import Case, add_message, repeat_first, set_field

RELU = "g (float[2] x) => (float[2] y) { y = Relu(x) }"
OLD = '<ir_version: 3, opset_import: ["": 8]> g (float[2] x) => (float[2] y) { y = Relu(x) }'
OLDEST = RELU.replace("g (", '<ir_version: 2, opset_import: ["": 1]> g (')
NEWER = '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }'
CALLING = """<ir_version: 10, opset_import: ["": 21, "acme": 1]>
g (float[2] x) => (float[2] y) { y = acme.F(x) }
<domain: "acme", opset_import: ["": 21]> F (a) => (b) { b = Relu(a) }
"""

CASES = (
    Case("model.ir-version", RELU, set_field("ir_version", None), "no IR version"),
    Case("model.ir-version", RELU, set_field("ir_version", -1), "a negative IR version"),
    Case("model.ir-version-known", RELU, set_field("ir_version", 99)),
    Case("model.ir-version-of-opset", NEWER, set_field("opset_import[0].version", 18 + 1)),
    Case("model.graph", RELU, set_field("graph", None)),
    Case("model.domain", RELU, set_field("domain", "my model")),
    Case(
        "model.metadata", RELU, lambda m: [m.metadata_props.add(key="author", value="me") for _ in range(2)]
    ),
    Case(
        "metadata.unique",
        RELU,
        lambda m: [m.graph.metadata_props.add(key="k", value=v) for v in "ab"],
        "graph",
    ),
    Case(
        "metadata.unique",
        RELU,
        lambda m: [m.graph.node[0].metadata_props.add(key="k", value=v) for v in "ab"],
        "node",
    ),
    Case("text.html", RELU, set_field("doc_string", "<script>alert(1)</script>"), "of the model"),
    Case("text.html", RELU, set_field("graph.doc_string", "a <b>bold</b> word"), "of a graph"),
    Case("text.html", RELU, set_field("graph.node[0].doc_string", "one<br/>two"), "of a node"),
    Case("text.html", RELU, set_field("graph.input[0].doc_string", "<P>text</P>"), "of a value"),
    Case("text.html", CALLING, set_field("functions[0].doc_string", "<ul><li>a</li></ul>"), "of a function"),
    Case(
        "text.html",
        RELU,
        add_message("graph.node[0].attribute", name="__a", doc_string="<i>b</i>"),
        "of an attribute",
    ),
    Case("opset.import", RELU, set_field("opset_import", None)),
    Case("opset.default-domain", RELU, set_field("opset_import[0].domain", "com.acme")),
    Case("opset.domain", RELU, add_message("opset_import", domain="Not A Domain", version=1), "of a model"),
    Case(
        "opset.domain",
        CALLING,
        add_message("functions[0].opset_import", domain="a/b", version=1),
        "of a function",
    ),
    Case("opset.unique", RELU, add_message("opset_import", domain="ai.onnx", version=20), "of a model"),
    Case("opset.unique", CALLING, add_message("functions[0].opset_import", version=20), "of a function"),
    Case(
        "opset.repeated",
        RELU,
        add_message("opset_import", domain="ai.onnx", version=21),
        "by the explicit default domain",
    ),
    Case("opset.repeated", CALLING, repeat_first("functions[0].opset_import"), "of a function"),
    Case("opset.positive", RELU, set_field("opset_import[0].version", None)),
    Case(
        "opset.version",
        RELU,
        add_message("opset_import", domain="com.acme", version=2**31),
        "more than 32 bits",
    ),
    Case("opset.known", RELU, set_field("opset_import[0].version", 1000)),
)
