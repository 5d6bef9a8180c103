"""Features added by IR versions: kept where supported, rewritten or refused in older versions."""

from __future__ import annotations

import onnx
import pytest
from onnx import AttributeProto
from support.execution import assert_equal, run
from support.ir_models import MODELS, X, model_with_type, node, plain_model
from support.runtimes import needs_newest_onnx

from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS, STANDALONE, since
from opshift.converter.apply import FIRST_IR_WITH_DEVICES
from opshift.converter.convert import convert, convert_version
from opshift.converter.ir_version.lower import LOWERINGS, required_ir_version
from opshift.converter.refusals import ConversionRefused
from opshift.registry.ir_versions import ir_versions
from opshift.registry.registry import default_registry
from opshift.registry.steps import Allow

IR_VERSIONS = ir_versions()
LOWERED = {
    "standalone_initializers": "graph inputs",
    "quantization_annotations": "metadata of the model",
    "sparse_initializers": "dense initializers",
    "sparse_attributes": "dense tensors",
    "functions": "inlined nodes",
    "attribute_defaults": "attributes of the calls",
    "overloads": "functions with unique names",
    "function_values": "value_info of the main graph",
    "metadata": "metadata of the model",
}
REFUSED = {
    "external_data": "they must be stored in the model",
    "sparse_types": "it has no equivalent",
    "opaque_types": "it has no equivalent",
    "optional_types": "it has no equivalent",
    "type_attributes": "it has no equivalent",
    "training": "it would be lost",
    "device_configurations": "they would be lost",
}
DROPPED = {
    "training": "drop-training",
    "device_configurations": "drop-devices",
    "metadata": "drop-metadata",
    "quantization_annotations": "drop-metadata",
}


def outputs(model: onnx.ModelProto) -> list[object]:
    return run(model, {"x": X})


def test_every_feature_has_model_and_expectation() -> None:
    assert set(MODELS) == set(IR_VERSIONS.features) == LOWERED.keys() | REFUSED.keys()
    assert {each.feature for each in LOWERINGS} == LOWERED.keys() | DROPPED.keys()


@pytest.mark.parametrize("feature", MODELS)
def test_finds_required_ir_version(feature: str) -> None:
    assert required_ir_version(MODELS[feature](), default_registry()) == IR_VERSIONS.features[feature]


@pytest.mark.parametrize("feature", MODELS)
def test_keeps_supported_feature(feature: str) -> None:
    model = MODELS[feature]()
    since = IR_VERSIONS.features[feature]
    result, report = convert(model, ir_version=since)
    assert report.ir_steps == ()
    model.ir_version = since
    assert result == model


@pytest.mark.parametrize("feature", LOWERED)
@pytest.mark.parametrize("is_oldest", [False, True], ids=["previous version", "oldest version"])
def test_rewrites_unsupported_feature(feature: str, is_oldest: bool) -> None:
    model = MODELS[feature]()
    version = 3 if is_oldest else IR_VERSIONS.features[feature] - 1
    conversion = convert(model, ir_version=version)
    result, report = conversion.model, conversion.report
    assert result.ir_version == version
    assert required_ir_version(result, default_registry()) <= version
    onnx.checker.check_model(result)
    assert_equal(outputs(result), outputs(model))
    if not is_oldest:
        assert f"{IR_VERSIONS.meaning(feature)} become {LOWERED[feature]}" in report.ir_steps


@pytest.mark.parametrize("feature", REFUSED)
def test_refuses_feature_without_equivalent(feature: str) -> None:
    version = IR_VERSIONS.features[feature] - 1
    with pytest.raises(ConversionRefused) as caught:
        convert_version(MODELS[feature](), ir_version=version)
    refusal = caught.value.refusals[0]
    assert (
        refusal.reason
        == f"IR version {version} does not support {IR_VERSIONS.meaning(feature)}: {REFUSED[feature]}"
    )
    assert refusal.operator == f"IR version {version + 1}"
    assert refusal.place
    assert refusal.remedy


@pytest.mark.parametrize(("feature", "allow"), DROPPED.items(), ids=DROPPED)
def test_drops_feature_if_allowed(feature: str, allow: Allow) -> None:
    model = MODELS[feature]()
    version = IR_VERSIONS.features[feature] - 1
    conversion = convert(model, ir_version=version, allow=allow)
    result, report = conversion.model, conversion.report
    loss = f"the model loses {IR_VERSIONS.meaning(feature)}"
    assert (report.allowances, report.ir_steps) == (((allow, loss),), (loss,))
    assert required_ir_version(result, default_registry()) <= version
    assert list(result.metadata_props) == list(model.metadata_props)
    assert_equal(outputs(result), outputs(model))


@pytest.mark.parametrize("feature", REFUSED)
def test_opset_conversion_keeps_required_ir_version(feature: str) -> None:
    """Convert to opset 8 of IR version 3, or to the first opset with all operators of the model."""
    model = MODELS[feature]()
    target = 15 if feature == "type_attributes" else 8
    result = convert_version(model, target)
    assert result.ir_version == max(IR_VERSIONS.features[feature], 8 if target == 15 else 3)


@pytest.mark.parametrize("feature", sorted(LOWERED.keys() - {"sparse_attributes"}))
def test_opset_conversion_lowers_ir_version_without_loss(feature: str) -> None:
    model = MODELS[feature]()
    result = convert_version(model, 8)
    assert result.ir_version == 3
    onnx.checker.check_model(result)
    assert_equal(outputs(result), outputs(model))


def test_opset_conversion_drops_allowed_feature() -> None:
    model = MODELS["device_configurations"]()
    result, report = convert(model, 13, allow="drop-devices")
    assert result.ir_version == 7
    assert report.allowances == (("drop-devices", "the model loses device configurations"),)


def test_keeps_supported_feature_that_may_be_dropped() -> None:
    model = MODELS["device_configurations"]()
    model.ir_version = 11
    result, report = convert(model, ir_version=11, allow=("drop-devices", "drop-metadata"))
    assert (result, report.allowances) == (model, ())


@needs_newest_onnx
@pytest.mark.parametrize("name", IR_VERSIONS.element_types)
def test_refuses_element_type_below_its_ir_version(name: str) -> None:
    model = model_with_type(name)
    since = IR_VERSIONS.element_types[name]
    assert required_ir_version(model, default_registry()) == since
    assert convert_version(model, ir_version=since).ir_version == since
    with pytest.raises(ConversionRefused) as caught:
        convert_version(model, ir_version=since - 1)
    places = [each.place for each in caught.value.refusals]
    assert places == ["graph, value 'h'", "graph, node Cast -> h, attribute 'to'"]
    assert {each.reason for each in caught.value.refusals} == {
        f"IR version {since - 1} does not support element type {name}: it has no equivalent"
    }


def test_refuses_features_in_subgraphs() -> None:
    then = onnx.helper.make_graph(
        [node("Relu", ["x"], ["t"])],
        "then",
        [],
        [onnx.helper.make_tensor_value_info("t", onnx.TensorProto.FLOAT, [2, 3])],
        [onnx.numpy_helper.from_array(X, "unused")],
    )
    then.node[0].device_configurations.add(configuration_id="two")
    conditional = node("If", ["yes"], ["y"], name="choice", then_branch=then, else_branch=then)
    model = plain_model(nodes=[node("Constant", [], ["yes"], value_int=1), conditional])
    with pytest.raises(ConversionRefused) as caught:
        convert_version(model, ir_version=10)
    assert {each.place for each in caught.value.refusals} == {
        "graph / choice.then_branch, node Relu -> t",
        "graph / choice.else_branch, node Relu -> t",
    }


def test_finds_features_in_untyped_attributes() -> None:
    """Models of IR version 1 have no attribute types."""
    model = MODELS["sparse_attributes"]()
    model.graph.node[0].attribute[0].type = AttributeProto.UNDEFINED
    assert required_ir_version(model, default_registry()) == IR_VERSIONS.features["sparse_attributes"]


@pytest.mark.parametrize(
    ("feature", "version"),
    [(STANDALONE, FIRST_IR_WITH_STANDALONE_INITIALIZERS), ("device_configurations", FIRST_IR_WITH_DEVICES)],
)
def test_first_ir_version_of_feature(feature: str, version: int) -> None:
    assert since(feature) == version
