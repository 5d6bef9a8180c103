"""Rules for dense, sparse and external tensors."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from support.checker_cases.case import Case, add_message, apply_all, parse_text, set_field

WEIGHT = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }"
CONSTANT = "g () => (float[1] y) { y = Constant <value = float[1] {1}> () }"
DENSE = "graph.initializer[0]"
SPARSE = "graph.sparse_initializer[0]"
STRINGS = 'g (string[2] x) => (string[2] y) <string[2] w = {"a", "b"}> { y = StringConcat(x, w) }'


def raw() -> onnx.ModelProto:
    """Return a model with a weight in `raw_data`."""
    model = parse_text(WEIGHT)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones(2, np.float32), "w"))
    return model


def packed() -> onnx.ModelProto:
    """Return a model with five 6-bit elements; two bits of the last byte are unused."""
    model = parse_text(
        '<ir_version: 14, opset_import: ["": 28]> g () => (float[5] y) { y = Cast <to = 1> (w) }'
    )
    model.graph.initializer.add(
        name="w", data_type=TensorProto.FLOAT6E2M3, dims=[5], raw_data=b"\x01\x02\x03\x04"
    )
    return model


def sparse() -> onnx.ModelProto:
    """Return a model with a sparse weight of two values in two rows and three columns."""
    model = parse_text("g (float[2,3] x) => (float[2,3] y) <float[2,3] w = {0,0,0,0,0,0}> { y = Add(x, w) }")
    del model.graph.initializer[:]
    values = helper.make_tensor("w", TensorProto.FLOAT, [2], [1, 2])
    indices = helper.make_tensor("i", TensorProto.INT64, [2, 2], [0, 1, 1, 0])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2, 3]))
    return model


def external(location: str = "weights.bin") -> onnx.ModelProto:
    """Return a model with a weight in an external file."""
    model = parse_text(WEIGHT)
    weight = model.graph.initializer[0]
    weight.ClearField("float_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "4096"), ("length", "8")):
        weight.external_data.add(key=key, value=value)
    return model


def attribute_default() -> onnx.ModelProto:
    """Return a model with a function that has an attribute with a tensor as its default value."""
    model = parse_text(
        """<ir_version: 9, opset_import: ["": 17, "acme": 1]>
        g (float[2] x) => (float[2] y) { y = acme.F(x) }
        <domain: "acme", opset_import: ["": 17]>
        F <t> (a) => (b) { k = Constant <value: tensor = @t> ()  b = Add(a, k) }"""
    )
    body = model.functions[0]
    body.ClearField("attribute")
    default = numpy_helper.from_array(np.ones(2, np.float32))
    body.attribute_proto.append(helper.make_attribute("t", default))
    return model


CASES = (
    Case("tensor.type", WEIGHT, set_field(f"{DENSE}.data_type", None), "missing"),
    Case("tensor.type", WEIGHT, set_field(f"{DENSE}.data_type", 99), "unknown"),
    Case("tensor.text", STRINGS, set_field(f"{DENSE}.string_data", [b"a", b"\xff"])),
    Case(
        "tensor.text",
        'g () => (string[1] y) { y = Constant <value = string[1] {"a"}> () }',
        set_field("graph.node[0].attribute[0].t.string_data", [b"\xc3"]),
        "in an attribute",
    ),
    Case("tensor.type", CONSTANT, set_field("graph.node[0].attribute[0].t.data_type", 0), "in an attribute"),
    Case("tensor.dims", WEIGHT, set_field(f"{DENSE}.dims", [-1, -2])),
    Case("tensor.single", WEIGHT, set_field(f"{DENSE}.int32_data", [1, 2])),
    Case("tensor.single", WEIGHT, set_field(f"{DENSE}.raw_data", b""), "empty raw_data"),
    Case(
        "tensor.field",
        WEIGHT,
        apply_all(set_field(f"{DENSE}.float_data", None), set_field(f"{DENSE}.double_data", [1, 2])),
    ),
    Case(
        "tensor.field",
        STRINGS,
        apply_all(set_field(f"{DENSE}.string_data", None), set_field(f"{DENSE}.raw_data", b"ab")),
        "strings in raw_data",
    ),
    Case("tensor.size", WEIGHT, set_field(f"{DENSE}.float_data", None), "no elements"),
    Case("tensor.size", WEIGHT, set_field(f"{DENSE}.float_data", [1]), "too few entries"),
    Case("tensor.size", WEIGHT, set_field(f"{DENSE}.float_data", [1, 2, 3]), "too many entries"),
    Case("tensor.size", raw, set_field(f"{DENSE}.raw_data", bytes(7)), "too few bytes"),
    Case("tensor.size", raw, set_field(f"{DENSE}.raw_data", bytes(12)), "too many bytes"),
    Case("tensor.size", WEIGHT, set_field(f"{DENSE}.dims", [0]), "elements of an empty tensor"),
    Case(
        "tensor.bits",
        packed,
        set_field("graph.initializer[0].raw_data", b"\x01\x02\x03\xc0"),
        "after the last element",
    ),
    Case(
        "tensor.bits",
        packed,
        apply_all(
            set_field("graph.initializer[0].raw_data", None),
            set_field("graph.initializer[0].int32_data", [1, 2, 3, 4, 64]),
        ),
        "in an entry",
    ),
    Case("tensor.segment", WEIGHT, lambda m: m.graph.initializer[0].segment.SetInParent()),
    Case("sparse.values", sparse, set_field(f"{SPARSE}.values.dims", [1, 2])),
    Case("sparse.dims", sparse, set_field(f"{SPARSE}.dims", None), "missing"),
    Case("sparse.dims", sparse, set_field(f"{SPARSE}.dims", [0, 3]), "an empty dimension"),
    Case("sparse.indices", sparse, set_field(f"{SPARSE}.indices", None), "missing"),
    Case("sparse.indices", sparse, set_field(f"{SPARSE}.indices.dims", [4]), "more indices than values"),
    Case(
        "sparse.indices",
        sparse,
        set_field(f"{SPARSE}.indices.data_type", TensorProto.INT32),
        "of a different type",
    ),
    Case("sparse.order", sparse, set_field(f"{SPARSE}.indices.int64_data", [1, 0, 0, 1]), "descending"),
    Case("sparse.order", sparse, set_field(f"{SPARSE}.indices.int64_data", [0, 1, 0, 1]), "a repeated index"),
    Case(
        "sparse.order",
        sparse,
        set_field(f"{SPARSE}.indices.int64_data", [0, 1, 1, 3]),
        "an index out of range",
    ),
    Case(
        "tensor.size",
        attribute_default,
        set_field("functions[0].attribute_proto[0].t.raw_data", bytes(4)),
        "in a default value",
    ),
    Case("external.inside", external, set_field(f"{DENSE}.raw_data", bytes(8))),
    Case("external.location", external, set_field(f"{DENSE}.external_data[0].key", "place")),
    Case(
        "external.path",
        external,
        set_field(f"{DENSE}.external_data[0].value", "/tmp/weights.bin"),
        "an absolute path",
    ),
    Case(
        "external.path",
        external,
        set_field(f"{DENSE}.external_data[0].value", "a/../../weights.bin"),
        "a path outside the folder",
    ),
    Case("external.number", external, set_field(f"{DENSE}.external_data[1].value", "4k"), "not a number"),
    Case(
        "external.number", external, set_field(f"{DENSE}.external_data[2].value", "-8"), "a negative number"
    ),
    Case("external.type", external, set_field(f"{DENSE}.data_type", TensorProto.STRING)),
    Case("external.size", external, set_field(f"{DENSE}.external_data[2].value", "4")),
    Case(
        "external.key", external, add_message(f"{DENSE}.external_data", key="colour", value="red"), "unknown"
    ),
    Case(
        "external.key", external, add_message(f"{DENSE}.external_data", key="length", value="8"), "repeated"
    ),
    Case("external.alignment", external, set_field(f"{DENSE}.external_data[1].value", "4")),
    Case("external.ignored", WEIGHT, add_message(f"{DENSE}.external_data", key="location", value="w")),
)
