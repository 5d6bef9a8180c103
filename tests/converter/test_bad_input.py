"""Whatever is wrong with a model or a target is told by one typed error, and the model stays as it is."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import NodeProto, TensorProto, helper
from support.running import build

from opshift.converter.convert import convert, convert_version, plan_version
from opshift.converter.errors import ConversionRefused, InvalidModel, UsageError
from opshift.registry.errors import OpshiftError, UnknownDomain, UnknownOpset
from opshift.registry.messages import ModelProto

X = np.ones((2, 3), np.float32)


def node(op_type: str, inputs: list[str], outputs: list[str], name: str = "", **stated: Any) -> NodeProto:
    made: NodeProto = helper.make_node(op_type, inputs, outputs, name, **stated)
    return made


def of(
    *nodes: NodeProto, opset: int = 11, outputs: tuple[str, ...] = ("y",), **options: Any
) -> onnx.ModelProto:
    return build(nodes, {"x": X}, outputs, opset, **options)


def sound() -> onnx.ModelProto:
    return of(node("Clip", ["x"], ["c"], "clip", min=0.0), node("Relu", ["c"], ["y"], "relu"), opset=9)


def changed(change: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    model = sound()
    change(model)
    return model


def imported(*imports: tuple[str, int]) -> onnx.ModelProto:
    model = sound()
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(*each) for each in imports)
    return model


def whole_numbers(model: onnx.ModelProto) -> onnx.ModelProto:
    """Clip-6 takes no integers; the bound, 0.5, is none."""
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    model.graph.node[0].attribute[0].f = 0.5
    return model


def with_raw(payload: bytes, dims: tuple[int, ...] = (2,)) -> onnx.ModelProto:
    """Upsample, whose scales have to be known on the way to 8, with scales of these bytes."""
    model = of(node("Upsample", ["x", "scales"], ["y"], "upsample"), opset=9)
    scales = model.graph.initializer.add(name="scales", data_type=TensorProto.FLOAT, raw_data=payload)
    scales.dims.extend(dims)
    return model


def nested(depth: int) -> onnx.ModelProto:
    """If in If in If, as only a program can make them: from bytes, protobuf reads a third as deep."""
    output = helper.make_tensor_value_info("t", TensorProto.FLOAT, None)
    graph = helper.make_graph([node("Clip", ["x"], ["t"], min=0.0)], "innermost", [], [output])
    for level in range(depth):
        inner = graph
        graph = onnx.GraphProto(name=f"level {level}", output=[output])
        branch = graph.node.add(op_type="If", input=["yes"], output=["t"])
        for name in ("then_branch", "else_branch"):
            attribute = branch.attribute.add(name=name, type=onnx.AttributeProto.GRAPH)
            if name == "then_branch":
                attribute.g.CopyFrom(inner)
            else:
                attribute.g.output.append(output)
                attribute.g.node.add(op_type="Relu", input=["x"], output=["t"])
    model = of(node("Relu", ["x"], ["y"]), opset=10)
    model.graph.CopyFrom(graph)
    model.graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]))
    model.graph.input.append(helper.make_tensor_value_info("yes", TensorProto.BOOL, []))
    return model


def nested_twice() -> onnx.ModelProto:
    model = nested(1)
    twice(model.graph.node[0])
    return model


def squeeze(data: str, output: str) -> NodeProto:
    return node("Squeeze", [data], [output], "squeeze", axes=[0])


def twice(stated: NodeProto) -> NodeProto:
    """The node with its last attribute once more."""
    stated.attribute.extend([stated.attribute[-1]])
    return stated


def not_text(model: onnx.ModelProto) -> ModelProto:
    """The model with bytes that are no UTF-8 instead of `PLACEHOLDER`."""
    return ModelProto.FromString(model.SerializeToString().replace(b"PLACEHOLDER", b"\xff\xfePLACEHOLD"))


class Case(NamedTuple):
    """A model that cannot be converted, the error it ends in, words of its reason and of its remedy."""

    title: str
    model: Callable[[], Any]
    error: type[OpshiftError]
    reason: str
    remedy: str = ""
    target: Any = 13


CASES = [
    Case("no graph", onnx.ModelProto, InvalidModel, "no graph", "the right file"),
    Case("no graph but imports", lambda: changed(lambda m: m.ClearField("graph")), InvalidModel, "no graph"),
    Case("no opset import", lambda: imported(), InvalidModel, "no opset import", "add one"),
    Case(
        "one domain imported twice",
        lambda: imported(("", 9), ("", 10)),
        InvalidModel,
        "imported twice, as opset 9 and 10",
        "keep",
    ),
    Case(
        "one domain imported under both its names",
        lambda: imported(("", 9), ("ai.onnx", 10)),
        InvalidModel,
        "imported twice, as opset 9 and 10",
        "keep",
    ),
    Case("opset 99", lambda: imported(("", 99)), ConversionRefused, "no opset 99", "opset version from 1 to"),
    Case("opset 0", lambda: imported(("", 0)), ConversionRefused, "no opset 0", "opset version from 1 to"),
    Case("opset -1", lambda: imported(("", -1)), ConversionRefused, "no opset -1", "opset version from 1 to"),
    Case(
        "no import of the default domain",
        lambda: imported(("ai.onnx.ml", 2)),
        ConversionRefused,
        "'ai.onnx', which has no opset import",
        "add an opset import",
    ),
    Case(
        "an operator that does not exist",
        lambda: of(node("Softmaxx", ["x"], ["y"])),
        ConversionRefused,
        "no operator 'Softmaxx'",
        "Softmax",
    ),
    Case(
        "an operator like no other",
        lambda: of(node("Zzzzzzzz", ["x"], ["y"])),
        ConversionRefused,
        "no operator 'Zzzzzzzz'",
        "check the name",
    ),
    Case(
        "an operator from the future",
        lambda: of(node("Gelu", ["x"], ["y"])),
        ConversionRefused,
        "Gelu is not in opset 11",
        "opset 20",
    ),
    Case(
        "an operator that was removed before",
        lambda: of(node("Upsample", ["x"], ["y"], scales=[1.0, 1.0]), node("ImageScaler", ["x"], ["z"])),
        ConversionRefused,
        "ImageScaler was removed",
    ),
    Case(
        "a cycle",
        lambda: of(node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])),
        InvalidModel,
        "'b' is produced by a later node",
        "sort the nodes",
    ),
    Case(
        "a node that reads itself",
        lambda: of(node("Add", ["x", "y"], ["y"])),
        InvalidModel,
        "'y' is produced by a later node",
    ),
    Case(
        "nodes out of order",
        lambda: of(node("Relu", ["a"], ["y"]), node("Relu", ["x"], ["a"])),
        InvalidModel,
        "'a' is produced by a later node",
        "sort the nodes",
    ),
    Case(
        "a value made by two nodes",
        lambda: of(node("Relu", ["x"], ["y"]), node("Abs", ["x"], ["y"])),
        InvalidModel,
        "'y' is produced twice",
    ),
    Case(
        "a value made twice by one node",
        lambda: of(node("Split", ["x"], ["y", "y"])),
        InvalidModel,
        "'y' is produced twice",
    ),
    Case(
        "a node that makes a graph input",
        lambda: of(node("Relu", ["x"], ["x"]), node("Relu", ["x"], ["y"])),
        InvalidModel,
        "'x' is produced twice",
    ),
    Case(
        "a node that makes an initializer",
        lambda: of(node("Relu", ["x"], ["w"]), node("Relu", ["w"], ["y"]), initializers={"w": X}),
        InvalidModel,
        "'w' is produced twice",
    ),
    Case(
        "a node that makes a sparse initializer",
        lambda: changed(lambda m: m.graph.sparse_initializer.add().values.MergeFrom(TensorProto(name="c"))),
        InvalidModel,
        "'c' is produced twice",
    ),
    Case(
        "an output that nobody makes",
        lambda: of(node("Relu", ["x"], ["a"])),
        InvalidModel,
        "output 'y' is not produced by any node",
    ),
    Case(
        "an input that nobody makes",
        lambda: of(node("Relu", ["nothing"], ["y"])),
        InvalidModel,
        "input 'nothing' is not produced by any node",
    ),
    Case(
        "graphs 200 deep within each other",
        lambda: nested(200),
        InvalidModel,
        "graphs are nested more than 64 deep",
    ),
    Case(
        "bytes that are no text for an input of a node that changes",
        lambda: not_text(of(node("Abs", ["x"], ["PLACEHOLDER"]), squeeze("PLACEHOLDER", "y"))),
        InvalidModel,
        "not UTF-8",
    ),
    Case(
        "bytes that are no text for an output of a node that changes",
        lambda: not_text(of(squeeze("x", "PLACEHOLDER"), node("Abs", ["PLACEHOLDER"], ["y"]))),
        InvalidModel,
        "not UTF-8",
    ),
    Case(
        "bytes that are no text for an operator",
        lambda: not_text(of(node("PLACEHOLDER", ["x"], ["y"]))),
        ConversionRefused,
        "no operator",
    ),
    Case(
        "an initializer of too few bytes where its value is needed",
        lambda: with_raw(b"\0" * 4),
        ConversionRefused,
        "ai.onnx.Upsample:9: ",
        target=8,
    ),
    Case(
        "an initializer of half an element",
        lambda: with_raw(b"\0" * 9),
        ConversionRefused,
        "ai.onnx.Upsample:9: ",
        target=8,
    ),
    Case(
        "an initializer of a million bytes too many",
        lambda: with_raw(b"\0" * 1_000_000),
        ConversionRefused,
        "ai.onnx.Upsample:9: ",
        target=8,
    ),
    Case(
        "an initializer of negative size",
        lambda: with_raw(b"\0" * 4, (-1,)),
        ConversionRefused,
        "ai.onnx.Upsample:9: ",
        target=8,
    ),
    Case(
        "a node without its inputs",
        lambda: of(node("Softmax", [], ["y"])),
        ConversionRefused,
        "has 0 inputs; ai.onnx.Softmax:11 expects 1 to 1",
        "opshift check",
    ),
    Case(
        "a node with an input too many",
        lambda: of(node("Softmax", ["x", "x"], ["y"])),
        ConversionRefused,
        "has 2 inputs; ai.onnx.Softmax:11 expects 1 to 1",
    ),
    Case(
        "a node with an output too many",
        lambda: of(node("Softmax", ["x"], ["y", "z"])),
        ConversionRefused,
        "has 2 outputs; ai.onnx.Softmax:11 expects 0 to 1",
    ),
    Case(
        "an attribute that is not there",
        lambda: of(node("Upsample", ["x"], ["y"], mode="nearest"), opset=8),
        ConversionRefused,
        "lacks attribute 'scales', which ai.onnx.Upsample:7 requires",
    ),
    Case(
        "a list of fractions as axes",
        lambda: of(node("Unsqueeze", ["x"], ["y"], axes=[1.5])),
        ConversionRefused,
        "attribute 'axes' is not of type INTS",
    ),
    Case(
        "an attribute that is stated twice",
        lambda: of(twice(node("Softmax", ["x"], ["y"], axis=1))),
        ConversionRefused,
        "has attribute 'axis' twice",
    ),
    Case(
        "a graph that is stated twice",
        lambda: nested_twice(),
        InvalidModel,
        "attribute 'else_branch' occurs twice",
        "keep one",
    ),
    Case(
        "a text as an axis",
        lambda: of(node("Softmax", ["x"], ["y"], axis="last")),
        ConversionRefused,
        "attribute 'axis' is not of type INT",
    ),
    Case(
        "a bound that the stated type cannot hold",
        lambda: whole_numbers(sound()),
        ConversionRefused,
        "",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_a_model_with(case: Case) -> None:
    model = case.model()
    before = copy.deepcopy(model)
    for call in (convert_version, convert):
        with pytest.raises(OpshiftError) as caught:
            call(model, case.target)
        assert type(caught.value) is case.error
        assert case.reason in caught.value.reason
        assert case.remedy in caught.value.remedy
        assert model == before


@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_nothing_is_touched_in_place_either_in_a_model_with(case: Case) -> None:
    model = case.model()
    before = copy.deepcopy(model)
    with pytest.raises(OpshiftError):
        convert_version(model, case.target, inplace=True)
    assert model == before


@pytest.mark.parametrize(
    "make",
    [
        lambda: imported(("", 9), ("", 9)),
        lambda: imported(("", 9), ("ai.onnx", 9)),
        lambda: nested(30),
        lambda: of(node("Relu", ["x"], ["y"]), initializers={"unused": X}),
        lambda: of(node("Split", ["x"], ["y", ""], axis=0)),
        lambda: not_text(of(node("Abs", ["x"], ["PLACEHOLDER"]), node("Abs", ["PLACEHOLDER"], ["y"]))),
        lambda: not_text(of(node("Softmax", ["x"], ["y"], "PLACEHOLDER", axis=0))),
    ],
    ids=[
        "one import twice",
        "one import under both names of its domain",
        "graphs 30 deep within each other",
        "an initializer that nobody reads",
        "an output without a name",
        "bytes that are no text where nothing changes",
        "bytes that are no text for a node",
    ],
)
def test_a_model_is_accepted_with(make: Callable[[], Any]) -> None:
    result = convert_version(make(), 13)
    assert {each.version for each in result.opset_import} == {13}


IN_CHANGING_NODES = [each for each in CASES if "of a node that changes" in each.title]


@pytest.mark.parametrize("case", IN_CHANGING_NODES, ids=[case.title for case in IN_CHANGING_NODES])
def test_what_is_no_text_is_told_after_nodes_that_are_alike(case: Case) -> None:
    for name in ("h", "PLACEHOLDER"):
        convert_version(of(squeeze("x", name), node("Abs", [name], ["y"])), 13)
    with pytest.raises(case.error, match=case.reason):
        convert_version(case.model(), 13)


def test_all_that_is_wrong_with_nodes_is_told_at_once() -> None:
    model = of(
        node("Softmaxx", ["x"], ["a"], "first"),
        node("Softmax", [], ["b"], "second"),
        node("Relu", ["x"], ["y"]),
        node("Nothing", ["x"], ["c"]),
    )
    with pytest.raises(ConversionRefused) as caught:
        convert_version(model, 13)
    assert [each.place for each in caught.value.refusals] == [
        "graph, node 'first'",
        "graph, node 'second'",
        "graph, node Nothing -> c",
    ]
    assert "and 2 more" in str(caught.value)


TARGETS = [
    ("0", 0, UnknownOpset),
    ("less than 0", -1, UnknownOpset),
    ("an opset of the future", 99, UnknownOpset),
    ("a truth value", True, UsageError),
    ("a word", "x", UsageError),
    ("nothing", "", UsageError),
    ("an empty mapping", {}, UsageError),
    ("an empty list", [], UsageError),
    ("a domain nobody defined", {"com.acme": 1}, UnknownDomain),
    ("a domain nobody defined, as text", "com.acme=1", UnknownDomain),
    ("a domain's opset of the future", "ai.onnx.ml=99", UnknownOpset),
    ("a domain without an opset", "ai.onnx.ml=", UsageError),
    ("a fraction", 17.5, UsageError),
    ("a mapping to text", {"": "17"}, UsageError),
    ("a mapping to nothing", {"": None}, UsageError),
    ("a mapping to a truth value", {"": True}, UsageError),
    ("one domain under both its names", {"": 17, "ai.onnx": 18}, UsageError),
    ("two numbers", ["17", "18"], UsageError),
    ("a release and another opset", ["onnx-1.12", "18"], UsageError),
    ("a release that never was", "onnx-9.9", UsageError),
    ("a product that is not known", "torch-2.0", UsageError),
    ("a number of 5,000 digits", "1" * 5000, UsageError),
    ("bytes", b"17", UsageError),
    ("any object", object(), UsageError),
]


@pytest.mark.parametrize(("target", "error"), [row[1:] for row in TARGETS], ids=[row[0] for row in TARGETS])
def test_a_target_that_is(target: Any, error: type[OpshiftError]) -> None:
    model = sound()
    for call in (convert_version, plan_version):
        with pytest.raises(OpshiftError) as caught:
            call(model, target)
        assert type(caught.value) is error
        assert caught.value.reason
        assert caught.value.remedy
    assert model == sound()


@pytest.mark.parametrize(
    "model",
    [None, 3, [], {}, object(), onnx.GraphProto(), TensorProto(), ModelProto, "no\0path", Path("/")],
    ids=[
        "None",
        "a number",
        "a list",
        "a mapping",
        "any object",
        "a graph",
        "a tensor",
        "a class",
        "a path with a null character",
        "a folder",
    ],
)
def test_no_model_is(model: Any) -> None:
    for call in (convert_version, plan_version):
        with pytest.raises(InvalidModel) as caught:
            call(model, 13)
        assert caught.value.reason


NOT_A_MODEL = [
    ("nothing", b""),
    ("text", b"# ONNX\nis not what this file holds\n"),
    ("one null byte", b"\0"),
    ("JSON", b'{"irVersion": 8, "graph": {}}'),
    ("a picture", b"\x89PNG\r\n\x1a\n" + b"\0" * 64),
    ("a tensor", helper.make_tensor("x", 1, [1], [1.0]).SerializeToString()),
    ("a graph without its model", sound().graph.SerializeToString()),
]


@pytest.mark.parametrize("data", [row[1] for row in NOT_A_MODEL], ids=[row[0] for row in NOT_A_MODEL])
def test_bytes_that_are_no_model_are(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    for given_model in (data, path):
        with pytest.raises(InvalidModel) as caught:
            convert_version(given_model, 13)
        assert caught.value.remedy


def test_a_model_that_is_cut_off_is_no_model() -> None:
    """Wherever it is cut: the opset import stands last."""
    data = sound().SerializeToString()
    assert data.endswith(sound().opset_import[0].SerializeToString())
    for length in range(len(data)):
        with pytest.raises(InvalidModel):
            convert_version(data[:length], 13)


def outcome(data: bytes, target: int) -> onnx.ModelProto | OpshiftError:
    try:
        return onnx.ModelProto.FromString(convert_version(data, target))
    except OpshiftError as error:
        return error


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_random_bytes_end_in_a_typed_error_or_a_model(data: bytes) -> None:
    found = outcome(data, 13)
    assert found.reason if isinstance(found, OpshiftError) else found.HasField("graph")


@given(st.data())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_changed_byte_ends_in_a_typed_error_or_a_model(data: st.DataObject) -> None:
    original = bytearray(sound().SerializeToString())
    original[data.draw(st.integers(0, len(original) - 1))] = data.draw(st.integers(0, 255))
    found = outcome(bytes(original), data.draw(st.sampled_from([7, 10, 13, 21])))
    assert found.reason if isinstance(found, OpshiftError) else found.HasField("graph")
