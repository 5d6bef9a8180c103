"""What a node needs before a step may rely on it, and what a step may leave behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, NodeProto, helper, numpy_helper
from support.running import build

from opshift.adapters.core.rewriter import Rewriter
from opshift.converter.convert import convert_version, plan_version
from opshift.converter.errors import ConversionRefused
from opshift.converter.rewrite.routes import router_for
from opshift.converter.rewrite.validation import validate_emitted_attributes, validate_node
from opshift.converter.rewrite.version_graph import Step
from opshift.model.errors import CannotConvert
from opshift.model.node import Node, Tensor
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import default_registry

X = np.ones((2, 3), np.float32)


def node(op_type: str, inputs: Sequence[str], outputs: Sequence[str] = ("y",), **stated: Any) -> NodeProto:
    made: NodeProto = helper.make_node(op_type, inputs, outputs, **stated)
    return made


def version(op_type: str, opset: int) -> OperatorVersion:
    return default_registry().get_schema(op_type, opset)


def untyped(attribute: NodeProto, name: str, **fields: Any) -> NodeProto:
    """As models before IR version 3 state attributes."""
    attribute.attribute.add(name=name, **fields)
    return attribute


def referring(changed: NodeProto, name: str, kind: int) -> NodeProto:
    changed.attribute.add(name=name, ref_attr_name="given", type=kind)
    return changed


SOUND = [
    ("as many inputs as there are", node("Clip", ["x", "low", "high"]), 13),
    ("optional inputs left out at the end", node("Clip", ["x"]), 13),
    ("optional inputs left out in the middle", node("Clip", ["x", "", "high"]), 13),
    ("more empty inputs than the operator has", node("Clip", ["x", "", ""]), 6),
    ("any number of variadic inputs", node("Concat", list("abcdefgh"), axis=0), 13),
    ("fewer outputs than the operator has", node("Dropout", ["x"]), 13),
    ("no outputs at all", node("Dropout", ["x"], []), 13),
    ("a whole number where a fraction belongs", node("Clip", ["x"], min=1), 6),
    ("an empty list", untyped(node("Squeeze", ["x"]), "axes", type=AttributeProto.INTS), 11),
    ("an attribute without its type", untyped(node("Clip", ["x"]), "min", f=0.5), 6),
    ("an attribute without its type and value", untyped(node("Squeeze", ["x"]), "axes"), 1),
    ("an attribute that a call gives", referring(node("Squeeze", ["x"]), "axes", AttributeProto.INTS), 11),
    ("a required attribute that a call gives", referring(node("Cast", ["x"]), "to", AttributeProto.INT), 13),
    ("a text that is among the choices", node("Pad", ["x", "p"], mode="edge"), 13),
    ("a choice that is left empty", node("MaxPool", ["x"], kernel_shape=[1], auto_pad=""), 11),
    ("a choice that a call gives", referring(node("Pad", ["x", "p"]), "mode", AttributeProto.STRING), 13),
    (
        "a choice of an older version",
        node("Resize", ["x", "", "s"], coordinate_transformation_mode="tf_half_pixel_for_nn"),
        13,
    ),
    ("an attribute that the operator does not have", node("Relu", ["x"], alpha=0.5), 13),
]


@pytest.mark.parametrize(("proto", "opset"), [row[1:] for row in SOUND], ids=[row[0] for row in SOUND])
def test_a_node_is_sound_with(proto: NodeProto, opset: int) -> None:
    found = version(proto.op_type, opset)
    versions = default_registry().operator(proto.op_type)
    assert versions is not None
    older = [each for each in versions.versions if each.since_version < found.since_version]
    validate_node(Node.from_proto(proto), found, older)


UNSOUND = [
    ("no input", node("Clip", []), 13, "has 0 inputs; ai.onnx.Clip:13 expects 1 to 3"),
    ("an input too many", node("Clip", list("abcd")), 13, "has 4 inputs; ai.onnx.Clip:13 expects 1 to 3"),
    (
        "no variadic input",
        node("Concat", [], axis=0),
        13,
        "has 0 inputs; ai.onnx.Concat:13 expects 1 or more",
    ),
    (
        "an output too many",
        node("Relu", ["x"], ["y", "z"]),
        13,
        "has 2 outputs; ai.onnx.Relu:13 expects 0 to 1",
    ),
    ("a required attribute missing", node("Cast", ["x"]), 13, "lacks attribute 'to', which ai.onnx.Cast:13"),
    ("a fraction where a number belongs", node("Cast", ["x"], to=1.5), 13, "'to' is not of type INT"),
    ("a text where a number belongs", node("Cast", ["x"], to="FLOAT"), 13, "'to' is not of type INT"),
    ("a number where a text belongs", node("Pad", ["x", "p"], mode=1), 13, "'mode' is not of type STRING"),
    ("a number where a list belongs", node("Squeeze", ["x"], axes=0), 11, "'axes' is not of type INTS"),
    ("a list where a number belongs", node("Softmax", ["x"], axis=[0]), 11, "'axis' is not of type INT"),
    ("a list of fractions", node("Squeeze", ["x"], axes=[0.5]), 11, "'axes' is not of type INTS"),
    (
        "a choice of a newer version",
        node("Pad", ["x", "p"], mode="wrap"),
        11,
        "'mode' is 'wrap', which ai.onnx.Pad:11 does not support",
    ),
    ("a choice written otherwise", node("Pad", ["x", "p"], mode="Edge"), 13, "'mode' is 'Edge', which"),
    (
        "a tensor where a graph belongs",
        node("Loop", ["m", "c"], body=numpy_helper.from_array(X)),
        13,
        "'body' is not of type GRAPH",
    ),
    (
        "a number where a tensor belongs",
        node("ConstantOfShape", ["s"], value=1),
        13,
        "'value' is not of type TENSOR",
    ),
    ("an untyped text", untyped(node("Squeeze", ["x"]), "axes", s=b"0"), 1, "'axes' is not of type INTS"),
]


@pytest.mark.parametrize(
    ("proto", "opset", "reason"), [row[1:] for row in UNSOUND], ids=[row[0] for row in UNSOUND]
)
def test_a_node_is_not_sound_with(proto: NodeProto, opset: int, reason: str) -> None:
    with pytest.raises(CannotConvert) as caught:
        validate_node(Node.from_proto(proto), version(proto.op_type, opset))
    assert reason in caught.value.reason
    assert "opshift check" in caught.value.remedy


def test_a_node_that_nothing_happens_to_may_be_as_it_likes() -> None:
    """It is somebody else's to judge; converting it changes nothing for the worse."""
    model = build([node("Relu", ["x", "x"], ["y"], alpha="no")], {"x": X}, ["y"], 9)
    assert convert_version(model, 11).graph == model.graph


WRITTEN: list[tuple[str, str, dict[str, Any], bool]] = [
    ("a number", "Softmax", {"axis": 1}, True),
    ("a list of numbers", "Transpose", {"perm": [1, 0]}, True),
    ("a range of numbers", "Transpose", {"perm": range(2)}, True),
    ("a text as bytes", "Resize", {"mode": b"linear"}, True),
    ("a text", "Resize", {"mode": "linear"}, True),
    ("a constant", "ConstantOfShape", {"value": Tensor("int64", (1,), (7,))}, True),
    ("a truth value", "Softmax", {"axis": True}, False),
    ("a number that 64 bits cannot hold", "Softmax", {"axis": 2**63}, False),
    ("nothing", "Softmax", {"axis": None}, False),
    ("a fraction among numbers", "Transpose", {"perm": [1, 0.0]}, False),
    ("a text where numbers belong", "Transpose", {"perm": "10"}, False),
    ("a constant that cannot be", "ConstantOfShape", {"value": Tensor("int64", (1,), (0.5,))}, False),
    ("an attribute of another operator", "Softmax", {"perm": [1, 0]}, False),
]


@pytest.mark.parametrize(
    ("op_type", "attributes", "fits"), [row[1:] for row in WRITTEN], ids=[row[0] for row in WRITTEN]
)
def test_a_step_may_leave_behind(op_type: str, attributes: dict[str, Any], fits: bool) -> None:
    written = Node(op_type, ["x"], ["y"], attributes)
    if fits:
        validate_emitted_attributes(written, version(op_type, 13))
        return
    with pytest.raises(CannotConvert) as caught:
        validate_emitted_attributes(written, version(op_type, 13))
    assert str(next(iter(attributes))) in caught.value.reason


def failing(error: Exception) -> Callable[[Node, Rewriter], None]:
    def step(node: Node, out: Rewriter) -> None:
        raise error

    return step


def leaving_wrong(node: Node, out: Rewriter) -> None:
    out.replace(node, attributes={"axis": "last"})


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (failing(IndexError("tuple index out of range")), "IndexError: tuple index out of range"),
        (failing(KeyError("b")), "KeyError: 'b'"),
        (failing(ZeroDivisionError("division by zero")), "ZeroDivisionError"),
        (leaving_wrong, "'axis' of ai.onnx.Softmax:13 cannot hold 'last'"),
    ],
    ids=["an index out of range", "a key that is not there", "a division by zero", "a wrong attribute"],
)
def test_a_step_that_fails_refuses_its_node_and_no_other(
    step: Callable[[Node, Rewriter], None], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = [
        node("Softmax", ["x"], ["a"], name="broken", axis=1),
        node("Squeeze", ["a"], ["b"], name="fine", axes=[0]),
        node("Softmax", ["b"], ["y"], name="broken too", axis=0),
    ]
    model = build(nodes, {"x": X}, ["y"], 11)
    before = model.SerializeToString()
    edge = Step(version("Softmax", 11), version("Softmax", 13), 13, "adapter", step)
    monkeypatch.setattr(
        "opshift.converter.rewrite.routes.Router._path",
        lambda self, operator, target: [edge] if operator.name == "Softmax" else [],
    )
    monkeypatch.setattr("opshift.converter.survey.node_analysis.router_for", _fresh_router)
    plan = plan_version(model, 13)
    assert [each.place for each in plan.refusals] == ["graph, node 'broken'", "graph, node 'broken too'"]
    assert all(words in each.reason and "bug" in each.remedy for each in plan.refusals)
    with pytest.raises(ConversionRefused):
        convert_version(model, 13, inplace=True)
    assert model.SerializeToString() == before


def _fresh_router(registry: Any, targets: frozenset[tuple[str, int]]) -> Any:
    """One that no other conversion has left its routes in, or will find these in."""
    return router_for.__wrapped__(registry, targets)
