"""Rules for tensors: dense, sparse, and in files of their own."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from support.legality.case import Case, adding, doing, parsed, setting

WEIGHT = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }"
CONSTANT = "g () => (float[1] y) { y = Constant <value = float[1] {1}> () }"
DENSE = "graph.initializer[0]"
SPARSE = "graph.sparse_initializer[0]"
STRINGS = 'g (string[2] x) => (string[2] y) <string[2] w = {"a", "b"}> { y = StringConcat(x, w) }'


def raw() -> onnx.ModelProto:
    """A weight as bytes."""
    model = parsed(WEIGHT)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones(2, np.float32), "w"))
    return model


def small() -> onnx.ModelProto:
    """A weight of five 6-bit elements, which leave two bits of their last byte."""
    model = parsed('<ir_version: 14, opset_import: ["": 28]> g () => (float[5] y) { y = Cast <to = 1> (w) }')
    model.graph.initializer.add(
        name="w", data_type=TensorProto.FLOAT6E2M3, dims=[5], raw_data=b"\x01\x02\x03\x04"
    )
    return model


def sparse() -> onnx.ModelProto:
    """A weight with two values in a matrix of two rows and three columns."""
    model = parsed("g (float[2,3] x) => (float[2,3] y) <float[2,3] w = {0,0,0,0,0,0}> { y = Add(x, w) }")
    del model.graph.initializer[:]
    values = helper.make_tensor("w", TensorProto.FLOAT, [2], [1, 2])
    indices = helper.make_tensor("i", TensorProto.INT64, [2, 2], [0, 1, 1, 0])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2, 3]))
    return model


def external(location: str = "weights.bin") -> onnx.ModelProto:
    """A weight in a file of its own."""
    model = parsed(WEIGHT)
    weight = model.graph.initializer[0]
    weight.ClearField("float_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "4096"), ("length", "8")):
        weight.external_data.add(key=key, value=value)
    return model


CASES = (
    Case("tensor.type", WEIGHT, setting(f"{DENSE}.data_type", None), "none"),
    Case("tensor.type", WEIGHT, setting(f"{DENSE}.data_type", 99), "unknown"),
    Case("tensor.type", CONSTANT, setting("graph.node[0].attribute[0].t.data_type", 0), "in an attribute"),
    Case("tensor.dims", WEIGHT, setting(f"{DENSE}.dims", [-1, -2])),
    Case("tensor.single", WEIGHT, setting(f"{DENSE}.int32_data", [1, 2])),
    Case("tensor.single", WEIGHT, setting(f"{DENSE}.raw_data", b""), "bytes that are there but empty"),
    Case(
        "tensor.field",
        WEIGHT,
        doing(setting(f"{DENSE}.float_data", None), setting(f"{DENSE}.double_data", [1, 2])),
    ),
    Case(
        "tensor.field",
        STRINGS,
        doing(setting(f"{DENSE}.string_data", None), setting(f"{DENSE}.raw_data", b"ab")),
        "strings as bytes",
    ),
    Case("tensor.size", WEIGHT, setting(f"{DENSE}.float_data", None), "nothing"),
    Case("tensor.size", WEIGHT, setting(f"{DENSE}.float_data", [1]), "too few entries"),
    Case("tensor.size", WEIGHT, setting(f"{DENSE}.float_data", [1, 2, 3]), "too many entries"),
    Case("tensor.size", raw, setting(f"{DENSE}.raw_data", bytes(7)), "too few bytes"),
    Case("tensor.size", raw, setting(f"{DENSE}.raw_data", bytes(12)), "too many bytes"),
    Case("tensor.size", WEIGHT, setting(f"{DENSE}.dims", [0]), "something where nothing belongs"),
    Case(
        "tensor.bits",
        small,
        setting("graph.initializer[0].raw_data", b"\x01\x02\x03\xc0"),
        "after the last element",
    ),
    Case(
        "tensor.bits",
        small,
        doing(
            setting("graph.initializer[0].raw_data", None),
            setting("graph.initializer[0].int32_data", [1, 2, 3, 4, 64]),
        ),
        "in an entry",
    ),
    Case("tensor.segment", WEIGHT, lambda m: m.graph.initializer[0].segment.SetInParent()),
    Case("sparse.values", sparse, setting(f"{SPARSE}.values.dims", [1, 2])),
    Case("sparse.dims", sparse, setting(f"{SPARSE}.dims", None), "none"),
    Case("sparse.dims", sparse, setting(f"{SPARSE}.dims", [0, 3]), "an empty one"),
    Case("sparse.indices", sparse, setting(f"{SPARSE}.indices", None), "none"),
    Case("sparse.indices", sparse, setting(f"{SPARSE}.indices.dims", [4]), "more than values"),
    Case(
        "sparse.indices", sparse, setting(f"{SPARSE}.indices.data_type", TensorProto.INT32), "of another type"
    ),
    Case(
        "sparse.order", sparse, setting(f"{SPARSE}.indices.int64_data", [1, 0, 0, 1]), "the wrong way round"
    ),
    Case("sparse.order", sparse, setting(f"{SPARSE}.indices.int64_data", [0, 1, 0, 1]), "one twice"),
    Case("sparse.order", sparse, setting(f"{SPARSE}.indices.int64_data", [0, 1, 1, 3]), "one outside"),
    Case("external.inside", external, setting(f"{DENSE}.raw_data", bytes(8))),
    Case("external.location", external, setting(f"{DENSE}.external_data[0].key", "place")),
    Case(
        "external.path",
        external,
        setting(f"{DENSE}.external_data[0].value", "/tmp/weights.bin"),
        "from the root",
    ),
    Case(
        "external.path",
        external,
        setting(f"{DENSE}.external_data[0].value", "a/../../weights.bin"),
        "further up",
    ),
    Case("external.number", external, setting(f"{DENSE}.external_data[1].value", "4k"), "no number"),
    Case("external.number", external, setting(f"{DENSE}.external_data[2].value", "-8"), "a negative one"),
    Case("external.type", external, setting(f"{DENSE}.data_type", TensorProto.STRING)),
    Case("external.size", external, setting(f"{DENSE}.external_data[2].value", "4")),
    Case("external.key", external, adding(f"{DENSE}.external_data", key="colour", value="red"), "unknown"),
    Case("external.key", external, adding(f"{DENSE}.external_data", key="length", value="8"), "twice"),
    Case("external.alignment", external, setting(f"{DENSE}.external_data[1].value", "4")),
    Case("external.ignored", WEIGHT, adding(f"{DENSE}.external_data", key="location", value="w")),
)
