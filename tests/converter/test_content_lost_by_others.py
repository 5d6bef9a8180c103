"""Content that other ONNX converters lose, and models that they refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, helper
from support.execution import assert_equal, build, opset_of, run
from support.rich_model import UNKNOWN_FIELD, containers, full_model

from opshift.converter.convert import convert_version, plan_version

X = np.linspace(-2, 3, 12, dtype=np.float32).reshape(1, 3, 4)


def nodes(model: onnx.ModelProto) -> Iterator[NodeProto]:
    """Return the nodes except constants with axes, which exist only where axes are inputs."""
    named = (each for container in containers(model) for each in container.node if each.name)
    return (each for each in named if each.op_type != "Constant")


def values(model: onnx.ModelProto) -> Iterator[onnx.ValueInfoProto]:
    for each in containers(model):
        yield from each.value_info
        if isinstance(each, onnx.GraphProto):
            yield from (*each.input, *each.output)


def tensors(model: onnx.ModelProto) -> list[onnx.TensorProto]:
    """Return the initializers except axes and constants, which exist only where axes are inputs."""
    return [each for each in model.graph.initializer if not each.name.startswith(("axes", "const"))]


def field_values(messages: Any, field: str) -> list[Any]:
    """Return the values of a field with the names of the messages that set it."""
    return [(each.name, str(getattr(each, field))) for each in messages if getattr(each, field)]


Extract = Callable[[onnx.ModelProto], Any]
CONTENT: dict[str, Extract] = {
    "functions": lambda model: [(each.domain, each.name, len(each.value_info)) for each in model.functions],
    "training information": lambda model: [
        str(binding)
        for each in model.training_info
        for binding in (*each.update_binding, *each.initialization_binding)
    ],
    "sparse initializers": lambda model: list(model.graph.sparse_initializer),
    "quantization annotations": lambda model: list(model.graph.quantization_annotation),
    "metadata of graphs and functions": lambda model: field_values(containers(model), "metadata_props"),
    "metadata of nodes": lambda model: sorted(field_values(nodes(model), "metadata_props")),
    "metadata of values": lambda model: field_values(values(model), "metadata_props"),
    "metadata of tensors": lambda model: field_values(tensors(model), "metadata_props"),
    "metadata of the model": lambda model: list(model.metadata_props),
    "doc strings of tensors": lambda model: field_values(tensors(model), "doc_string"),
    "doc strings of nodes": lambda model: sorted(field_values(nodes(model), "doc_string")),
    "doc strings of attributes": lambda model: field_values(model.graph.node[-1].attribute, "doc_string"),
    "denotations": lambda model: [str(each.type) for each in values(model)],
    "device configurations": lambda model: [
        *model.configuration,
        *(str(one) for each in nodes(model) for one in each.device_configurations),
    ],
    "unknown fields": lambda model: model.SerializeToString().count(UNKNOWN_FIELD),
}


@pytest.mark.parametrize(("source", "target"), [(11, 13), (11, 12), (13, 11), (13, 12)])
@pytest.mark.parametrize("extract", CONTENT.values(), ids=CONTENT)
def test_keeps_content(extract: Extract, source: int, target: int) -> None:
    model = full_model(source)
    expected = extract(model)
    assert expected
    after = extract(convert_version(model, target, ir_version="keep"))
    if isinstance(expected, int):
        # Attributes that become inputs, and inputs that become attributes, lose their unknown fields.
        assert 0 < after <= expected
    else:
        assert after == expected


def squeeze_model() -> onnx.ModelProto:
    return build([helper.make_node("Squeeze", ["x"], ["y"], axes=[0])], {"x": X}, ["y"], 11, ir_version=4)


def test_raises_the_ir_version_with_the_opset() -> None:
    """Opset 21 was released with IR version 10."""
    after = convert_version(squeeze_model(), 21)
    assert after.ir_version == 10
    assert_equal(run(after, {"x": X}), [X[0]])


@pytest.mark.parametrize(
    "target", [{"ai.onnx.ml": 3}, 17], ids=["target of its domain", "target of the default domain"]
)
def test_converts_models_without_the_default_domain(target: Any) -> None:
    scaler = helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[0.5], scale=[2.0])
    before = build([scaler], {"x": X[0]}, ["y"], {"ai.onnx.ml": 1})
    after = convert_version(before, target)
    assert_equal(run(after, {"x": X[0]}), run(before, {"x": X[0]}))


@pytest.mark.parametrize("target", [11, 13], ids=["unchanged", "changed"])
def test_adds_no_types(target: int) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["m"]), helper.make_node("Squeeze", ["m"], ["y"], axes=[0])]
    before = build(nodes, {"x": X}, ["y"], 11)
    assert len(convert_version(before, target).graph.value_info) == 0


def test_reports_all_problems_together() -> None:
    nodes = [
        helper.make_node("Softmx", ["x"], ["a"]),
        helper.make_node("Softmax", ["x"], ["b"], axis=1),
        helper.make_node("BitwiseAn", ["b", "b"], ["y"]),
    ]
    refusals = plan_version(build(nodes, {"x": X}, ["y"], 18), 13).refusals
    assert [each.operator for each in refusals] == ["ai.onnx.Softmx", "ai.onnx.BitwiseAn"]


def test_converts_other_domains() -> None:
    encoder = helper.make_node(
        "LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", classes_strings=["a", "b"], default_int64=-1
    )
    words = np.array(["b", "z"])
    before = build([encoder], {"x": words}, {"y": onnx.TensorProto.INT64}, {"ai.onnx.ml": 1, "": 11})
    after = convert_version(before, {"ai.onnx.ml": 4})
    assert (opset_of(after, "ai.onnx.ml"), opset_of(after)) == (4, 11)
    assert_equal(run(after, {"x": words}), [np.array([1, -1])])


def test_accepts_an_explicit_default_domain() -> None:
    before = squeeze_model()
    before.graph.node[0].domain = before.opset_import[0].domain = "ai.onnx"
    after = convert_version(before, 13)
    assert after.graph.node[0].domain == after.opset_import[0].domain == "ai.onnx"
    assert len(after.graph.node[0].input) == 2
    assert_equal(run(after, {"x": X}), [X[0]])
