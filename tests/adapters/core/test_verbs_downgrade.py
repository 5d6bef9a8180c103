"""Declarative rewrites of downgrade steps, for operators that a folder of definitions adds.

The operators are copies of ONNX operators in the domain `com.acme`, with a downgrade that the test declares.
Models are built and run with the domain of ONNX; only the conversion uses `com.acme`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
import yaml
from onnx import TensorProto, helper
from support.execution import Array, assert_equal, build, run

from opshift import ConversionRefused, Registry, convert_version, default_registry
from opshift.registry.steps import VERBS

ACME = "com.acme"
RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.standard_normal((1, 2, 4, 4)).astype(np.float32)
VECTOR = np.array([-2.0, 0.5, 3.0], np.float32)
ROI_FEEDS = {"x": IMAGE, "rois": np.array([[0, 0, 2, 3]], np.float32), "b": np.array([0])}
POOLED = IMAGE.reshape(1, 2, 2, 2, 2, 2).max((3, 5))
SCATTER_FEEDS = {"data": IMAGE[0, 0], "i": np.array([[2], [0]]), "u": IMAGE[0, 1, :2]}
ATTENTION_FEEDS = {name: RANDOM.standard_normal((1, 2, 3, 4)).astype(np.float32) for name in "qkv"}
ROI_ATTRIBUTES = {"output_height": 2, "output_width": 2}
WINDOW = {"kernel_shape": (2, 2), "strides": (2, 2)}


class Step(NamedTuple):
    """Two adjacent versions of an operator, and the verbs of the downgrade between them."""

    op: str
    newer: int
    older: int
    verbs: Sequence[Mapping[str, Any]]


TO_ATTRIBUTE = Step("Squeeze", 13, 11, [{"input_to_attribute": "axes"}])
TO_NUMBER_ATTRIBUTE = Step("TopK", 10, 1, [{"input_to_attribute": {"input": "K", "attribute": "k"}}])
SCALES_TO_ATTRIBUTE = Step("Upsample", 9, 7, [{"input_to_attribute": "scales"}])
DROP_REDUCTION = Step("ScatterND", 16, 13, [{"drop_attribute": "reduction"}])
REQUIRE_MODE = Step(
    "RoiAlign",
    16,
    10,
    [
        {
            "require_attribute": {
                "attribute": "coordinate_transformation_mode",
                "value": "output_half_pixel",
            }
        },
        {"ignore_attribute": "coordinate_transformation_mode"},
    ],
)
REQUIRE_NO_LENGTHS = Step("Attention", 24, 23, [{"require_no_input": "nonpad_kv_seqlen"}])
REQUIRE_NO_INDICES = Step(
    "MaxPool", 8, 1, [{"drop_attribute": "storage_order"}, {"require_no_output": "Indices"}]
)


class RewriteCase(NamedTuple):
    """Node with one input per entry of `feeds`, and its attributes and inputs after the rewrite."""

    step: Step
    feeds: Mapping[str, Array]
    attributes: Mapping[str, Any]
    expected_attributes: Mapping[str, Any] = {}
    expected: Sequence[Array] | None = None
    constants: Sequence[str] = ()
    inputs: Sequence[str] | None = None
    outputs: Sequence[str] = ("y",)


SQUEEZE_FEEDS = {"x": IMAGE, "a": np.array([0])}
CASES = {
    "an attribute at its default is dropped": RewriteCase(
        DROP_REDUCTION, SCATTER_FEEDS, {"reduction": "none"}
    ),
    "a missing attribute is accepted": RewriteCase(DROP_REDUCTION, SCATTER_FEEDS, {}),
    "a constant becomes a list": RewriteCase(
        TO_ATTRIBUTE, SQUEEZE_FEEDS, {}, {"axes": (0,)}, constants=["a"], inputs=["x"]
    ),
    "an omitted input becomes no attribute": RewriteCase(TO_ATTRIBUTE, {"x": IMAGE}, {}),
    "a list of one becomes a number": RewriteCase(
        TO_NUMBER_ATTRIBUTE,
        {"x": VECTOR, "k": np.array([2])},
        {},
        {"k": 2},
        constants=["k"],
        inputs=["x"],
        outputs=("y", "i"),
    ),
    "the required value is set": RewriteCase(
        REQUIRE_MODE,
        ROI_FEEDS,
        {**ROI_ATTRIBUTES, "coordinate_transformation_mode": "output_half_pixel"},
        ROI_ATTRIBUTES,
    ),
    "a newer input is unused": RewriteCase(REQUIRE_NO_LENGTHS, ATTENTION_FEEDS, {}),
    "a newer output is absent": RewriteCase(REQUIRE_NO_INDICES, {"x": IMAGE}, WINDOW, WINDOW),
    "a newer output has an empty name": RewriteCase(
        REQUIRE_NO_INDICES, {"x": IMAGE}, {**WINDOW, "storage_order": 0}, WINDOW, [POOLED], outputs=("y", "")
    ),
}
REFUSED_CASES = {
    "a value other than the default": (
        RewriteCase(DROP_REDUCTION, SCATTER_FEEDS, {"reduction": "add"}),
        "reduction is 'add'; com.acme.ScatterND:13 supports only the default, 'none'",
    ),
    "a computed input": (
        RewriteCase(TO_ATTRIBUTE, SQUEEZE_FEEDS, {}),
        "input axes ('a') is not a constant",
    ),
    "a value other than the required one": (
        RewriteCase(
            REQUIRE_MODE, ROI_FEEDS, {**ROI_ATTRIBUTES, "coordinate_transformation_mode": "half_pixel"}
        ),
        "coordinate_transformation_mode is 'half_pixel'; com.acme.RoiAlign:10 requires 'output_half_pixel'",
    ),
    "a default other than the required value": (
        RewriteCase(REQUIRE_MODE, ROI_FEEDS, ROI_ATTRIBUTES),
        "coordinate_transformation_mode is 'half_pixel'; com.acme.RoiAlign:10 requires 'output_half_pixel'",
    ),
    "a newer input is used": (
        RewriteCase(
            REQUIRE_NO_LENGTHS,
            {**ATTENTION_FEEDS, "length": np.array([2])},
            {},
            inputs=["q", "k", "v", "", "", "", "length"],
        ),
        "input nonpad_kv_seqlen is used, which com.acme.Attention:23 does not have",
    ),
    "a newer output is used": (
        RewriteCase(REQUIRE_NO_INDICES, {"x": IMAGE}, WINDOW, outputs=("y", "i")),
        "output Indices is used, which com.acme.MaxPool:1 does not have",
    ),
    "the first of two verbs refuses": (
        RewriteCase(REQUIRE_NO_INDICES, {"x": IMAGE}, {**WINDOW, "storage_order": 1}, outputs=("y", "i")),
        "storage_order is 1; com.acme.MaxPool:1 supports only the default, 0",
    ),
}

Declare = Callable[[Step], Registry]


@pytest.fixture
def declare(tmp_path: Path) -> Declare:
    """Return a function that adds both versions of a step to the registry, in the domain `com.acme`."""

    def build_registry(step: Step) -> Registry:
        shipped = files("opshift.opsets") / "ai.onnx" / f"{step.op}.yaml"
        definition = yaml.safe_load(shipped.read_text(encoding="utf-8"))
        versions = {each["since_version"]: each for each in definition["versions"]}
        # Without texts: those of earlier versions, which the two inherit, are left out.
        for version in versions.values():
            version.pop("descriptions", None)
        older, newer = versions[step.older], versions[step.newer]
        for each in (older, newer):
            each.pop("before", None)
            each.pop("step", None)
            each.pop("has_context_dependent_function", None)
        newer["step"] = {"up": {"refuse": "only the downgrade is tested"}, "down": [*step.verbs]}
        operator_folder = tmp_path / ACME
        operator_folder.mkdir()
        content = {**definition, "domain": ACME, "versions": [older, newer]}
        (operator_folder / f"{step.op}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
        return default_registry().with_folder(tmp_path)

    return build_registry


def _model(case: RewriteCase, nodes: Sequence[onnx.NodeProto] = ()) -> onnx.ModelProto:
    initializers = {name: array for name, array in case.feeds.items() if name in case.constants}
    feeds = {name: array for name, array in case.feeds.items() if name not in initializers}
    inputs = case.inputs if case.inputs and not initializers else list(case.feeds)
    node = helper.make_node(case.step.op, inputs, case.outputs, name="node", **case.attributes)
    element_types = {
        name: TensorProto.INT64 if name == "i" else TensorProto.FLOAT for name in case.outputs if name
    }
    return build([*nodes, node], feeds, element_types, case.step.newer, initializers=initializers)


def _downgrade(model: onnx.ModelProto, step: Step, registry: Registry) -> onnx.ModelProto:
    """Convert the last node of a model one step down in the domain `com.acme`."""
    acme = onnx.ModelProto()
    acme.CopyFrom(model)
    acme.graph.node[-1].domain = ACME
    acme.opset_import.append(helper.make_opsetid(ACME, step.newer))
    result = convert_version(acme, {ACME: step.newer - 1}, registry=registry)
    assert result.opset_import[1].version == step.newer - 1
    result.graph.node[-1].domain = ""
    del result.opset_import[1:]
    result.opset_import[0].version = step.newer - 1
    return result


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in attributes.items()}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_preserves_results(case: RewriteCase, declare: Declare) -> None:
    model = _model(case)
    result = _downgrade(model, case.step, declare(case.step))
    (node,) = result.graph.node
    assert node.name == "node"
    assert _attributes(node) == case.expected_attributes
    assert list(node.input) == (case.inputs or list(case.feeds))
    feeds = {each.name: case.feeds[each.name] for each in model.graph.input}
    assert_equal(run(result, feeds), case.expected or run(model, feeds))


@pytest.mark.parametrize(("case", "reason"), REFUSED_CASES.values(), ids=REFUSED_CASES)
def test_refuses_nodes_that_the_older_version_cannot_express(
    case: RewriteCase, reason: str, declare: Declare
) -> None:
    with pytest.raises(ConversionRefused) as caught:
        _downgrade(_model(case), case.step, declare(case.step))
    assert [each.reason for each in caught.value.refusals] == [reason]


def test_every_verb_unused_by_upgrades_has_cases() -> None:
    """Verbs of upgrades have their cases in `test_verbs.py`."""
    steps = (version.step for version in default_registry().get_all_schemas_with_history() if version.step)
    up = {verb.name for step in steps if isinstance(step.up, tuple) for verb in step.up}
    here = {name for case in CASES.values() for verb in case.step.verbs for name in verb}
    assert set(VERBS) - up <= here


def _tensor(values: Any, dtype: Any = np.int64, *, raw: bool = True) -> onnx.TensorProto:
    array = np.array(values, dtype)
    element_type = helper.np_dtype_to_tensor_dtype(array.dtype)
    content = array.tobytes() if raw else array.flatten().tolist()
    return helper.make_tensor("", element_type, array.shape, content, raw=raw)


def _constant(name: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], **attributes)


def _cast(source: str, result: str, to: int) -> onnx.NodeProto:
    return helper.make_node("Cast", [source], [result], to=to)


def _identity(source: str, result: str) -> onnx.NodeProto:
    return helper.make_node("Identity", [source], [result])


ZERO_AXIS = np.array([0])
CONSTANT_NODES: dict[str, list[onnx.NodeProto]] = {
    "Cast of integral floats": [_constant("c", value_floats=[0.0]), _cast("c", "a", TensorProto.INT64)],
    "tensor of raw data": [_constant("a", value=_tensor([0]))],
    "tensor of typed data": [_constant("a", value=_tensor([0], raw=False))],
    "a list of integers": [_constant("a", value_ints=[0])],
    "Identity of a constant": [_constant("c", value_ints=[0]), _identity("c", "a")],
    "Identity of Identity of an initializer": [_identity("zero", "h"), _identity("h", "a")],
    "a Cast from a smaller type": [
        _constant("c", value=_tensor([0], np.int32)),
        _cast("c", "a", TensorProto.INT64),
    ],
    "a Cast to a smaller type and back": [
        _cast("zero", "c", TensorProto.INT32),
        _identity("c", "d"),
        _cast("d", "a", TensorProto.INT64),
    ],
    "a Cast of typed uint8 data": [
        _constant("c", value=_tensor([0], np.uint8, raw=False)),
        _cast("c", "a", TensorProto.INT64),
    ],
}


def _squeeze_model(
    nodes: Sequence[onnx.NodeProto], feeds: Mapping[str, Array] | None = None
) -> onnx.ModelProto:
    inputs = ["x", *(feeds or {})]
    all_feeds = {"x": IMAGE, **(feeds or {})}
    squeeze = helper.make_node("Squeeze", ["x", "a"], ["y"], name="node")
    model = build([*nodes, squeeze], {name: all_feeds[name] for name in inputs}, ["y"], 13)
    if any("zero" in node.input for node in nodes):
        model.graph.initializer.append(helper.make_tensor("zero", TensorProto.INT64, [1], [0]))
    return model


@pytest.mark.parametrize("nodes", CONSTANT_NODES.values(), ids=CONSTANT_NODES)
def test_traces_constants_through_cast_and_identity(nodes: list[onnx.NodeProto], declare: Declare) -> None:
    model = _squeeze_model(nodes)
    result = _downgrade(model, TO_ATTRIBUTE, declare(TO_ATTRIBUTE))
    assert list(result.graph.node[-1].input) == ["x"]
    assert _attributes(result.graph.node[-1]) == {"axes": (0,)}
    assert_equal(run(result, {"x": IMAGE}), run(model, {"x": IMAGE}))


def test_reads_a_number_as_a_list_of_one(declare: Declare) -> None:
    """The runtime requires a list of axes, so it cannot run the original model."""
    result = _downgrade(_squeeze_model([_constant("a", value_int=0)]), TO_ATTRIBUTE, declare(TO_ATTRIBUTE))
    assert_equal(run(result, {"x": IMAGE}), [IMAGE[0]])


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"value_floats": [1.0, 1.0, 2.0, 3.0]}, id="a list of floats"),
        pytest.param({"value": _tensor([1, 1, 2, 3], np.float32)}, id="tensor of raw data"),
        pytest.param({"value": _tensor([1, 1, 2, 3], np.float32, raw=False)}, id="tensor of typed data"),
        pytest.param({"value": _tensor([1, 1, 2, 3], np.float16)}, id="half precision, cast"),
    ],
)
def test_reads_float_constants(values: dict[str, Any], declare: Declare) -> None:
    cast = _cast("c", "s", TensorProto.FLOAT)
    model = _model(
        RewriteCase(SCALES_TO_ATTRIBUTE, {"x": IMAGE, "s": VECTOR}, {}), [_constant("c", **values), cast]
    )
    del model.graph.input[1]
    model.opset_import[0].version = 13
    result = _downgrade(model, SCALES_TO_ATTRIBUTE, declare(SCALES_TO_ATTRIBUTE))
    assert _attributes(result.graph.node[-1]) == {"scales": (1, 1, 2, 3)}
    del result.graph.node[:-1]
    assert_equal(run(result, {"x": IMAGE}), [IMAGE.repeat(2, 2).repeat(3, 3)])


VARIABLE_NODES: dict[str, tuple[list[onnx.NodeProto], dict[str, Array], bool]] = {
    "overridable initializer": ([], {"a": ZERO_AXIS}, True),
    "Identity of an overridable initializer": ([_identity("b", "a")], {"b": ZERO_AXIS}, True),
    "graph input": ([], {"a": ZERO_AXIS}, False),
    "power of constants": ([helper.make_node("Pow", ["zero", "zero"], ["a"])], {}, False),
    "inexact Cast": (
        [_constant("c", value_floats=[0.5]), _cast("c", "a", TensorProto.INT64)],
        {},
        False,
    ),
}


@pytest.mark.parametrize(("nodes", "feeds", "is_overridable"), VARIABLE_NODES.values(), ids=VARIABLE_NODES)
def test_refuses_inputs_that_are_not_constant(
    nodes: list[onnx.NodeProto], feeds: dict[str, Array], is_overridable: bool, declare: Declare
) -> None:
    model = _squeeze_model(nodes, feeds)
    for name in feeds if is_overridable else ():
        model.graph.initializer.append(helper.make_tensor(name, TensorProto.INT64, [1], [0]))
    with pytest.raises(ConversionRefused) as caught:
        _downgrade(model, TO_ATTRIBUTE, declare(TO_ATTRIBUTE))
    (refused,) = caught.value.refusals
    assert refused.reason == "input axes ('a') is not a constant"
    assert refused.remedy == "make the value an initializer that is not a graph input"


def test_reads_constants_of_an_enclosing_graph(declare: Declare) -> None:
    """A branch can use an initializer of the outer graph."""
    squeeze = helper.make_node("Squeeze", ["x", "a"], ["z"], name="node", domain=ACME)
    branch = helper.make_graph(
        [squeeze], "branch", [], [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)]
    )
    choice = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    feeds = {"x": IMAGE, "c": np.array(True)}
    model = build([choice], feeds, ["y"], {"": 13, ACME: 13}, initializers={"a": ZERO_AXIS})
    result = convert_version(model, {ACME: 11}, registry=declare(TO_ATTRIBUTE))
    for attribute in result.graph.node[0].attribute:
        assert _attributes(attribute.g.node[0]) == {"axes": (0,)}
