"""Invalid models and targets raise one typed error and leave the model unchanged."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import NodeProto, TensorProto, helper
from support.execution import build

from opshift import DoesNotFit, diagnose, fit, infer, runs
from opshift.analysis.reach import reach
from opshift.converter.convert import convert, convert_version, plan_version
from opshift.converter.refusals import ConversionRefused
from opshift.model.errors import InvalidModel, OpshiftError, UsageError
from opshift.model.messages import ModelProto
from opshift.registry.errors import UnknownDomain, UnknownOpset

X = np.ones((2, 3), np.float32)
RUNTIME = "onnxruntime-1.31.1"


def node(op_type: str, inputs: list[str], outputs: list[str], name: str = "", **attributes: Any) -> NodeProto:
    result: NodeProto = helper.make_node(op_type, inputs, outputs, name, **attributes)
    return result


def model_of(
    *nodes: NodeProto, opset: int = 11, outputs: tuple[str, ...] = ("y",), **options: Any
) -> onnx.ModelProto:
    return build(nodes, {"x": X}, outputs, opset, **options)


def valid_model() -> onnx.ModelProto:
    return model_of(node("Clip", ["x"], ["c"], "clip", min=0.0), node("Relu", ["c"], ["y"], "relu"), opset=9)


def edited(edit: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    model = valid_model()
    edit(model)
    return model


def with_imports(*imports: tuple[str, int]) -> onnx.ModelProto:
    model = valid_model()
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(*each) for each in imports)
    return model


def with_integer_input(model: onnx.ModelProto) -> onnx.ModelProto:
    """Declare an integer input, which Clip-6 does not support, next to a fractional bound."""
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    model.graph.node[0].attribute[0].f = 0.5
    return model


def with_raw_scales(payload: bytes, dims: tuple[int, ...] = (2,)) -> onnx.ModelProto:
    """Return an Upsample with these bytes as scales; a downgrade to opset 8 reads their values."""
    model = model_of(node("Upsample", ["x", "scales"], ["y"], "upsample"), opset=9)
    scales = model.graph.initializer.add(name="scales", data_type=TensorProto.FLOAT, raw_data=payload)
    scales.dims.extend(dims)
    return model


def nested_branches(depth: int) -> onnx.ModelProto:
    """Nest If nodes to this depth; protobuf cannot parse the deepest of these models from bytes."""
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
    model = model_of(node("Relu", ["x"], ["y"]), opset=10)
    model.graph.CopyFrom(graph)
    model.graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]))
    model.graph.input.append(helper.make_tensor_value_info("yes", TensorProto.BOOL, []))
    return model


def with_duplicate_branch() -> onnx.ModelProto:
    model = nested_branches(1)
    duplicate_last_attribute(model.graph.node[0])
    return model


def squeeze(data: str, output: str) -> NodeProto:
    return node("Squeeze", [data], [output], "squeeze", axes=[0])


def duplicate_last_attribute(proto: NodeProto) -> NodeProto:
    """Append a copy of the last attribute of the node."""
    proto.attribute.extend([proto.attribute[-1]])
    return proto


def with_invalid_utf8(model: onnx.ModelProto) -> ModelProto:
    """Replace `PLACEHOLDER` in the serialized model with bytes that are not UTF-8."""
    return ModelProto.FromString(model.SerializeToString().replace(b"PLACEHOLDER", b"\xff\xfePLACEHOLD"))


class Case(NamedTuple):
    """A model that cannot be converted, the expected error, and parts of its reason and remedy."""

    title: str
    model: Callable[[], Any]
    error: type[OpshiftError]
    reason: str
    remedy: str = ""
    target: Any = 13


CASES = [
    Case("no graph", onnx.ModelProto, InvalidModel, "no graph", "the right file"),
    Case("only opset imports", lambda: edited(lambda m: m.ClearField("graph")), InvalidModel, "no graph"),
    Case("no opset import", lambda: with_imports(), InvalidModel, "no opset import", "doctor --fix"),
    Case(
        "domain imported twice",
        lambda: with_imports(("", 9), ("", 10)),
        InvalidModel,
        "imported twice, as opset 9 and 10",
        "doctor --fix",
    ),
    Case(
        "default domain imported under both names",
        lambda: with_imports(("", 9), ("ai.onnx", 10)),
        InvalidModel,
        "imported twice, as opset 9 and 10",
        "doctor --fix",
    ),
    Case(
        "opset 99",
        lambda: with_imports(("", 99)),
        ConversionRefused,
        "no opset 99",
        "opset version from 1 to",
    ),
    Case(
        "opset 0", lambda: with_imports(("", 0)), ConversionRefused, "no opset 0", "opset version from 1 to"
    ),
    Case(
        "opset -1",
        lambda: with_imports(("", -1)),
        ConversionRefused,
        "no opset -1",
        "opset version from 1 to",
    ),
    Case(
        "no import of the default domain",
        lambda: with_imports(("ai.onnx.ml", 2)),
        ConversionRefused,
        "'ai.onnx', which has no opset import",
        "add an opset import",
    ),
    Case(
        "misspelled operator",
        lambda: model_of(node("Softmaxx", ["x"], ["y"])),
        ConversionRefused,
        "no operator 'Softmaxx'",
        "Softmax",
    ),
    Case(
        "operator without similar names",
        lambda: model_of(node("Zzzzzzzz", ["x"], ["y"])),
        ConversionRefused,
        "no operator 'Zzzzzzzz'",
        "check the name",
    ),
    Case(
        "operator of a later opset",
        lambda: model_of(node("Gelu", ["x"], ["y"])),
        ConversionRefused,
        "Gelu is not in opset 11",
        "opshift doctor IN OUT --fix",
    ),
    Case(
        "removed operator without a replacement",
        lambda: model_of(node("ATen", ["x"], ["y"], operator="a")),
        ConversionRefused,
        "calls a function of PyTorch",
    ),
    Case(
        "cycle",
        lambda: model_of(
            node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])
        ),
        InvalidModel,
        "nodes form a cycle",
        "correct an input",
    ),
    Case(
        "node that reads its own output",
        lambda: model_of(node("Add", ["x", "y"], ["y"])),
        InvalidModel,
        "nodes form a cycle",
    ),
    Case(
        "value produced by two nodes",
        lambda: model_of(node("Relu", ["x"], ["y"]), node("Abs", ["x"], ["y"])),
        InvalidModel,
        "'y' is produced twice",
    ),
    Case(
        "value produced twice by one node",
        lambda: model_of(node("Split", ["x"], ["y", "y"])),
        InvalidModel,
        "'y' is produced twice",
    ),
    Case(
        "node output that is a graph input",
        lambda: model_of(node("Relu", ["x"], ["x"]), node("Relu", ["x"], ["y"])),
        InvalidModel,
        "'x' is produced twice",
    ),
    Case(
        "node output that is an initializer",
        lambda: model_of(node("Relu", ["x"], ["w"]), node("Relu", ["w"], ["y"]), initializers={"w": X}),
        InvalidModel,
        "'w' is produced twice",
    ),
    Case(
        "node output that is a sparse initializer",
        lambda: edited(lambda m: m.graph.sparse_initializer.add().values.MergeFrom(TensorProto(name="c"))),
        InvalidModel,
        "'c' is produced twice",
    ),
    Case(
        "graph output without producer",
        lambda: model_of(node("Relu", ["x"], ["a"])),
        InvalidModel,
        "output 'y' is not produced by any node",
    ),
    Case(
        "node input without producer",
        lambda: model_of(node("Relu", ["nothing"], ["y"])),
        InvalidModel,
        "input 'nothing' is not produced by any node",
    ),
    Case(
        "subgraphs nested 200 deep",
        lambda: nested_branches(200),
        InvalidModel,
        "graphs are nested more than 64 deep",
    ),
    Case(
        "invalid UTF-8 in an input of a rewritten node",
        lambda: with_invalid_utf8(model_of(node("Abs", ["x"], ["PLACEHOLDER"]), squeeze("PLACEHOLDER", "y"))),
        InvalidModel,
        "not UTF-8",
    ),
    Case(
        "invalid UTF-8 in an output of a rewritten node",
        lambda: with_invalid_utf8(model_of(squeeze("x", "PLACEHOLDER"), node("Abs", ["PLACEHOLDER"], ["y"]))),
        InvalidModel,
        "not UTF-8",
    ),
    Case(
        "invalid UTF-8 in an operator type",
        lambda: with_invalid_utf8(model_of(node("PLACEHOLDER", ["x"], ["y"]))),
        ConversionRefused,
        "no operator",
    ),
    Case(
        "initializer with too few bytes",
        lambda: with_raw_scales(b"\0" * 4),
        ConversionRefused,
        "ai.onnx.Upsample:9: ",
        target=8,
    ),
    Case(
        "initializer with a partial element",
        lambda: with_raw_scales(b"\0" * 9),
        ConversionRefused,
        "ai.onnx.Upsample:9: ",
        target=8,
    ),
    Case(
        "initializer with a million extra bytes",
        lambda: with_raw_scales(b"\0" * 1_000_000),
        ConversionRefused,
        "ai.onnx.Upsample:9: ",
        target=8,
    ),
    Case(
        "initializer with a negative dimension",
        lambda: with_raw_scales(b"\0" * 4, (-1,)),
        ConversionRefused,
        "ai.onnx.Upsample:9: ",
        target=8,
    ),
    Case(
        "node without inputs",
        lambda: model_of(node("Softmax", [], ["y"])),
        ConversionRefused,
        "has 0 inputs; ai.onnx.Softmax:11 expects 1",
        "opshift check",
    ),
    Case(
        "node with an extra input",
        lambda: model_of(node("Softmax", ["x", "x"], ["y"])),
        ConversionRefused,
        "has 2 inputs; ai.onnx.Softmax:11 expects 1",
    ),
    Case(
        "node with an extra output",
        lambda: model_of(node("Softmax", ["x"], ["y", "z"])),
        ConversionRefused,
        "has 2 outputs; ai.onnx.Softmax:11 expects 0 to 1",
    ),
    Case(
        "missing required attribute",
        lambda: model_of(node("Upsample", ["x"], ["y"], mode="nearest"), opset=8),
        ConversionRefused,
        "lacks attribute 'scales', which ai.onnx.Upsample:7 requires",
    ),
    Case(
        "floats as axes",
        lambda: model_of(node("Unsqueeze", ["x"], ["y"], axes=[1.5])),
        ConversionRefused,
        "attribute 'axes' is not of type INTS",
    ),
    Case(
        "duplicate attribute",
        lambda: model_of(duplicate_last_attribute(node("Softmax", ["x"], ["y"], axis=1))),
        ConversionRefused,
        "has attribute 'axis' twice",
    ),
    Case(
        "duplicate subgraph attribute",
        lambda: with_duplicate_branch(),
        InvalidModel,
        "attribute 'else_branch' occurs twice",
        "keep one",
    ),
    Case(
        "string as axis",
        lambda: model_of(node("Softmax", ["x"], ["y"], axis="last")),
        ConversionRefused,
        "attribute 'axis' is not of type INT",
    ),
    Case(
        "bound outside the declared element type",
        lambda: with_integer_input(valid_model()),
        ConversionRefused,
        "",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_rejects_invalid_models(case: Case) -> None:
    model = case.model()
    before = copy.deepcopy(model)
    for call in (convert_version, convert):
        with pytest.raises(OpshiftError) as caught:
            call(model, case.target)
        assert type(caught.value) is case.error
        assert case.reason in caught.value.reason
        assert caught.value.remedy
        assert case.remedy in caught.value.remedy
        assert model == before


@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_keeps_invalid_models_unchanged_in_place(case: Case) -> None:
    model = case.model()
    before = copy.deepcopy(model)
    with pytest.raises(OpshiftError):
        convert_version(model, case.target, inplace=True)
    assert model == before


@pytest.mark.parametrize(
    "make",
    [
        lambda: with_imports(("", 9), ("", 9)),
        lambda: with_imports(("", 9), ("ai.onnx", 9)),
        lambda: nested_branches(30),
        lambda: model_of(node("Relu", ["x"], ["y"]), initializers={"unused": X}),
        lambda: model_of(node("Split", ["x"], ["y", ""], axis=0)),
        lambda: with_invalid_utf8(
            model_of(node("Abs", ["x"], ["PLACEHOLDER"]), node("Abs", ["PLACEHOLDER"], ["y"]))
        ),
        lambda: with_invalid_utf8(model_of(node("Softmax", ["x"], ["y"], "PLACEHOLDER", axis=0))),
    ],
    ids=[
        "duplicate import",
        "import under both names of the domain",
        "subgraphs nested 30 deep",
        "unused initializer",
        "unnamed output",
        "invalid UTF-8 in kept nodes",
        "invalid UTF-8 in a node name",
    ],
)
def test_accepts_unusual_models(make: Callable[[], Any]) -> None:
    result = convert_version(make(), 13)
    assert {each.version for each in result.opset_import} == {13}


INVALID_UTF8_CASES = [each for each in CASES if "of a rewritten node" in each.title]


@pytest.mark.parametrize("case", INVALID_UTF8_CASES, ids=[case.title for case in INVALID_UTF8_CASES])
def test_reports_invalid_utf8_after_cached_rewrites(case: Case) -> None:
    for name in ("h", "PLACEHOLDER"):
        convert_version(model_of(squeeze("x", name), node("Abs", [name], ["y"])), 13)
    with pytest.raises(case.error, match=case.reason):
        convert_version(case.model(), 13)


def test_reports_all_invalid_nodes_together() -> None:
    model = model_of(
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
    ("negative number", -1, UnknownOpset),
    ("future opset", 99, UnknownOpset),
    ("boolean", True, UsageError),
    ("word", "x", UsageError),
    ("empty string", "", UsageError),
    ("empty mapping", {}, UsageError),
    ("empty list", [], UsageError),
    ("undefined domain", {"com.acme": 1}, UnknownDomain),
    ("undefined domain as a string", "com.acme=1", UnknownDomain),
    ("future opset of ai.onnx.ml", "ai.onnx.ml=99", UnknownOpset),
    ("domain without an opset", "ai.onnx.ml=", UsageError),
    ("float", 17.5, UsageError),
    ("mapping to a string", {"": "17"}, UsageError),
    ("mapping to None", {"": None}, UsageError),
    ("mapping to a boolean", {"": True}, UsageError),
    ("both names of the default domain", {"": 17, "ai.onnx": 18}, UsageError),
    ("two numbers", ["17", "18"], UsageError),
    ("release and a different opset", ["onnx-1.12", "18"], UsageError),
    ("unknown release", "onnx-9.9", UsageError),
    ("unknown product", "torch-2.0", UsageError),
    ("number with 5,000 digits", "1" * 5000, UsageError),
    ("bytes", b"17", UsageError),
    ("object", object(), UsageError),
]


@pytest.mark.parametrize(("target", "error"), [row[1:] for row in TARGETS], ids=[row[0] for row in TARGETS])
def test_rejects_invalid_targets(target: Any, error: type[OpshiftError]) -> None:
    model = valid_model()
    for call in (convert_version, plan_version):
        with pytest.raises(OpshiftError) as caught:
            call(model, target)
        assert type(caught.value) is error
        assert caught.value.reason
        assert caught.value.remedy
    assert model == valid_model()


@pytest.mark.parametrize(
    "model",
    [None, 3, [], {}, object(), onnx.GraphProto(), TensorProto(), ModelProto, "no\0path", Path("/")],
    ids=[
        "None",
        "number",
        "list",
        "mapping",
        "object",
        "graph",
        "tensor",
        "class",
        "path with a null character",
        "folder",
    ],
)
def test_rejects_arguments_that_are_not_models(model: Any) -> None:
    for call in (convert_version, plan_version):
        with pytest.raises(InvalidModel) as caught:
            call(model, 13)
        assert caught.value.reason


INVALID_BYTES = [
    ("empty", b""),
    ("text", b"# ONNX\nis not what this file holds\n"),
    ("null byte", b"\0"),
    ("JSON", b'{"irVersion": 8, "graph": {}}'),
    ("PNG image", b"\x89PNG\r\n\x1a\n" + b"\0" * 64),
    ("tensor", helper.make_tensor("x", 1, [1], [1.0]).SerializeToString()),
    ("graph", valid_model().graph.SerializeToString()),
]


@pytest.mark.parametrize("data", [row[1] for row in INVALID_BYTES], ids=[row[0] for row in INVALID_BYTES])
def test_rejects_bytes_that_are_not_models(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    for source in (data, path):
        with pytest.raises(InvalidModel) as caught:
            convert_version(source, 13)
        assert caught.value.remedy


def test_rejects_truncated_models() -> None:
    """The opset import is serialized last, so every truncation damages it."""
    data = valid_model().SerializeToString()
    assert data.endswith(valid_model().opset_import[0].SerializeToString())
    for length in range(len(data)):
        with pytest.raises(InvalidModel):
            convert_version(data[:length], 13)


def convert_or_error(data: bytes, target: int) -> onnx.ModelProto | OpshiftError:
    try:
        return onnx.ModelProto.FromString(convert_version(data, target))
    except OpshiftError as error:
        return error


@given(st.binary(max_size=200))
@settings(max_examples=300, derandomize=True)
def test_random_bytes_end_in_a_model_or_a_typed_error(data: bytes) -> None:
    result = convert_or_error(data, 13)
    assert result.reason if isinstance(result, OpshiftError) else result.HasField("graph")


@given(st.data())
@settings(max_examples=200, derandomize=True)
def test_changed_byte_ends_in_a_model_or_a_typed_error(data: st.DataObject) -> None:
    original = bytearray(valid_model().SerializeToString())
    original[data.draw(st.integers(0, len(original) - 1))] = data.draw(st.integers(0, 255))
    result = convert_or_error(bytes(original), data.draw(st.sampled_from([7, 10, 13, 21])))
    assert result.reason if isinstance(result, OpshiftError) else result.HasField("graph")


@pytest.mark.parametrize("form", ["message", "bytes", "file"])
@pytest.mark.parametrize(
    "answer",
    [lambda model: runs(model, RUNTIME), reach, infer, diagnose, lambda model: fit(model, RUNTIME)],
    ids=["runs", "reach", "infer", "diagnose", "fit"],
)
@pytest.mark.parametrize("place", ["dimension", "input", "output", "graph"])
def test_text_that_is_not_utf8(
    place: str, answer: Callable[[Any], object], form: str, tmp_path: Path
) -> None:
    """Each function raises InvalidModel, or returns a result that does not need the text."""
    valid = model_of(node("Relu", ["x"], ["y"]), node("Exp", ["y"], ["z"]), opset=17, outputs=("z",))
    if place == "dimension":
        valid.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "PLACEHOLDER"
    elif place == "graph":
        valid.graph.name = "PLACEHOLDER"
    else:
        getattr(valid.graph.node[1], place)[0] = "PLACEHOLDER"
    model: Any = with_invalid_utf8(valid)
    if form != "message":
        model = model.SerializeToString()
    if form == "file":
        (tmp_path / "model.onnx").write_bytes(model)
        model = tmp_path / "model.onnx"
    with suppress(InvalidModel, DoesNotFit):
        answer(model)


def test_inlining_of_invalid_text_leaves_a_model_unchanged() -> None:
    body, imports = [node("Add", ["a", "b"], ["c"])], [helper.make_opsetid("", 17)]
    call = helper.make_node("Next", ["x", "PLACEHOLDER"], ["y"], domain="local")
    valid = model_of(call, opset=17)
    valid.ir_version = 8
    valid.graph.initializer.append(helper.make_tensor("PLACEHOLDER", TensorProto.FLOAT, [], [1.0]))
    valid.functions.append(helper.make_function("local", "Next", ["a", "b"], ["c"], body, imports))
    valid.opset_import.add(domain="local", version=1)
    model = with_invalid_utf8(valid)
    before = model.SerializeToString()
    with pytest.raises(InvalidModel, match="not UTF-8"):
        convert_version(model, ir_version=7, inplace=True)
    assert model.SerializeToString() == before
