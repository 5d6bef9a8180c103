"""Constants that become initializers keep doc strings, metadata and declarations with a description."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from support.execution import assert_equal, op_types, run

from opshift import simplify

CONSTANTS = {
    "value": "k = Constant <value = float {2}> ()",
    "number": "k = Constant <value_float = 2.0> ()",
    "computed": "one = Constant <value_float = 1.0> () k = Add (one, one)",
}
FEEDS = {"x": np.array([3, 4], np.float32)}


def model_of(constant: str, ir_version: int = 10) -> onnx.ModelProto:
    return onnx.parser.parse_model(f"""<ir_version: {ir_version}, opset_import: ["" : 20]>
    main (float[2] x) => (float[2] y) {{ {CONSTANTS[constant]} y = Mul (x, k) }}""")


@pytest.mark.parametrize("constant", CONSTANTS)
def test_initializer_has_the_description_of_its_node(constant: str) -> None:
    model = model_of(constant)
    node = model.graph.node[-2]
    node.doc_string = "scale"
    node.metadata_props.add(key="namespace", value="layer1")
    result = simplify(model)
    (weight,) = result.graph.initializer
    assert (weight.name, weight.doc_string) == ("k", "scale")
    assert list(weight.metadata_props) == list(node.metadata_props)
    assert op_types(result) == ["Mul"]
    assert_equal(run(result, FEEDS), run(model, FEEDS))


def test_initializer_keeps_the_description_of_its_tensor() -> None:
    model = model_of("value")
    node = model.graph.node[0]
    tensor = node.attribute[0].t
    for each, text in ((node, "node"), (tensor, "tensor")):
        each.doc_string = text
        each.metadata_props.add(key="of", value=text)
    (weight,) = simplify(model).graph.initializer
    assert weight.doc_string == "tensor"
    assert list(weight.metadata_props) == list(tensor.metadata_props)


@pytest.mark.parametrize("constant", CONSTANTS)
@pytest.mark.parametrize("doc_string", ["", "scale of the layer"])
def test_keeps_described_declarations(constant: str, doc_string: str) -> None:
    model = model_of(constant, ir_version=8)
    declared = onnx.helper.make_tensor_value_info("k", onnx.TensorProto.FLOAT, [], doc_string)
    model.graph.value_info.append(declared)
    result = simplify(model)
    assert list(result.graph.value_info) == [declared] * bool(doc_string)
    assert [each.name for each in result.graph.initializer] == ["k"]
    assert simplify(result) == result
    assert_equal(run(result, FEEDS), run(model, FEEDS))
