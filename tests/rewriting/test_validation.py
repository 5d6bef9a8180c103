"""Validation of the nodes that a step reads and of the nodes that it emits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, NodeProto, helper, numpy_helper
from support.execution import Feeds, build
from support.forms import FORMS, in_form

from opshift import check
from opshift.adapters.core.rewriter import Rewriter
from opshift.converter.convert import convert_version, plan_version
from opshift.converter.refusals import ConversionRefused
from opshift.model.errors import CannotConvert
from opshift.model.node import Node, Tensor
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import default_registry
from opshift.rewriting.router_for import router_for
from opshift.rewriting.validation import validate_emitted_attributes, validate_node
from opshift.rewriting.version_steps import VersionStep

X = np.ones((2, 3), np.float32)


def node(
    op_type: str, inputs: Sequence[str], outputs: Sequence[str] = ("y",), **attributes: Any
) -> NodeProto:
    result: NodeProto = helper.make_node(op_type, inputs, outputs, **attributes)
    return result


def version_of(op_type: str, opset: int) -> OperatorVersion:
    return default_registry().get_schema(op_type, opset)


def untyped(proto: NodeProto, name: str, **fields: Any) -> NodeProto:
    """Add an attribute in the form of models before IR version 3."""
    proto.attribute.add(name=name, **fields)
    return proto


def referring(proto: NodeProto, name: str, attribute_type: int) -> NodeProto:
    proto.attribute.add(name=name, ref_attr_name="given", type=attribute_type)
    return proto


VALID = [
    ("all inputs", node("Clip", ["x", "low", "high"]), 13),
    ("optional inputs omitted at the end", node("Clip", ["x"]), 13),
    ("optional inputs omitted in the middle", node("Clip", ["x", "", "high"]), 13),
    ("extra empty inputs", node("Clip", ["x", "", ""]), 6),
    ("variadic inputs", node("Concat", list("abcdefgh"), axis=0), 13),
    ("omitted outputs", node("Dropout", ["x"]), 13),
    ("no outputs", node("Dropout", ["x"], []), 13),
    ("integer for a float", node("Clip", ["x"], min=1), 6),
    ("empty list", untyped(node("Squeeze", ["x"]), "axes", type=AttributeProto.INTS), 11),
    ("private attribute", node("Clip", ["x"], __hint=1), 13),
    ("alternatives", node("Constant", [], value_int=1), 13),
    ("untyped attribute", untyped(node("Clip", ["x"]), "min", f=0.5), 6),
    ("untyped attribute without a value", untyped(node("Squeeze", ["x"]), "axes"), 1),
    ("attribute reference", referring(node("Squeeze", ["x"]), "axes", AttributeProto.INTS), 11),
    ("reference for a required attribute", referring(node("Cast", ["x"]), "to", AttributeProto.INT), 13),
    ("supported string", node("Pad", ["x", "p"], mode="edge"), 13),
    ("empty string for a choice", node("MaxPool", ["x"], kernel_shape=[1], auto_pad=""), 11),
    ("reference for a choice", referring(node("Pad", ["x", "p"]), "mode", AttributeProto.STRING), 13),
    (
        "string of an older version",
        node("Resize", ["x", "", "s"], coordinate_transformation_mode="tf_half_pixel_for_nn"),
        13,
    ),
]


@pytest.mark.parametrize(("proto", "opset"), [row[1:] for row in VALID], ids=[row[0] for row in VALID])
def test_accepts_valid_nodes(proto: NodeProto, opset: int) -> None:
    schema = version_of(proto.op_type, opset)
    versions = default_registry().operator(proto.op_type)
    assert versions is not None
    older = [each for each in versions.versions if each.since_version < schema.since_version]
    validate_node(Node.from_proto(proto), schema, older)


INVALID = [
    ("no inputs", node("Clip", []), 13, "has 0 inputs; ai.onnx.Clip:13 expects 1 to 3"),
    ("extra input", node("Clip", list("abcd")), 13, "has 4 inputs; ai.onnx.Clip:13 expects 1 to 3"),
    (
        "no variadic inputs",
        node("Concat", [], axis=0),
        13,
        "has 0 inputs; ai.onnx.Concat:13 expects 1 or more",
    ),
    (
        "extra output",
        node("Relu", ["x"], ["y", "z"]),
        13,
        "has 2 outputs; ai.onnx.Relu:13 expects 0 to 1",
    ),
    ("missing required attribute", node("Cast", ["x"]), 13, "lacks attribute 'to', which ai.onnx.Cast:13"),
    ("float for an integer", node("Cast", ["x"], to=1.5), 13, "'to' is not of type INT"),
    ("string for an integer", node("Cast", ["x"], to="FLOAT"), 13, "'to' is not of type INT"),
    ("integer for a string", node("Pad", ["x", "p"], mode=1), 13, "'mode' is not of type STRING"),
    ("integer for a list", node("Squeeze", ["x"], axes=0), 11, "'axes' is not of type INTS"),
    ("list for an integer", node("Softmax", ["x"], axis=[0]), 11, "'axis' is not of type INT"),
    ("list of floats", node("Squeeze", ["x"], axes=[0.5]), 11, "'axes' is not of type INTS"),
    (
        "string of a newer version",
        node("Pad", ["x", "p"], mode="wrap"),
        11,
        "'mode' is 'wrap', which ai.onnx.Pad:11 does not support",
    ),
    ("string in the wrong case", node("Pad", ["x", "p"], mode="Edge"), 13, "'mode' is 'Edge', which"),
    (
        "tensor for a graph",
        node("Loop", ["m", "c"], body=numpy_helper.from_array(X)),
        13,
        "'body' is not of type GRAPH",
    ),
    (
        "integer for a tensor",
        node("ConstantOfShape", ["s"], value=1),
        13,
        "'value' is not of type TENSOR",
    ),
    ("flag of 2", node("ReduceSum", ["x"], keepdims=2), 11, "'keepdims' is 2, which ai.onnx.ReduceSum:11"),
    ("negative flag", node("TopK", ["x", "k"], largest=-2), 11, "'largest' is -2, which"),
    ("number beyond the choices", node("LpNormalization", ["x"], p=3), 1, "'p' is 3, which"),
    ("constant without a value", node("Constant", []), 13, "has none of the attributes sparse_value, value,"),
    (
        "constant with two values",
        node("Constant", [], value_int=1, value_ints=[2]),
        13,
        "has value_int and value_ints of the attributes",
    ),
    (
        "attribute of a newer version",
        node("ReduceSum", ["x"], noop_with_empty_axes=1),
        11,
        "ai.onnx.ReduceSum:11 has no attribute 'noop_with_empty_axes'",
    ),
    ("untyped string", untyped(node("Squeeze", ["x"]), "axes", s=b"0"), 1, "'axes' is not of type INTS"),
]


@pytest.mark.parametrize(
    ("proto", "opset", "reason"), [row[1:] for row in INVALID], ids=[row[0] for row in INVALID]
)
def test_rejects_invalid_nodes(proto: NodeProto, opset: int, reason: str) -> None:
    with pytest.raises(CannotConvert) as caught:
        validate_node(Node.from_proto(proto), version_of(proto.op_type, opset))
    assert reason in caught.value.reason
    assert "opshift check" in caught.value.remedy


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("proto", "feeds", "opset", "target"),
    [
        pytest.param(
            node("ReduceSum", ["x", "a"], keepdims=2), {"x": X, "a": np.array([1])}, 13, 12, id="keepdims"
        ),
        pytest.param(
            node("TopK", ["x", "k"], ["y", "i"], sorted=3), {"x": X, "k": np.array([1])}, 11, 10, id="sorted"
        ),
        pytest.param(
            node("RotaryEmbedding", ["x", "c", "s"], interleaved=-2),
            {"x": np.ones((1, 2, 3, 4), np.float32), **dict.fromkeys("cs", np.ones((1, 3, 2), np.float32))},
            23,
            22,
            id="interleaved",
        ),
        pytest.param(node("Trilu", ["x"], upper=5), {"x": X}, 14, 13, id="upper"),
        pytest.param(node("Clip", ["x"], low=2.0), {"x": X}, 6, 11, id="undefined attribute"),
    ],
)
def test_refuses_nodes_that_break_their_definition(
    proto: NodeProto, feeds: Feeds, opset: int, target: int, form: str
) -> None:
    outputs = {name: 7 if name == "i" else 1 for name in proto.output}
    model, _ = in_form(form, [proto], feeds, outputs, opset)
    with pytest.raises(ConversionRefused) as caught:
        convert_version(model, target)
    assert all("attribute" in each.reason for each in caught.value.refusals)
    assert {"node.attribute-flag", "node.attribute-known"} & {each.rule for each in check(model)}


@pytest.mark.parametrize("form", [each for each in FORMS if each != "no shapes"])
@pytest.mark.parametrize("axis", [2, -3])
@pytest.mark.parametrize(
    ("op_type", "feeds", "opset", "target"),
    [
        ("LayerNormalization", {"x": X, "s": np.ones(3, np.float32)}, 17, 16),
        ("Softmax", {"x": X}, 13, 12),
        ("ArgMax", {"x": X}, 13, 10),
        ("TopK", {"x": X, "k": np.array([1])}, 11, 10),
        ("LpNormalization", {"x": X}, 22, 1),
        ("GatherElements", {"x": X, "i": np.zeros((2, 3), np.int64)}, 13, 10),
    ],
)
def test_refuses_axes_out_of_range(
    op_type: str, feeds: Feeds, opset: int, target: int, axis: int, form: str
) -> None:
    outputs = ["y", "z"] if op_type == "TopK" else ["y"]
    proto = node(op_type, list(feeds), outputs, axis=axis)
    model, _ = in_form(form, [proto], feeds, dict.fromkeys(outputs, 1), opset)
    # The rank of an input of a function depends on its calls.
    assert form == "function" or "node.axis" in {each.rule for each in check(model)}
    if op_type == "LpNormalization":
        return
    with pytest.raises(ConversionRefused) as caught:
        convert_version(model, target)
    assert all(f"axis {axis} is out of range" in each.reason for each in caught.value.refusals)


@pytest.mark.parametrize("is_declared", [True, False], ids=["graph input", "output of a node"])
def test_checks_axes_that_no_step_reads_only_without_inference(is_declared: bool) -> None:
    nodes = [node("Relu", ["x"], ["r"]), node("Squeeze", ["x" if is_declared else "r", "a"])]
    model = build(nodes, {"x": X}, ["y"], 13, initializers={"a": np.array([5])})
    reasons = [each.reason for each in plan_version(model, 11).refusals]
    assert reasons == (["axis 5 is out of range for 'x', which has 2 dimensions"] if is_declared else [])
    assert "node.axis" in {each.rule for each in check(model)}


def test_nodes_with_invalid_flags_yield_no_shape() -> None:
    """The node with the flag does not change, but runtimes disagree on the rank of its result."""
    nodes = [node("ReduceMax", ["x"], ["r"], keepdims=2, axes=[1]), node("Softmax", ["r"], axis=1)]
    (refusal,) = plan_version(build(nodes, {"x": np.ones((2, 3, 4), np.float32)}, ["y"], 13), 12).refusals
    assert refusal.reason == "the rank of 'r' is unknown"


def test_ignores_kept_nodes() -> None:
    """The conversion does not change these nodes, so it does not validate them."""
    model = build([node("Relu", ["x", "x"], ["y"], alpha="no")], {"x": X}, ["y"], 9)
    assert convert_version(model, 11).graph == model.graph


EMITTED: list[tuple[str, str, dict[str, Any], bool]] = [
    ("integer", "Softmax", {"axis": 1}, True),
    ("list of integers", "Transpose", {"perm": [1, 0]}, True),
    ("range of integers", "Transpose", {"perm": range(2)}, True),
    ("bytes", "Resize", {"mode": b"linear"}, True),
    ("string", "Resize", {"mode": "linear"}, True),
    ("constant", "ConstantOfShape", {"value": Tensor("int64", (1,), (7,))}, True),
    ("boolean", "Softmax", {"axis": True}, False),
    ("integer beyond 64 bits", "Softmax", {"axis": 2**63}, False),
    ("None", "Softmax", {"axis": None}, False),
    ("float in a list of integers", "Transpose", {"perm": [1, 0.0]}, False),
    ("string for a list", "Transpose", {"perm": "10"}, False),
    ("invalid constant", "ConstantOfShape", {"value": Tensor("int64", (1,), (0.5,))}, False),
    ("attribute of a different operator", "Softmax", {"perm": [1, 0]}, False),
]


@pytest.mark.parametrize(
    ("op_type", "attributes", "is_valid"), [row[1:] for row in EMITTED], ids=[row[0] for row in EMITTED]
)
def test_validates_emitted_attributes(op_type: str, attributes: dict[str, Any], is_valid: bool) -> None:
    emitted = Node(op_type, ["x"], ["y"], attributes)
    if is_valid:
        validate_emitted_attributes(emitted, version_of(op_type, 13))
        return
    with pytest.raises(CannotConvert) as caught:
        validate_emitted_attributes(emitted, version_of(op_type, 13))
    assert str(next(iter(attributes))) in caught.value.reason


def raising_step(error: Exception) -> Callable[[Node, Rewriter], None]:
    def step(node: Node, out: Rewriter) -> None:
        raise error

    return step


def step_with_invalid_attribute(node: Node, out: Rewriter) -> None:
    out.replace(node, attributes={"axis": "last"})


def step_with_fractional_dimension(node: Node, out: Rewriter) -> None:
    out.replace(node, inputs=[out.tensor(Tensor("float", (1.5,), ()))])  # type: ignore[arg-type]


MALFORMED = "the node does not have the form that ai.onnx.Softmax:11 requires"


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (raising_step(IndexError("tuple index out of range")), MALFORMED),
        (raising_step(KeyError("b")), MALFORMED),
        (raising_step(ZeroDivisionError("division by zero")), MALFORMED),
        (step_with_fractional_dimension, MALFORMED),
        (step_with_invalid_attribute, "'axis' of ai.onnx.Softmax:13 cannot hold 'last'"),
    ],
    ids=["IndexError", "KeyError", "ZeroDivisionError", "fractional dimension", "invalid attribute"],
)
def test_raising_step_refuses_only_its_nodes(
    step: Callable[[Node, Rewriter], None], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = [
        node("Softmax", ["x"], ["a"], name="broken", axis=1),
        node("Squeeze", ["a"], ["b"], name="fine", axes=[0]),
        node("Softmax", ["b"], ["y"], name="broken too", axis=0),
    ]
    model = build(nodes, {"x": X}, ["y"], 11)
    before = model.SerializeToString()
    broken_step = VersionStep(version_of("Softmax", 11), version_of("Softmax", 13), 13, "adapter", step)
    monkeypatch.setattr(
        "opshift.rewriting.routes.Router._steps_of_path",
        lambda self, operator, version, target: [broken_step] if operator.name == "Softmax" else [],
    )
    monkeypatch.setattr("opshift.converter.plan.node_analysis.router_for", _fresh_router)
    plan = plan_version(model, 13)
    assert [each.place for each in plan.refusals] == ["graph, node 'broken'", "graph, node 'broken too'"]
    assert all(reason in each.reason and "bug" in each.remedy for each in plan.refusals)
    with pytest.raises(ConversionRefused):
        convert_version(model, 13, inplace=True)
    assert model.SerializeToString() == before


def _fresh_router(*arguments: Any) -> Any:
    """Return a router that shares no cached routes with other conversions."""
    return router_for.__wrapped__(*arguments)
