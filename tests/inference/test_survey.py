"""Each domain is converted by its own opset, and nodes of undefined domains are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper
from support.execution import assert_equal, build, op_types, opset_of, run

from opshift.converter.convert import convert_version, plan_version
from opshift.converter.refusals import ConversionRefused
from opshift.model.errors import InvalidModel
from opshift.registry.errors import UnknownDomain, UnknownOpset
from opshift.registry.registry import Registry, default_registry

ML = "ai.onnx.ml"
WORDS = np.array(["a", "c", "b"])
X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)


def node(
    op_type: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **attributes: Any
) -> NodeProto:
    result: NodeProto = helper.make_node(
        op_type, inputs, outputs, op_type.lower(), domain=domain, **attributes
    )
    return result


def encoder(inputs: Sequence[str] = ("x",), outputs: Sequence[str] = ("y",)) -> NodeProto:
    """Return a LabelEncoder, which changes in ai.onnx.ml 2."""
    return node("LabelEncoder", inputs, outputs, ML, classes_strings=["c", "a"])


def two_domains() -> onnx.ModelProto:
    """Return a model with one changing node in each of two domains."""
    nodes = [encoder(outputs=["codes"]), node("Unsqueeze", ["codes"], ["y"], axes=[0])]
    return build(nodes, {"x": WORDS}, {"y": TensorProto.INT64}, {"": 11, ML: 1})


def imports(model: Any) -> dict[str, int]:
    return {each.domain: each.version for each in model.opset_import}


@pytest.mark.parametrize(
    ("target", "opsets", "inputs", "attributes"),
    [
        ({ML: 3}, {"": 11, ML: 3}, 1, {"keys_strings", "values_int64s"}),
        ({"": 13}, {"": 13, ML: 1}, 2, {"classes_strings"}),
        ({"": 13, ML: 3}, {"": 13, ML: 3}, 2, {"keys_strings", "values_int64s"}),
        ("onnx-1.12", {"": 17, ML: 3}, 2, {"keys_strings", "values_int64s"}),
    ],
    ids=["only ai.onnx.ml", "only the default domain", "both domains", "release with both domains"],
)
def test_converts_only_the_domains_of_the_target(
    target: Any, opsets: dict[str, int], inputs: int, attributes: set[str]
) -> None:
    result = convert_version(two_domains(), target)
    assert imports(result) == opsets
    assert len(result.graph.node[1].input) == inputs
    assert {each.name for each in result.graph.node[0].attribute} == attributes


def test_preserves_outputs_across_two_domains() -> None:
    feeds = {"x": WORDS}
    result = convert_version(two_domains(), {"": 13, ML: 3})
    assert_equal(run(result, feeds), [np.array([[1, 0, -1]])])


def test_ignores_targets_of_domains_without_import() -> None:
    model = build([node("Relu", ["x"], ["y"])], {"x": X}, ["y"], 11)
    assert convert_version(model, {ML: 3}) == model


# Undefined domains


def with_custom_domains(**extra_imports: int) -> onnx.ModelProto:
    nodes = [
        node("Squeeze", ["x"], ["s"], axes=[0]),
        node("FastConv", ["s", "s"], ["f"], "com.acme", axes=[0], mode="fast"),
        node("Clip", ["f"], ["y"], "org.example"),
    ]
    return build(nodes, {"x": X[None]}, ["y"], {"": 11, "com.acme": 7, "org.example": 1, **extra_imports})


def test_keeps_nodes_of_custom_domains() -> None:
    """Including custom operators with the name of an ONNX operator."""
    model = with_custom_domains()
    result = convert_version(model, 13)
    assert list(result.graph.node)[1:] == list(model.graph.node)[1:]
    assert imports(result) == {"": 13, "com.acme": 7, "org.example": 1}


def test_outputs_of_custom_nodes_have_no_type() -> None:
    nodes = [node("FastConv", ["x"], ["f"], "com.acme"), node("Clip", ["f"], ["y"], min=0.5)]
    model = build(nodes, {"x": X}, ["y"], {"": 10, "com.acme": 1})
    with pytest.raises(ConversionRefused) as caught:
        convert_version(model, 13)
    assert "type of 'f' is unknown" in caught.value.reason
    assert caught.value.remedy == "declare the type of 'f', in its graph input or with a value_info"
    model.graph.value_info.append(helper.make_tensor_value_info("f", TensorProto.FLOAT, None))
    assert len(convert_version(model, 13).graph.node[1].input) == 2


def test_refuses_custom_domains_without_import() -> None:
    model = with_custom_domains()
    del model.opset_import[1]
    with pytest.raises(ConversionRefused) as caught:
        convert_version(model, 13)
    (refusal,) = caught.value.refusals
    assert refusal.operator == "com.acme.FastConv"
    assert "'com.acme', which has no opset import" in refusal.reason
    assert "add an opset import for 'com.acme'" in refusal.remedy


@pytest.mark.parametrize("domain", ["", "com.acme"])
def test_rejects_nodes_without_an_operator(domain: str) -> None:
    before = build([node("Relu", ["x"], ["y"], domain)], {"x": X}, ["y"], {"": 11, "com.acme": 1})
    before.graph.node[0].op_type = ""
    with pytest.raises(InvalidModel, match="has no op_type"):
        convert_version(before, 13)


def test_rejects_targets_of_undefined_domains() -> None:
    with pytest.raises(UnknownDomain):
        convert_version(with_custom_domains(), {"com.acme": 8})


# Explicit or missing default domain


@pytest.mark.parametrize("import_domain", ["", "ai.onnx"], ids=["empty import", "explicit import"])
@pytest.mark.parametrize("node_domain", ["", "ai.onnx"], ids=["empty in nodes", "explicit in nodes"])
def test_keeps_the_spelling_of_the_default_domain(import_domain: str, node_domain: str) -> None:
    nodes = [
        node("Squeeze", ["x"], ["s"], node_domain, axes=[0]),
        node("Softmax", ["s"], ["t"], node_domain, axis=0),
        node("Relu", ["t"], ["y"], node_domain),
    ]
    feeds = {"x": X[None]}
    model = build(nodes, feeds, ["y"], {import_domain: 11})
    result = convert_version(model, 13)
    assert imports(result) == {import_domain: 13}
    assert [each.domain for each in result.graph.node if each.op_type in ("Squeeze", "Relu")] == [
        node_domain
    ] * 2
    expected = build([node(n.op_type, n.input, n.output) for n in nodes], feeds, ["y"], 11)
    for expected_node, original in zip(expected.graph.node, nodes, strict=True):
        expected_node.attribute.extend(original.attribute)
    normalized = onnx.ModelProto.FromString(result.SerializeToString())
    for each in (*normalized.opset_import, *normalized.graph.node):
        each.domain = ""
    assert_equal(run(normalized, feeds), run(expected, feeds))


def test_infers_through_nodes_with_an_explicit_default_domain() -> None:
    nodes = [
        node("Constant", [], ["c"], "ai.onnx", value=numpy_helper.from_array(np.array([0]))),
        node("Identity", ["c"], ["axes"], "ai.onnx"),
        node("Squeeze", ["x", "axes"], ["y"]),
    ]
    result = convert_version(build(nodes, {"x": X[None]}, ["y"], {"ai.onnx": 13}), 12, allow="approximate")
    assert list(result.graph.node[2].input) == ["x"]


def test_imports_the_default_domain_only_for_emitted_nodes() -> None:
    model = build([encoder()], {"x": WORDS}, {"y": TensorProto.INT64}, {ML: 1})
    assert imports(convert_version(model, {ML: 2})) == {ML: 2}


def test_accepts_default_domain_targets_without_its_import() -> None:
    model = build([encoder()], {"x": WORDS}, {"y": TensorProto.INT64}, {ML: 1})
    assert convert_version(model, 17) == model


def regressor() -> NodeProto:
    """Return a TreeEnsembleRegressor, whose replacement in ai.onnx.ml 5 needs nodes of the default domain."""
    return node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        ML,
        n_targets=1,
        nodes_treeids=[0, 0, 0],
        nodes_nodeids=[0, 1, 2],
        nodes_featureids=[0, 0, 0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_values=[0.5, 0.0, 0.0],
        nodes_truenodeids=[1, 0, 0],
        nodes_falsenodeids=[2, 0, 0],
        target_treeids=[0, 0],
        target_nodeids=[1, 2],
        target_ids=[0, 0],
        target_weights=[1.5, -2.0],
        base_values=[0.25],
    )


@pytest.mark.parametrize(
    "imported", [{ML: 3}, {ML: 3, "": 18}], ids=["without default domain", "with default domain"]
)
def test_emitted_nodes_match_the_imported_default_opset(
    imported: Mapping[str, int],
) -> None:
    model = build([regressor()], {"x": X}, ["y"], imported)
    result = convert_version(model, {ML: 5})
    domains = {each.domain for each in result.graph.node}
    assert domains <= set(imports(result))
    assert imports(result)[ML] == 5
    assert opset_of(result) == imported.get("", 21)
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))


# Custom definitions

FAST_CONV = """
domain: com.acme
name: FastConv
versions:
- since_version: 1
  descriptions: {operator: A convolution.}
  inputs:
  - {name: X, type: T}
  outputs:
  - {name: Y, type: T}
  attributes:
    stride: {type: INT, default: 1}
    padding: {type: STRING, default: none, values: [none, same]}
    hint: {type: INT, default: 0}
  type_constraints:
    T: [tensor(float), tensor(double)]
- since_version: 3
  step:
    change: "`stride` is renamed to `step`, `padding` has longer values, and `hint` is removed."
    up:
    - ignore_attribute: hint
    - rename_attribute: {attribute: stride, to: step}
    - rename_value: {attribute: padding, values: {none: nothing}}
    down:
    - rename_attribute: {attribute: step, to: stride}
    - rename_value: {attribute: padding, values: {nothing: none}}
  inputs:
  - {name: X, type: T}
  outputs:
  - {name: Y, type: T}
  attributes:
    step: {type: INT, default: 1}
    padding: {type: STRING, default: nothing, values: [nothing, same]}
  type_constraints:
    T: [tensor(float), tensor(double)]
- since_version: 4
  step:
    change: "`step` becomes an input."
    up:
    - attribute_to_input: step
    down:
    - input_to_attribute: step
  inputs:
  - {name: X, type: T}
  - {name: step, type: tensor(int64)}
  outputs:
  - {name: Y, type: T}
  attributes:
    padding: {type: STRING, default: nothing, values: [nothing, same]}
  type_constraints:
    T: [tensor(float), tensor(double)]
"""


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    (tmp_path / "com.acme").mkdir()
    (tmp_path / "com.acme" / "FastConv.yaml").write_text(FAST_CONV.lstrip())
    return default_registry().with_folder(tmp_path)


def fast_conv_model(opset: int = 1, **attributes: Any) -> onnx.ModelProto:
    nodes = [
        node("FastConv", ["x"], ["f"], "com.acme", **attributes),
        node("Squeeze", ["f"], ["y"], axes=[0]),
    ]
    return build(nodes, {"x": X}, ["y"], {"": 11, "com.acme": opset})


def attributes_of(model: Any) -> dict[str, Any]:
    return {each.name: helper.get_attribute_value(each) for each in model.graph.node[0].attribute}


def test_applies_custom_steps(registry: Registry) -> None:
    model = fast_conv_model(stride=2, padding="none", hint=7)
    result = convert_version(model, {"com.acme": 3}, registry=registry)
    assert attributes_of(result) == {"step": 2, "padding": b"nothing"}
    assert imports(result) == {"": 11, "com.acme": 3}
    assert list(result.graph.node)[1:] == list(model.graph.node)[1:]


def test_applies_custom_steps_in_sequence(registry: Registry) -> None:
    result = convert_version(fast_conv_model(stride=2, hint=1), {"com.acme": 4}, registry=registry)
    (constant,) = result.graph.initializer
    assert list(result.graph.node[0].input) == ["x", constant.name]
    assert numpy_helper.to_array(constant).tolist() == 2
    assert attributes_of(result) == {}


def test_applies_custom_steps_downwards(registry: Registry) -> None:
    up = convert_version(fast_conv_model(stride=2, padding="none"), {"com.acme": 4}, registry=registry)
    down = convert_version(up, {"com.acme": 1}, registry=registry)
    assert attributes_of(down) == {"stride": 2, "padding": b"none"}
    assert list(down.graph.node[0].input) == ["x"]


def test_infers_types_of_custom_operators(registry: Registry) -> None:
    nodes = [node("FastConv", ["x"], ["f"], "com.acme"), node("Clip", ["f"], ["y"], min=0.5)]
    model = build(nodes, {"x": X}, ["y"], {"": 10, "com.acme": 1})
    result = convert_version(model, 13, registry=registry)
    assert op_types(result) == ["FastConv", "Clip"]
    assert result.graph.initializer[0].data_type == TensorProto.FLOAT


def test_converts_standard_and_custom_domains_together(registry: Registry) -> None:
    result = convert_version(fast_conv_model(), {"": 13, "com.acme": 3}, registry=registry)
    assert imports(result) == {"": 13, "com.acme": 3}
    assert len(result.graph.node[1].input) == 2


def test_refuses_unknown_operators_and_opsets_of_defined_domains(registry: Registry) -> None:
    model = fast_conv_model()
    model.graph.node[0].op_type = "FastCnov"
    plan = plan_version(model, {"com.acme": 3}, registry=registry)
    assert "FastConv" in plan.refusals[0].remedy
    with pytest.raises(UnknownOpset):
        convert_version(model, {"com.acme": 5}, registry=registry)


def test_default_registry_stays_unchanged(registry: Registry) -> None:
    assert "com.acme" in registry.domains()
    assert "com.acme" not in default_registry().domains()
