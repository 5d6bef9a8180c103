"""Domains: each is converted by its own opset, and those nobody defined are left alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper
from support.running import assert_equal, build, op_types, opset_of, run

from opshift.converter.convert import convert_version, plan_version
from opshift.converter.errors import ConversionRefused
from opshift.registry.errors import UnknownDomain, UnknownOpset
from opshift.registry.registry import Registry, default_registry

ML = "ai.onnx.ml"
WORDS = np.array(["a", "c", "b"])
X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)


def node(
    op_type: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **stated: Any
) -> NodeProto:
    made: NodeProto = helper.make_node(op_type, inputs, outputs, op_type.lower(), domain=domain, **stated)
    return made


def encoder(inputs: Sequence[str] = ("x",), outputs: Sequence[str] = ("y",)) -> NodeProto:
    """Changes at 2 of ai.onnx.ml."""
    return node("LabelEncoder", inputs, outputs, ML, classes_strings=["c", "a"])


def both() -> onnx.ModelProto:
    """A node that changes in each of two domains."""
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
    ids=["ai.onnx.ml alone", "the default domain alone", "both", "a release, which names both"],
)
def test_only_the_domains_of_the_target_are_converted(
    target: Any, opsets: dict[str, int], inputs: int, attributes: set[str]
) -> None:
    result = convert_version(both(), target)
    assert imports(result) == opsets
    assert len(result.graph.node[1].input) == inputs
    assert {each.name for each in result.graph.node[0].attribute} == attributes


def test_numbers_stay_the_same_over_two_domains() -> None:
    feeds = {"x": WORDS}
    result = convert_version(both(), {"": 13, ML: 3})
    assert_equal(run(result, feeds), [np.array([[1, 0, -1]])])


def test_a_target_for_a_domain_that_the_model_does_not_import_changes_nothing() -> None:
    model = build([node("Relu", ["x"], ["y"])], {"x": X}, ["y"], 11)
    assert convert_version(model, {ML: 3}) == model


# Domains that nobody defined


def with_custom(**imported: int) -> onnx.ModelProto:
    nodes = [
        node("Squeeze", ["x"], ["s"], axes=[0]),
        node("FastConv", ["s", "s"], ["f"], "com.acme", axes=[0], mode="fast"),
        node("Clip", ["f"], ["y"], "org.example"),
    ]
    return build(nodes, {"x": X[None]}, ["y"], {"": 11, "com.acme": 7, "org.example": 1, **imported})


def test_nodes_of_custom_domains_are_left_alone() -> None:
    """Also those that are called as an operator of ONNX."""
    model = with_custom()
    result = convert_version(model, 13)
    assert list(result.graph.node)[1:] == list(model.graph.node)[1:]
    assert imports(result) == {"": 13, "com.acme": 7, "org.example": 1}


def test_a_value_that_a_custom_node_makes_has_no_known_type() -> None:
    nodes = [node("FastConv", ["x"], ["f"], "com.acme"), node("Clip", ["f"], ["y"], min=0.5)]
    model = build(nodes, {"x": X}, ["y"], {"": 10, "com.acme": 1})
    with pytest.raises(ConversionRefused) as caught:
        convert_version(model, 13)
    assert "type of 'f' is unknown" in caught.value.reason
    assert "value_info for 'f'" in caught.value.remedy
    model.graph.value_info.append(helper.make_tensor_value_info("f", TensorProto.FLOAT, None))
    assert len(convert_version(model, 13).graph.node[1].input) == 2


def test_a_custom_domain_that_is_not_imported_is_refused() -> None:
    model = with_custom()
    del model.opset_import[1]
    with pytest.raises(ConversionRefused) as caught:
        convert_version(model, 13)
    (refusal,) = caught.value.refusals
    assert refusal.operator == "com.acme.FastConv"
    assert "'com.acme', which has no opset import" in refusal.reason
    assert "add an opset import for 'com.acme'" in refusal.remedy


def test_a_target_for_a_custom_domain_needs_definitions() -> None:
    with pytest.raises(UnknownDomain):
        convert_version(with_custom(), {"com.acme": 8})


# The default domain spelled out, or not there


@pytest.mark.parametrize("of_import", ["", "ai.onnx"], ids=["import empty", "import spelled out"])
@pytest.mark.parametrize("of_node", ["", "ai.onnx"], ids=["nodes empty", "nodes spelled out"])
def test_the_default_domain_keeps_its_spelling(of_import: str, of_node: str) -> None:
    nodes = [
        node("Squeeze", ["x"], ["s"], of_node, axes=[0]),
        node("Softmax", ["s"], ["t"], of_node, axis=0),
        node("Relu", ["t"], ["y"], of_node),
    ]
    feeds = {"x": X[None]}
    model = build(nodes, feeds, ["y"], {of_import: 11})
    result = convert_version(model, 13)
    assert imports(result) == {of_import: 13}
    assert [each.domain for each in result.graph.node if each.op_type in ("Squeeze", "Relu")] == [of_node] * 2
    plain = build([node(n.op_type, n.input, n.output) for n in nodes], feeds, ["y"], 11)
    for plain_node, one in zip(plain.graph.node, nodes, strict=True):
        plain_node.attribute.extend(one.attribute)
    normal = onnx.ModelProto.FromString(result.SerializeToString())
    for each in (*normal.opset_import, *normal.graph.node):
        each.domain = ""
    assert_equal(run(normal, feeds), run(plain, feeds))


def test_constants_and_types_are_seen_through_nodes_that_spell_the_domain_out() -> None:
    nodes = [
        node("Constant", [], ["c"], "ai.onnx", value=numpy_helper.from_array(np.array([0]))),
        node("Identity", ["c"], ["axes"], "ai.onnx"),
        node("Squeeze", ["x", "axes"], ["y"]),
    ]
    result = convert_version(build(nodes, {"x": X[None]}, ["y"], {"ai.onnx": 13}), 12, allow="approximate")
    assert list(result.graph.node[2].input) == ["x"]


def test_a_model_without_the_default_domain_gets_it_only_if_new_nodes_need_it() -> None:
    model = build([encoder()], {"x": WORDS}, {"y": TensorProto.INT64}, {ML: 1})
    assert imports(convert_version(model, {ML: 2})) == {ML: 2}


def test_a_model_without_the_default_domain_takes_a_target_for_it() -> None:
    model = build([encoder()], {"x": WORDS}, {"y": TensorProto.INT64}, {ML: 1})
    assert convert_version(model, 17) == model


def regressor() -> NodeProto:
    """Changes at 5 of ai.onnx.ml, with the help of nodes of the default domain."""
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


@pytest.mark.parametrize("imported", [{ML: 3}, {ML: 3, "": 18}], ids=["without it", "with it"])
def test_new_nodes_of_the_default_domain_are_of_the_opset_that_is_imported(
    imported: Mapping[str, int],
) -> None:
    model = build([regressor()], {"x": X}, ["y"], imported)
    result = convert_version(model, {ML: 5})
    domains = {each.domain for each in result.graph.node}
    assert domains <= set(imports(result))
    assert imports(result)[ML] == 5
    assert opset_of(result) == imported.get("", 21)
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))


# Definitions of ones own

FAST_CONV = """
domain: com.acme
name: FastConv
description: A convolution.
versions:
- since_version: 1
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
    change: The stride is called a step, `padding` spells its values in full, and `hint` is gone.
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
    change: The step is an input.
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


def fast(opset: int = 1, **stated: Any) -> onnx.ModelProto:
    nodes = [node("FastConv", ["x"], ["f"], "com.acme", **stated), node("Squeeze", ["f"], ["y"], axes=[0])]
    return build(nodes, {"x": X}, ["y"], {"": 11, "com.acme": opset})


def stated(model: Any) -> dict[str, Any]:
    return {each.name: helper.get_attribute_value(each) for each in model.graph.node[0].attribute}


def test_steps_of_ones_own_are_taken(registry: Registry) -> None:
    model = fast(stride=2, padding="none", hint=7)
    result = convert_version(model, {"com.acme": 3}, registry=registry)
    assert stated(result) == {"step": 2, "padding": b"nothing"}
    assert imports(result) == {"": 11, "com.acme": 3}
    assert list(result.graph.node)[1:] == list(model.graph.node)[1:]


def test_steps_of_ones_own_are_taken_in_turn(registry: Registry) -> None:
    result = convert_version(fast(stride=2, hint=1), {"com.acme": 4}, registry=registry)
    (constant,) = result.graph.initializer
    assert list(result.graph.node[0].input) == ["x", constant.name]
    assert numpy_helper.to_array(constant).tolist() == 2
    assert stated(result) == {}


def test_steps_of_ones_own_are_taken_back(registry: Registry) -> None:
    up = convert_version(fast(stride=2, padding="none"), {"com.acme": 4}, registry=registry)
    down = convert_version(up, {"com.acme": 1}, registry=registry)
    assert stated(down) == {"stride": 2, "padding": b"none"}
    assert list(down.graph.node[0].input) == ["x"]


def test_types_of_ones_own_operators_are_inferred(registry: Registry) -> None:
    nodes = [node("FastConv", ["x"], ["f"], "com.acme"), node("Clip", ["f"], ["y"], min=0.5)]
    model = build(nodes, {"x": X}, ["y"], {"": 10, "com.acme": 1})
    result = convert_version(model, 13, registry=registry)
    assert op_types(result) == ["FastConv", "Clip"]
    assert result.graph.initializer[0].data_type == TensorProto.FLOAT


def test_domains_of_both_kinds_are_converted_together(registry: Registry) -> None:
    result = convert_version(fast(), {"": 13, "com.acme": 3}, registry=registry)
    assert imports(result) == {"": 13, "com.acme": 3}
    assert len(result.graph.node[1].input) == 2


def test_once_a_domain_is_defined_its_nodes_have_to_resolve(registry: Registry) -> None:
    model = fast()
    model.graph.node[0].op_type = "FastCnov"
    plan = plan_version(model, {"com.acme": 3}, registry=registry)
    assert "FastConv" in plan.refusals[0].remedy
    with pytest.raises(UnknownOpset):
        convert_version(model, {"com.acme": 5}, registry=registry)


def test_the_projects_own_registry_does_not_learn_of_it(registry: Registry) -> None:
    assert "com.acme" in registry.domains()
    assert "com.acme" not in default_registry().domains()
