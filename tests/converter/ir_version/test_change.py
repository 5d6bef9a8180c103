"""The IR version is raised or lowered with the opsets, and constants are stored as it allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper
from support.execution import Array, assert_equal, build, op_types, run

import opshift
from opshift.checker.findings import Level
from opshift.converter.convert import convert, convert_version
from opshift.converter.refusals import ConversionRefused
from opshift.model.errors import InvalidModel, UsageError
from opshift.registry.registry import default_registry

X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)


def node(op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> NodeProto:
    result: NodeProto = helper.make_node(op_type, inputs, outputs, **attributes)
    return result


def relu(opset: int, ir_version: int) -> onnx.ModelProto:
    return build([node("Relu", ["x"], ["y"])], {"x": X}, ["y"], opset, ir_version=ir_version)


ROWS = [
    ("raised to that of the opset", 13, 7, 21, 10),
    ("raised over many releases", 7, 3, 26, 13),
    ("raised from a version too low for its opset", 17, 3, 18, 8),
    ("raised by one", 8, 3, 9, 4),
    ("kept where the opset needs no newer version", 13, 7, 14, 7),
    ("kept where newer than needed", 13, 12, 14, 12),
    ("lowered to that of the opset", 21, 10, 13, 7),
    ("lowered over many releases", 21, 10, 7, 3),
    ("kept in a downgrade where the opset needs it", 18, 8, 15, 8),
    ("kept in a downgrade where too low", 21, 4, 13, 4),
    ("kept with the same opset although too low", 17, 3, 17, 3),
    ("kept in an upgrade where unknown", 13, 99, 21, 99),
    ("kept in a downgrade where unknown", 21, 99, 13, 99),
    ("kept with the same opset although newer than needed", 13, 12, 13, 12),
]


@pytest.mark.parametrize(
    ("source", "before", "target", "after"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_sets_the_ir_version(source: int, before: int, target: int, after: int) -> None:
    model, report = convert(relu(source, before), target)
    assert model.ir_version == after
    assert report.ir_version == (before, after)


@pytest.mark.parametrize("opset", range(7, 27))
def test_ir_version_supports_the_opset(opset: int) -> None:
    """The table of releases in ONNX states the IR version that each opset needs."""
    needed = helper.find_min_ir_version_for([helper.make_opsetid("", opset)])
    assert convert_version(relu(6, 3), opset).ir_version >= needed
    onnx.checker.check_model(with_output_shapes(convert_version(relu(6, 3), opset)))


def with_output_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Declare the output shapes, which the checker of ONNX requires."""
    for value in model.graph.output:
        for size in X.shape:
            value.type.tensor_type.shape.dim.add().dim_value = size
    return model


@pytest.mark.parametrize(
    ("target", "after"), [({"ai.onnx.ml": 5}, 10), ({"ai.onnx.ml": 3}, 8)], ids=["opset 5", "opset 3"]
)
def test_opsets_of_other_domains_raise_the_ir_version(target: dict[str, int], after: int) -> None:
    scaler = node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[0.0], scale=[2.0])
    model = build([scaler], {"x": X}, ["y"], {"ai.onnx.ml": 1}, ir_version=4)
    assert convert_version(model, target).ir_version == after


def test_release_target_stays_within_its_ir_version() -> None:
    """Every opset of a release was introduced in that release or earlier."""
    release = default_registry().releases.named("onnx-1.12")
    assert convert_version(relu(7, 3), "onnx-1.12").ir_version <= release.ir_version


def test_lowered_model_preserves_outputs() -> None:
    model = relu(21, 10)
    assert_equal(run(convert_version(model, 7), {"x": X}), run(model, {"x": X}))


def test_unchanged_domain_limits_the_lowering() -> None:
    scaler = node("Scaler", ["x"], ["h"], domain="ai.onnx.ml", offset=[0.0], scale=[2.0])
    model = build(
        [scaler, node("Relu", ["h"], ["y"])], {"x": X}, ["y"], {"": 21, "ai.onnx.ml": 3}, ir_version=10
    )
    result = convert_version(model, 13)
    assert result.ir_version == 8
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))


@pytest.mark.parametrize("ir_version", [8, 10, 13])
def test_unchanged_default_domain_keeps_the_ir_version(ir_version: int) -> None:
    nodes = [
        node("Scaler", ["x"], ["h"], domain="ai.onnx.ml", offset=[0.0], scale=[2.0]),
        node("Relu", ["h"], ["y"]),
    ]
    model = build(nodes, {"x": X}, ["y"], {"": 13, "ai.onnx.ml": 3}, ir_version=ir_version)
    assert convert_version(model, {"ai.onnx.ml": 1}).ir_version == ir_version


RELEASES = [
    ("lowered to that of a runtime", 21, 10, "onnxruntime-1.10", 15, 8),
    ("lowered to that of an ONNX release", 21, 10, "onnx-1.7", 12, 7),
    ("lowered with the same opset", 15, 10, "onnxruntime-1.10", 15, 8),
    ("lowered with an older opset, which stays", 13, 10, "onnxruntime-1.10", 13, 8),
    ("kept with an older opset", 7, 3, "onnxruntime-1.18", 7, 3),
    ("raised to what the opset needs", 7, 3, "onnx-1.16", 21, 10),
    ("kept where lower than that of the release", 21, 4, "onnx-1.12", 17, 4),
    ("lowered to that of another program", 13, 8, "windowsml-1809", 7, 3),
    ("lowered with the opset for a program without IR version", 21, 10, "tensorrt-8.6", 17, 8),
]


@pytest.mark.parametrize(
    ("source", "before", "target", "opset", "after"),
    [row[1:] for row in RELEASES],
    ids=[row[0] for row in RELEASES],
)
def test_sets_the_ir_version_for_releases(
    source: int, before: int, target: str, opset: int, after: int
) -> None:
    model = relu(source, before)
    result = convert_version(model, target)
    assert (result.opset_import[0].version, result.ir_version) == (opset, after)
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))


REQUESTED = [
    ("number", 17, 21, 8, 8),
    ("number below that of the opset", 17, 21, 4, 4),
    ("number as a string", 17, 21, "9", 9),
    ("number above that of the opset", 21, 13, 12, 12),
    ("keep in an upgrade", 17, 21, "keep", 8),
    ("keep in a downgrade", 17, 13, "keep", 8),
]


@pytest.mark.parametrize(
    ("source", "target", "requested", "after"),
    [row[1:] for row in REQUESTED],
    ids=[row[0] for row in REQUESTED],
)
def test_accepts_an_ir_version(source: int, target: int, requested: int | str, after: int) -> None:
    model = relu(source, 8)
    result = convert_version(model, target, ir_version=requested)
    assert (result.opset_import[0].version, result.ir_version) == (target, after)
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))


@pytest.mark.parametrize("requested", range(3, 15))
def test_changes_only_the_ir_version(requested: int) -> None:
    model = relu(17, 8)
    result = convert_version(model, ir_version=requested)
    model.ir_version = requested
    assert result == model


@pytest.mark.parametrize("requested", [2, 0, -1, 15, "newest", "", 8.5, True])
def test_rejects_invalid_ir_versions(requested: Any) -> None:
    with pytest.raises(UsageError, match="is not an IR version to convert to") as caught:
        convert_version(relu(17, 8), 17, ir_version=requested)
    assert caught.value.remedy == "pass a version from 3 to 14, or keep"


def test_refuses_to_lower_an_unknown_ir_version() -> None:
    with pytest.raises(ConversionRefused, match="the newest known version is 14") as caught:
        convert_version(relu(21, 99), "onnx-1.12")
    assert "opshift doctor --fix" in caught.value.remedy


def test_keeps_the_argument_unchanged() -> None:
    model = upsampling_model()
    model.ir_version = 8
    before = model.SerializeToString()
    convert_version(model, ir_version=3)
    assert model.SerializeToString() == before
    assert convert_version(model, ir_version=3, inplace=True) is model
    assert model.ir_version == 3


def test_adds_the_opset_import_that_ir_version_3_requires() -> None:
    model = relu(1, 2)
    del model.opset_import[:]
    result = convert_version(model, ir_version=4)
    assert [each.version for each in result.opset_import] == [1]


# IR version 3, where an initializer is the default of a graph input


def with_initializers_as_inputs(
    nodes: Sequence[NodeProto], weights: dict[str, Array], opset: int
) -> onnx.ModelProto:
    """Return a model of IR version 3, in which every initializer is also an input."""
    model = with_output_shapes(build(nodes, {"x": X}, ["y"], opset, ir_version=3, initializers=weights))
    for name, array in weights.items():
        element = helper.np_dtype_to_tensor_dtype(array.dtype)
        model.graph.input.append(helper.make_tensor_value_info(name, element, array.shape))
    return model


def upsampling_model(opset: int = 8) -> onnx.ModelProto:
    nodes = [
        node("Unsqueeze", ["x"], ["u"], axes=[0]),
        node("Upsample", ["u"], ["v"], scales=[1.0, 1.0, 1.0]),
        node("Squeeze", ["v"], ["s"], axes=[0]),
        node("Add", ["s", "w"], ["y"]),
    ]
    return with_initializers_as_inputs(nodes, {"w": np.ones((2, 3), np.float32)}, opset)


def test_adds_integer_constants_as_inputs_below_ir_version_4() -> None:
    """Tile-6 needs a new list of repeats; opset 6 has IR version 3, and no Constant of integers."""
    nodes = [node("Tile", ["x", "count", "axis"], ["t"]), node("Relu", ["t"], ["y"])]
    model = build([constant("count", 1), constant("axis", 0), *nodes], {"x": X}, ["y"], 5, ir_version=3)
    result = convert_version(with_output_shapes(model), 6)
    assert result.ir_version == 3
    assert [each.name for each in result.graph.initializer] == [result.graph.input[-1].name]
    assert op_types(result) == ["Tile", "Relu"]
    onnx.checker.check_model(result, full_check=True)
    assert_equal(run(result, {"x": X}), run(relu(6, 3), {"x": X}))


def constant(name: str, value: float) -> NodeProto:
    return node("Constant", [], [name], value=numpy_helper.from_array(np.array(value, np.float32)))


def test_adds_constants_as_initializers_since_ir_version_4() -> None:
    model = upsampling_model()
    result = convert_version(model, 13)
    assert result.ir_version == 7
    assert "Constant" not in op_types(result)
    inputs = {each.name for each in result.graph.input}
    new = [each.name for each in result.graph.initializer if each.name not in inputs]
    assert len(new) >= 2
    onnx.checker.check_model(result)
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))


def test_keeps_initializers_as_inputs_on_request() -> None:
    """Since IR version 4, callers may also override these initializers, before and after a conversion."""
    model = upsampling_model()
    onnx.checker.check_model(model)
    for target in (9, 10, 11, 13, 21):
        result = convert_version(model, target, keep_initializer_inputs=True)
        onnx.checker.check_model(result)
        assert list(result.graph.input) == list(model.graph.input)
        assert_equal(run(result, {"x": X}), [X + 1])
        assert_equal(run(result, {"x": X, "w": np.full((2, 3), 7, np.float32)}), [X + 7])


@pytest.mark.parametrize("ir_version", [1, 2])
def test_missing_imports_mean_opset_1_below_ir_version_3(ir_version: int) -> None:
    model = relu(1, ir_version)
    del model.opset_import[:]
    result = convert_version(model, 13)
    assert [(each.domain, each.version) for each in result.opset_import] == [("", 13)]
    assert result.ir_version == 7
    assert_equal(run(result, {"x": X}), [np.maximum(X, 0)])


def test_adds_no_import_of_opset_1_below_ir_version_3() -> None:
    model = relu(1, 2)
    del model.opset_import[:]
    assert convert_version(model, 1) == model


def test_accepts_untyped_attributes_below_ir_version_3() -> None:
    model = build([node("Clip", ["x"], ["y"], min=-1.0, max=1.0)], {"x": X}, ["y"], 6, ir_version=2)
    for attribute in model.graph.node[0].attribute:
        attribute.ClearField("type")
    result = convert_version(model, 13)
    assert_equal(run(result, {"x": X}), [np.clip(X, -1, 1)])


def test_accepts_a_missing_ir_version_but_requires_imports_since_3() -> None:
    """Protobuf reads a missing IR version as 0, which is older than 3."""
    model = relu(9, 0)
    model.ClearField("ir_version")
    assert convert_version(model, 13).ir_version == 7
    del model.opset_import[:]
    model.ir_version = 3
    with pytest.raises(InvalidModel):
        convert_version(model, 13)


def test_stores_subgraph_constants_as_the_ir_version_allows() -> None:
    then, other = (
        helper.make_graph(
            [node("Squeeze", ["x"], [name], axes=[0])],
            name,
            [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3])],
        )
        for name in ("t", "e")
    )
    choice = node("If", ["yes"], ["y"], then_branch=then, else_branch=other)
    model = build([choice], {"x": X[:1], "yes": np.array(True)}, ["y"], 11, ir_version=3)
    low = convert_version(model, 12)
    assert low.ir_version == 7
    high = convert_version(model, 13)
    assert [len(each.g.initializer) for each in high.graph.node[0].attribute] == [1, 1]


@pytest.mark.parametrize("ir_version", [0, -3])
@pytest.mark.parametrize(
    ("call", "after"),
    [
        (lambda model: convert_version(model, 9), 4),
        (lambda model: convert_version(model, 17), 8),
        (lambda model: convert_version(model, "onnxruntime-1.2.0"), 6),
        (lambda model: convert_version(model, 9, reversible=True), 4),
        (opshift.simplify, 7),
        (lambda model: opshift.convert_types(model, {"float": "float16"}, allow="approximate"), 7),
    ],
    ids=["older opset", "newer opset", "release", "reversible", "simplify", "types"],
)
def test_replaces_an_invalid_ir_version(
    call: Callable[[onnx.ModelProto], onnx.ModelProto], after: int, ir_version: int
) -> None:
    result = call(relu(13, ir_version))
    assert result.ir_version == after
    errors = [each.rule for each in opshift.check(result) if each.level == Level.ERROR]
    assert not [each for each in errors if each.startswith("model.ir-version")]
