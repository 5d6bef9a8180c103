"""Rules for functions, training, devices, and features of IR versions."""

from __future__ import annotations

import math
from typing import Any

import onnx
from onnx import TensorProto, helper

from support.checker_cases.case import (
    Case,
    Change,
    add_message,
    apply_all,
    parse_text,
    repeat_first,
    set_field,
)
from support.checker_cases.tensors import external, sparse

RELU = "g (float[2] x) => (float[2] y) { y = Relu(x) }"
TWO = "g (float[2] x) => (float[2] y) { a = Relu(x)  y = Neg(a) }"
CALLING = """<ir_version: 10, opset_import: ["": 21, "acme": 1]>
g (float[2] x) => (float[2] y) { y = acme.F <slope = 0.5> (x) }
<domain: "acme", opset_import: ["": 21, "acme": 1]> F <slope, scale: float = 1.0> (a) => (b) {
  c = LeakyRelu <alpha: float = @slope> (a)
  b = acme.G(c)
}
<domain: "acme", opset_import: ["": 21]> G (a) => (b) { b = Relu(a) }
"""
PASSING = """<ir_version: 10, opset_import: ["": 21, "acme": 1]>
g (float[2] x) => (float[2] y) { y = acme.F(x, x) }
<domain: "acme", opset_import: ["": 21, "acme": 1]> F (a, b, low) => (d) {
  c = acme.G(a)
  d = Add(b, c)
}
<domain: "acme", opset_import: ["": 21]> G (a, low) => (b) { b = Clip(a, low) }
"""
CLIPPING = """<ir_version: 10, opset_import: ["": 21, "acme": 1]>
g (float[2] x) => (float[2] y) { y = acme.F(x) }
<domain: "acme", opset_import: ["": 13]> F (a) => (b) { b = Clip(a) }
"""


def training() -> onnx.ModelProto:
    """Return a model with a weight that one training graph updates and the other resets."""
    model = parse_text("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    info = model.training_info.add()
    info.initialization.CopyFrom(
        parse_text("i () => (float[2] w0) { w0 = Constant <value = float[2] {0, 0}> () }").graph
    )
    info.algorithm.CopyFrom(parse_text("a (float[2] d) => (float[2] w1) { w1 = Add(y, d) }").graph)
    info.initialization_binding.add(key="w", value="w0")
    info.update_binding.add(key="w", value="w1")
    return model


def sharded() -> onnx.ModelProto:
    """Return a model with a node input that is sharded over two devices."""
    model = parse_text(RELU)
    model.ir_version = 11
    model.configuration.add(name="pair", num_devices=2, device=["one", "two"])
    placement = model.graph.node[0].device_configurations.add(configuration_id="pair")
    sharding = placement.sharding_spec.add(tensor_name="x", device=[0, 1])
    sharding.sharded_dim.add(axis=0).simple_sharding.add(dim_value=2, num_shards=2)
    return model


def grouped() -> onnx.ModelProto:
    """Return a model with a node input that is sharded over a group of two devices."""
    model = sharded()
    sharding = model.graph.node[0].device_configurations[0].sharding_spec[0]
    sharding.device[:] = [-1]
    sharding.index_to_device_group_map.add(key=-1, value=[0, 1])
    return model


PLACEMENT = "graph.node[0].device_configurations[0]"
SHARDED = f"{PLACEMENT}.sharding_spec[0]"


def lower_ir_version(ir_version: int) -> Change:
    """Return a change to an IR version that lacks a feature of the model."""
    return set_field("ir_version", ir_version)


def typed(value_type: onnx.TypeProto) -> onnx.ModelProto:
    """Return a model with an Identity of a value of the given type."""
    model = parse_text(
        '<ir_version: 10, opset_import: ["": 21]> g (float x) => (float y) { y = Identity(x) }'
    )
    model.graph.input[0].type.CopyFrom(value_type)
    model.graph.output[0].type.CopyFrom(value_type)
    return model


def changed_model(change: Change, ir_version: int = 10) -> onnx.ModelProto:
    """Return a small model with a change."""
    model = parse_text(TWO)
    model.ir_version = ir_version
    change(model)
    return model


def sparse_constant() -> onnx.ModelProto:
    """Return a model with a sparse Constant."""
    model = parse_text("g () => (float[2,3] y) { y = Constant <value = float[1] {1}> () }")
    attribute = model.graph.node[0].attribute[0]
    attribute.Clear()
    attribute.name, attribute.type = "sparse_value", onnx.AttributeProto.SPARSE_TENSOR
    attribute.sparse_tensor.CopyFrom(sparse().graph.sparse_initializer[0])
    return model


SPARSE_TYPE = helper.make_sparse_tensor_type_proto(TensorProto.FLOAT, [2])
OPTIONAL_TYPE = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
OPAQUE_TYPE = onnx.TypeProto(opaque_type={"domain": "acme", "name": "thing"})
TYPE = "g () => (optional(float[2]) y) { y = Optional <type: type_proto = float[2]> () }"


def rebind(what: str, change: int | list[int]) -> Change:
    """Return a change of the type of an update, or of the shape of an initial value."""

    def change_model(model: Any) -> None:
        info = model.training_info[0]
        if what == "type":
            cast = info.algorithm.node.add(op_type="Cast", input=["w1"], output=["w2"])
            cast.attribute.add(name="to", type=2, i=change)
            info.algorithm.output.add(name="w2").type.tensor_type.elem_type = change
            info.update_binding[0].value = "w2"
        else:
            tensor = info.initialization.node[0].attribute[0].t
            tensor.Clear()
            tensor.data_type, tensor.dims[:] = 1, change
            tensor.float_data[:] = [0.0] * math.prod(tensor.dims)
            info.initialization.output[0].type.tensor_type.ClearField("shape")

    return change_model


def int_attribute(path: str) -> Change:
    """Return a change that replaces an attribute by an integer of the same name."""
    return apply_all(set_field(f"{path}.f", None), set_field(f"{path}.i", 1), set_field(f"{path}.type", 2))


def set_reference(name: str, kind: int) -> Change:
    """Return a change of the name and the type of an attribute reference."""
    path = "functions[0].node[0].attribute[0]"
    return apply_all(set_field(f"{path}.ref_attr_name", name), set_field(f"{path}.type", kind))


CASES = (
    Case("function.name", CALLING, set_field("functions[0].name", None)),
    Case("function.domain", CALLING, set_field("functions[1].domain", None)),
    Case("function.unique", CALLING, repeat_first("functions")),
    Case(
        "function.recursion",
        CALLING,
        apply_all(
            set_field("functions[1].node[0].op_type", "F"),
            set_field("functions[1].node[0].domain", "acme"),
            add_message("functions[1].opset_import", domain="acme", version=1),
        ),
    ),
    Case(
        "function.standard",
        CALLING,
        apply_all(set_field("functions[1].domain", ""), set_field("functions[1].name", "Gelu")),
    ),
    Case("function.attribute-type", CALLING, int_attribute("graph.node[0].attribute[0]"), "of a call"),
    Case("function.attribute-type", CALLING, set_reference("scale", 2), "of a reference"),
    Case("function.call-input-missing", PASSING, set_field("graph.node[0].input", ["x"]), "at the end"),
    Case("function.call-input-missing", PASSING, set_field("graph.node[0].input", ["", "x"]), "in a call"),
    Case("function.input-unique", CALLING, lambda m: m.functions[0].input.append("a")),
    Case("function.output-unique", CALLING, lambda m: m.functions[0].output.append("b")),
    Case("function.attribute-unique", CALLING, lambda m: m.functions[0].attribute.append("scale")),
    Case("function.output-made", CALLING, set_field("functions[0].output", ["z"])),
    Case("function.opset", CLIPPING, set_field("functions[0].opset_import[0].version", 12)),
    Case("function.call-inputs", CALLING, set_field("graph.node[0].input", ["x", "x"])),
    Case("function.call-outputs", CALLING, set_field("graph.node[0].output", ["y", "z"])),
    Case("function.call-attribute", CALLING, set_field("graph.node[0].attribute[0].name", "slop")),
    Case("training.binding-unique", training, repeat_first("training_info[0].update_binding")),
    Case("training.binding-key", training, set_field("training_info[0].update_binding[0].key", "x")),
    Case("training.binding-value", training, set_field("training_info[0].update_binding[0].value", "w")),
    Case(
        "training.binding-value",
        training,
        set_field("training_info[0].initialization", None),
        "no initialization",
    ),
    Case(
        "training.binding-update",
        training,
        lambda m: set_field("training_info[0].update_binding[0].value", m.graph.output[0].name)(m),
    ),
    Case(
        "training.initialization", training, add_message("training_info[0].initialization.input", name="more")
    ),
    Case("training.binding-type", training, rebind("type", 11), "another type of the update"),
    Case("training.binding-type", training, rebind("dims", [3]), "another size of the initialization"),
    Case("training.binding-type", training, rebind("dims", [2, 1]), "another rank of the initialization"),
    Case("device.index", sharded, set_field(f"{SHARDED}.device", [0, 2]), "too large"),
    Case("device.index", sharded, set_field(f"{SHARDED}.device", [-1, 0]), "negative"),
    Case(
        "device.index",
        grouped,
        set_field(f"{SHARDED}.index_to_device_group_map[0].value", [0, 2]),
        "in a group",
    ),
    Case("device.name", sharded, set_field("configuration[0].name", ""), "missing"),
    Case("device.name", sharded, repeat_first("configuration"), "repeated"),
    Case("device.count", sharded, set_field("configuration[0].num_devices", None), "missing"),
    Case("device.count", sharded, set_field("configuration[0].device", ["one"]), "fewer names than devices"),
    Case("device.configuration", sharded, set_field(f"{PLACEMENT}.configuration_id", "trio")),
    Case("device.tensor", sharded, set_field(f"{SHARDED}.tensor_name", "z")),
    Case("device.axis", sharded, set_field(f"{SHARDED}.sharded_dim[0].axis", 1)),
    Case("device.shards", sharded, set_field(f"{SHARDED}.sharded_dim[0].axis", None), "no axis"),
    Case(
        "device.shards",
        sharded,
        set_field(f"{SHARDED}.sharded_dim[0].simple_sharding[0].num_shards", None),
        "no number",
    ),
    Case(
        "ir.opset-imports",
        lambda: changed_model(lambda m: m.ClearField("opset_import"), 2),
        add_message("opset_import", version=1),
    ),
    Case("ir.functions", CALLING, lower_ir_version(7)),
    Case("ir.attribute-defaults", CALLING, lower_ir_version(8)),
    Case("ir.overloads", CALLING, apply_all(lower_ir_version(9), set_field("functions[1].overload", "o"))),
    Case(
        "ir.function-values",
        CALLING,
        apply_all(lower_ir_version(9), add_message("functions[1].value_info", name="b")),
    ),
    Case("ir.training", training, lower_ir_version(6)),
    Case("ir.device-configurations", sharded, lower_ir_version(10)),
    Case("ir.external-data", external, lower_ir_version(3)),
    Case("ir.sparse-initializers", sparse, lower_ir_version(5)),
    Case("ir.sparse-attributes", sparse_constant, lower_ir_version(5)),
    Case("ir.type-attributes", TYPE, lower_ir_version(7)),
    Case("ir.optional-types", lambda: typed(OPTIONAL_TYPE), lower_ir_version(7)),
    Case("ir.sparse-types", lambda: typed(SPARSE_TYPE), lower_ir_version(3)),
    Case("ir.opaque-types", lambda: typed(OPAQUE_TYPE), lower_ir_version(3)),
    Case(
        "ir.metadata",
        lambda: changed_model(lambda m: m.graph.node[0].metadata_props.add(key="k", value="v")),
        lower_ir_version(9),
    ),
    Case(
        "ir.quantization-annotations",
        lambda: changed_model(lambda m: m.graph.quantization_annotation.add(tensor_name="x")),
        lower_ir_version(4),
    ),
    Case("ir.element-types", "g (bfloat16[2] x) => (bfloat16[2] y) { y = Relu(x) }", lower_ir_version(3)),
)
