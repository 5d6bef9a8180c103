"""Comparison of two model versions: reported changes and the version increase they require."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import opshift
from opshift import InvalidModel, compare, convert_version, pack_version
from opshift.converter.signature import RULES
from opshift.model.messages import ModelProto
from opshift.model.model_version import VersionBump

FLOAT, HALF, DOUBLE = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE
INT32, INT64, TEXT = TensorProto.INT32, TensorProto.INT64, TensorProto.STRING
Dims = Sequence[int | str | None] | None
Signature = Mapping[str, tuple[int, Dims]]


@dataclass(frozen=True)
class Model:
    """Parameters of a small model with one node."""

    inputs: Signature = field(default_factory=lambda: {"x": (FLOAT, ["N", 3]), "m": (FLOAT, ["N"])})
    outputs: Signature = field(default_factory=lambda: {"y": (FLOAT, ["N", 3])})
    defaults: Mapping[str, float] = field(default_factory=dict)
    op: str = "Relu"
    opsets: Mapping[str, int] = field(default_factory=lambda: {"": 13})
    ir_version: int = 8
    doc_string: str = ""
    weight: float = 1.0
    version: str = "1.0.0"
    denotations: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)

    def build(self) -> onnx.ModelProto:
        values = {**self.defaults, "w": self.weight}
        graph = helper.make_graph(
            [helper.make_node(self.op, ["x"], ["y"])],
            "g",
            [self._value_info(name, *each) for name, each in self.inputs.items()],
            [self._value_info(name, *each) for name, each in self.outputs.items()],
            [numpy_helper.from_array(np.full(1, value, np.float32), name) for name, value in values.items()],
        )
        imports = [helper.make_opsetid(*each) for each in self.opsets.items()]
        model = helper.make_model(
            graph, opset_imports=imports, ir_version=self.ir_version, doc_string=self.doc_string
        )
        model.model_version = pack_version(self.version)
        helper.set_model_props(model, dict(self.metadata))
        return model

    def _value_info(self, name: str, element: int, dims: Dims) -> onnx.ValueInfoProto:
        value_info = helper.make_tensor_value_info(name, element, dims)
        value_info.type.denotation = self.denotations.get(name, "")
        return value_info


TensorType = tuple[int, Dims]
X: TensorType = (FLOAT, ["N", 3])
M: TensorType = (FLOAT, ["N"])
Y: TensorType = (FLOAT, ["N", 3])
OLD = Model()


def with_inputs(**changes: Any) -> Model:
    return replace(OLD, inputs={**OLD.inputs, **changes})


def with_outputs(**changes: Any) -> Model:
    return replace(OLD, outputs={**OLD.outputs, **changes})


def input_shapes(old: Dims, new: Dims) -> tuple[Model, Model]:
    return with_inputs(x=(FLOAT, old)), with_inputs(x=(FLOAT, new))


def output_shapes(old: Dims, new: Dims) -> tuple[Model, Model]:
    return with_outputs(y=(FLOAT, old)), with_outputs(y=(FLOAT, new))


def _tensor(dims: Dims, element: int = FLOAT) -> onnx.TypeProto:
    return helper.make_tensor_type_proto(element, dims)


def _sparse(dims: Dims) -> onnx.TypeProto:
    return helper.make_sparse_tensor_type_proto(FLOAT, dims)


def _opaque(name: str) -> onnx.TypeProto:
    return onnx.TypeProto(opaque_type=onnx.TypeProto.Opaque(domain="acme", name=name))


def _denoted(denotation: str, dim: str = "") -> onnx.TypeProto:
    declared = helper.make_tensor_type_proto(FLOAT, [3], shape_denotation=[dim])
    declared.denotation = denotation
    return declared


WITH_DEFAULT = replace(with_inputs(z=(FLOAT, [1])), defaults={"z": 1.0})
CASES: dict[str, tuple[Model, Model, set[str]]] = {
    "no change": (OLD, OLD, set()),
    "added input": (OLD, with_inputs(z=(FLOAT, [1])), {"INPUT_ADDED"}),
    "added input with a default": (OLD, WITH_DEFAULT, {"INPUT_ADDED_WITH_DEFAULT"}),
    "removed input": (with_inputs(z=(FLOAT, [1])), OLD, {"INPUT_REMOVED"}),
    "renamed input": (
        OLD,
        replace(OLD, inputs={"x": X, "mask": M}),
        {"INPUT_RENAMED"},
    ),
    "input replaced by a different one": (
        OLD,
        replace(OLD, inputs={"x": X, "k": (INT64, [])}),
        {"INPUT_ADDED", "INPUT_REMOVED"},
    ),
    "reordered inputs": (OLD, replace(OLD, inputs={"m": M, "x": X}), {"INPUTS_REORDERED"}),
    "input added before the others": (
        OLD,
        replace(OLD, inputs={"z": (FLOAT, [1]), **OLD.inputs}, defaults={"z": 1.0}),
        {"INPUT_ADDED_WITH_DEFAULT", "INPUTS_REORDERED"},
    ),
    "removed default": (WITH_DEFAULT, with_inputs(z=(FLOAT, [1])), {"INPUT_DEFAULT_REMOVED"}),
    "added default": (with_inputs(z=(FLOAT, [1])), WITH_DEFAULT, {"INPUT_DEFAULT_ADDED"}),
    "changed default": (WITH_DEFAULT, replace(WITH_DEFAULT, defaults={"z": 2.0}), {"INPUT_DEFAULT_CHANGED"}),
    "strings instead of floats": (OLD, with_inputs(x=(TEXT, ["N", 3])), {"INPUT_TYPE_CHANGED"}),
    "wider input type": (with_inputs(x=(HALF, ["N", 3])), OLD, {"INPUT_TYPE_WIDENED"}),
    "narrower input type": (OLD, with_inputs(x=(HALF, ["N", 3])), {"INPUT_TYPE_CHANGED"}),
    "wider integer type": (
        with_inputs(m=(INT32, ["N"])),
        with_inputs(m=(INT64, ["N"])),
        {"INPUT_TYPE_WIDENED"},
    ),
    "integers instead of floats": (OLD, with_inputs(m=(INT64, ["N"])), {"INPUT_TYPE_CHANGED"}),
    "added output": (OLD, with_outputs(z=(FLOAT, [1])), {"OUTPUT_ADDED"}),
    "removed output": (with_outputs(z=(FLOAT, [1])), OLD, {"OUTPUT_REMOVED"}),
    "renamed output": (OLD, replace(OLD, outputs={"z": Y}), {"OUTPUT_RENAMED"}),
    "reordered outputs": (
        replace(OLD, outputs={"y": Y, "z": M}),
        replace(OLD, outputs={"z": M, "y": Y}),
        {"OUTPUTS_REORDERED"},
    ),
    "wider output type": (OLD, with_outputs(y=(DOUBLE, ["N", 3])), {"OUTPUT_TYPE_WIDENED"}),
    "narrower output type": (OLD, with_outputs(y=(HALF, ["N", 3])), {"OUTPUT_TYPE_CHANGED"}),
    "different input size": (*input_shapes(["N", 3], ["N", 4]), {"INPUT_SHAPE_CHANGED"}),
    "different input rank": (*input_shapes(["N", 3], ["N", 3, 1]), {"INPUT_SHAPE_CHANGED"}),
    "input size becomes dynamic": (*input_shapes(["N", 3], ["N", "C"]), {"INPUT_SHAPE_WIDENED"}),
    "input size becomes fixed": (*input_shapes(["N", "C"], ["N", 3]), {"INPUT_SHAPE_NARROWED"}),
    "input rank becomes unknown": (*input_shapes(["N", 3], None), {"INPUT_SHAPE_WIDENED"}),
    "input rank becomes fixed": (*input_shapes(None, ["N", 3]), {"INPUT_SHAPE_NARROWED"}),
    "different output size": (*output_shapes(["N", 3], ["N", 4]), {"OUTPUT_SHAPE_CHANGED"}),
    "output size becomes dynamic": (*output_shapes(["N", 3], ["N", "C"]), {"OUTPUT_SHAPE_WIDENED"}),
    "output size becomes fixed": (*output_shapes(["N", "C"], ["N", 3]), {"OUTPUT_SHAPE_NARROWED"}),
    "inputs no longer share a dimension": (
        OLD,
        with_inputs(m=(FLOAT, ["L"])),
        {"INPUT_SHAPE_WIDENED", "OUTPUT_SHAPE_WIDENED"},
    ),
    "inputs start to share a dimension": (
        with_inputs(m=(FLOAT, ["L"])),
        OLD,
        {"INPUT_SHAPE_NARROWED", "OUTPUT_SHAPE_NARROWED"},
    ),
    "output no longer shares a dimension with an input": (
        OLD,
        with_outputs(y=(FLOAT, ["L", 3])),
        {"OUTPUT_SHAPE_WIDENED"},
    ),
    "output starts to share a dimension with an input": (
        with_outputs(y=(FLOAT, ["L", 3])),
        OLD,
        {"OUTPUT_SHAPE_NARROWED"},
    ),
    "renamed dimension": (
        OLD,
        Model({"x": (FLOAT, ["B", 3]), "m": (FLOAT, ["B"])}, {"y": (FLOAT, ["B", 3])}),
        {"DIMENSION_RENAMED"},
    ),
    "removed name of an unshared dimension": (*input_shapes(["L", 3], [None, 3]), {"DIMENSION_RENAMED"}),
    "higher opset": (OLD, replace(OLD, opsets={"": 14}), {"OPSET_RAISED"}),
    "lower opset": (OLD, replace(OLD, opsets={"": 12}), {"OPSET_LOWERED"}),
    "added opset import": (OLD, replace(OLD, opsets={"": 13, "ai.onnx.ml": 3}), {"OPSET_RAISED"}),
    "removed opset import": (replace(OLD, opsets={"": 13, "ai.onnx.ml": 3}), OLD, {"OPSET_LOWERED"}),
    "default domain spelled ai.onnx": (OLD, replace(OLD, opsets={"ai.onnx": 13}), set()),
    "higher IR version": (OLD, replace(OLD, ir_version=9), {"IR_VERSION_RAISED"}),
    "lower IR version": (OLD, replace(OLD, ir_version=7), {"IR_VERSION_LOWERED"}),
    "different operator": (OLD, replace(OLD, op="Sigmoid"), {"OPERATORS_CHANGED"}),
    "different meaning at another opset": (
        replace(with_inputs(x=(FLOAT, ["N", 3, 4])), op="Softmax", opsets={"": 11}),
        replace(with_inputs(x=(FLOAT, ["N", 3, 4])), op="Softmax"),
        {"OPERATOR_MEANING_CHANGED", "OPSET_RAISED"},
    ),
    "different weight": (OLD, replace(OLD, weight=2.0), {"GRAPH_CHANGED"}),
    "different doc string": (OLD, replace(OLD, doc_string="better"), {"METADATA_CHANGED"}),
    "different denotation": (
        replace(OLD, denotations={"x": "IMAGE"}),
        replace(OLD, denotations={"x": "TEXT"}),
        {"MEANING_CHANGED", "METADATA_CHANGED"},
    ),
    "added denotation": (OLD, replace(OLD, denotations={"x": "IMAGE"}), {"METADATA_CHANGED"}),
    "gray images instead of RGB": (
        replace(OLD, metadata={"Image.BitmapPixelFormat": "Rgb8"}),
        replace(OLD, metadata={"Image.BitmapPixelFormat": "Gray8"}),
        {"MEANING_CHANGED", "METADATA_CHANGED"},
    ),
    "different spelling of an image format": (
        replace(OLD, metadata={"Image.BitmapPixelFormat": "Rgb8"}),
        replace(OLD, metadata={"image.bitmapPixelFormat": "RGB8"}),
        {"METADATA_CHANGED"},
    ),
}


@pytest.mark.parametrize(("old", "new", "rules"), CASES.values(), ids=CASES)
def test_reports_changes_and_required_increase(old: Model, new: Model, rules: set[str]) -> None:
    comparison = compare(old.build(), new.build())
    assert {change.rule for change in comparison.changes} == rules
    assert comparison.required == max((RULES[rule].rise for rule in rules), default=VersionBump.NONE)


CONTAINER_TYPES: dict[str, Callable[[onnx.TypeProto], onnx.TypeProto]] = {
    "sequence": helper.make_sequence_type_proto,
    "optional": helper.make_optional_type_proto,
    "map": lambda inner: helper.make_map_type_proto(INT64, inner),
    "optional sequence": lambda inner: helper.make_optional_type_proto(
        helper.make_sequence_type_proto(inner)
    ),
}

INNER_CHANGES: dict[str, tuple[onnx.TypeProto, onnx.TypeProto, set[str]]] = {
    "no change": (_tensor(["N", 3]), _tensor(["N", 3]), set()),
    "size": (_tensor(["N", 3]), _tensor(["N", 4]), {"SHAPE_CHANGED"}),
    "rank": (_tensor(["N", 3]), _tensor(["N", 3, 1]), {"SHAPE_CHANGED"}),
    "sparse size": (_sparse([3]), _sparse([4]), {"SHAPE_CHANGED"}),
    "dynamic size": (_tensor([3]), _tensor(["N"]), {"SHAPE_WIDENED"}),
    "fixed size": (_tensor(["N"]), _tensor([3]), {"SHAPE_NARROWED"}),
    "unknown rank": (_tensor([3]), _tensor(None), {"SHAPE_WIDENED"}),
    "element type": (_tensor([3]), _tensor([3], INT64), {"TYPE_CHANGED"}),
    "unknown element type": (_tensor([3], 98), _tensor([3], 99), {"TYPE_CHANGED"}),
    "opaque type": (_opaque("a"), _opaque("b"), {"TYPE_CHANGED"}),
    "denotation": (_denoted("IMAGE"), _denoted("TEXT"), {"MEANING_CHANGED", "METADATA_CHANGED"}),
    "added denotation": (_denoted(""), _denoted("TEXT"), {"METADATA_CHANGED"}),
    "denotation of a dimension": (
        _denoted("", "DATA_BATCH"),
        _denoted("", "DATA_CHANNEL"),
        {"MEANING_CHANGED", "METADATA_CHANGED"},
    ),
    "added denotation of a dimension": (_denoted("", ""), _denoted("", "DATA_BATCH"), {"METADATA_CHANGED"}),
}


@pytest.mark.parametrize("wrap", [lambda inner: inner, *CONTAINER_TYPES.values()], ids=["", *CONTAINER_TYPES])
@pytest.mark.parametrize(("old", "new", "kinds"), INNER_CHANGES.values(), ids=INNER_CHANGES)
def test_compares_types_inside_other_types(
    wrap: Callable[[onnx.TypeProto], onnx.TypeProto],
    old: onnx.TypeProto,
    new: onnx.TypeProto,
    kinds: set[str],
) -> None:
    models = []
    for inner in (old, new):
        model = OLD.build()
        model.graph.input[1].type.CopyFrom(wrap(inner))
        models.append(model)
    rules = {kind if kind in RULES else f"INPUT_{kind}" for kind in kinds}
    assert {change.rule for change in compare(*models).changes} == rules


def test_shared_dimension_names_inside_sequences_are_constraints() -> None:
    old, new = OLD.build(), OLD.build()
    for model, dims in ((old, ["L"]), (new, ["N"])):
        model.graph.input[1].type.CopyFrom(helper.make_sequence_type_proto(_tensor(dims)))
    rules = {change.rule for change in compare(old, new).changes}
    assert rules == {"INPUT_SHAPE_NARROWED", "OUTPUT_SHAPE_NARROWED"}


def test_every_rule_has_a_case() -> None:
    covered = set().union(*(rules for _, _, rules in CASES.values()))
    assert covered | {"WEIGHTS_UNKNOWN", "OPERATORS_REPLACED"} == set(RULES)


VERSION_CASES = {
    "no change, same version": (OLD, "1.0.0", True),
    "no change, lower version": (OLD, "0.9.0", False),
    "patch change, patch increase": (replace(OLD, weight=2.0), "1.0.1", True),
    "patch change, same version": (replace(OLD, weight=2.0), "1.0.0", False),
    "minor change, patch increase": (with_outputs(z=(FLOAT, [1])), "1.0.1", False),
    "minor change, minor increase": (with_outputs(z=(FLOAT, [1])), "1.1.0", True),
    "major change, minor increase": (with_inputs(z=(FLOAT, [1])), "1.1.0", False),
    "major change, major increase": (with_inputs(z=(FLOAT, [1])), "2.0.0", True),
    "patch change, major increase": (replace(OLD, weight=2.0), "2.0.0", True),
}


@pytest.mark.parametrize(("new", "version", "enough"), VERSION_CASES.values(), ids=VERSION_CASES)
def test_checks_version_increase(new: Model, version: str, enough: bool) -> None:
    assert compare(OLD.build(), replace(new, version=version).build()).enough is enough


def test_lists_most_severe_change_first() -> None:
    new = replace(OLD, weight=2.0, outputs={**OLD.outputs, "z": M}, inputs={"x": (TEXT, ["N", 3]), "m": M})
    comparison = compare(OLD.build(), new.build())
    assert [change.rise.name for change in comparison.changes] == ["MAJOR", "MINOR", "PATCH"]
    assert comparison.lowest == "2.0.0"


def test_changes_hold_values_before_and_after() -> None:
    changes = compare(OLD.build(), with_inputs(x=(TEXT, ["N", 4])).build()).changes
    assert [(change.place, change.before, change.after) for change in changes] == [
        ("input 'x'", "tensor(float)", "tensor(string)"),
        ("input 'x'", "[N, 3]", "[N, 4]"),
    ]


def test_comparison_converts_to_plain_data() -> None:
    data = compare(OLD.build(), replace(OLD, weight=2.0, version="1.0.1").build()).as_dict()
    assert {name: data[name] for name in data if name != "changes"} == {
        "old_version": "1.0.0", "new_version": "1.0.1", "required": "PATCH", "risen": "PATCH", "enough": True,
        "lowest": "1.0.1",
    }  # fmt: skip
    assert data["changes"] == [
        {"rule": "GRAPH_CHANGED", "rise": "PATCH", "place": "graph",
         "why": "signature, operators and connections are the same", "before": "", "after": ""}
    ]  # fmt: skip


def test_upgrade_requires_minor_increase() -> None:
    golden = Path(__file__).parents[2] / "golden" / "segmenter-9.onnx"
    comparison = compare(golden, convert_version(golden, 17))
    assert comparison.required == VersionBump.MINOR
    assert {"OPSET_RAISED", "GRAPH_CHANGED"} <= {change.rule for change in comparison.changes}


def test_compares_models_of_different_classes() -> None:
    model = OLD.build()
    data = model.SerializeToString()
    assert compare(model, opshift.ModelProto.FromString(data)).changes == ()
    assert compare(data, model).changes == ()


def test_reports_unknown_weights_unless_external_files_are_equal(tmp_path: Path) -> None:
    """Only two files with equal external data count as unchanged."""
    for folder, weight in (("one", 1.0), ("same", 1.0), ("other", 2.0)):
        (tmp_path / folder).mkdir()
        options = {"save_as_external_data": True, "location": "w.bin", "size_threshold": 0}
        onnx.save(replace(OLD, weight=weight).build(), tmp_path / folder / "m.onnx", **options)
    one, same, other = (tmp_path / folder / "m.onnx" for folder in ("one", "same", "other"))
    assert compare(one, same).changes == ()
    assert [change.rule for change in compare(one, other).changes] == ["WEIGHTS_UNKNOWN"]
    assert [change.rule for change in compare(one, same.read_bytes()).changes] == ["WEIGHTS_UNKNOWN"]
    state = (tmp_path / "same" / "w.bin").stat()
    (tmp_path / "same" / "w.bin").write_bytes((tmp_path / "other" / "w.bin").read_bytes())
    os.utime(tmp_path / "same" / "w.bin", ns=(state.st_atime_ns, state.st_mtime_ns))
    assert [change.rule for change in compare(one, same).changes] == ["WEIGHTS_UNKNOWN"]
    (tmp_path / "same" / "w.bin").unlink()
    assert [change.rule for change in compare(one, same).changes] == ["WEIGHTS_UNKNOWN"]


EXTERNAL_TENSORS: dict[str, Callable[[onnx.ModelProto], onnx.TensorProto]] = {
    "initializer": lambda m: m.graph.initializer.add(),
    "initializer of a subgraph": lambda m: _attribute(m.graph).g.initializer.add(),
    "constant in a list of subgraphs": lambda m: _attribute(_attribute(m.graph).graphs.add()).t,
    "attribute": lambda m: _attribute(m.graph).t,
    "list of tensors": lambda m: _attribute(m.graph).tensors.add(),
    "sparse attribute": lambda m: _attribute(m.graph).sparse_tensor.values,
    "list of sparse tensors": lambda m: _attribute(m.graph).sparse_tensors.add().values,
    "sparse initializer": lambda m: m.graph.sparse_initializer.add().values,
    "indices of a sparse initializer": lambda m: m.graph.sparse_initializer.add().indices,
    "function": lambda m: _attribute(m.functions.add(name="f")).t,
    "default of a function": lambda m: m.functions.add(name="f").attribute_proto.add(name="a", type=4).t,
    "initialization of training": lambda m: m.training_info.add().initialization.initializer.add(),
    "algorithm of training": lambda m: _attribute(m.training_info.add().algorithm).t,
}


def _attribute(container: onnx.GraphProto | onnx.FunctionProto) -> onnx.AttributeProto:
    return container.node.add(op_type="Constant", output=["c"]).attribute.add(name="value", type=4)


@pytest.mark.parametrize("add_tensor", EXTERNAL_TENSORS.values(), ids=EXTERNAL_TENSORS)
def test_compares_external_data_of_every_tensor(
    add_tensor: Callable[[onnx.ModelProto], onnx.TensorProto], tmp_path: Path
) -> None:
    model = OLD.build()
    tensor = add_tensor(model)
    tensor.name, tensor.data_type, tensor.data_location = "t", FLOAT, TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    for folder, data in (("one", b"1234"), ("same", b"1234"), ("other", b"5678")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "m.onnx").write_bytes(model.SerializeToString())
        (tmp_path / folder / "w.bin").write_bytes(data)
    one, same, other = (tmp_path / folder / "m.onnx" for folder in ("one", "same", "other"))
    assert (compare(one, same).changes, opshift.diff_model(one, same).equal) == ((), True)
    assert [change.rule for change in compare(one, other).changes] == ["WEIGHTS_UNKNOWN"]
    assert not opshift.diff_model(one, other).equal


WITH_NESTED_WEIGHTS = """
<ir_version: 8, opset_import: ["" : 13]>
g (float[2] x, bool c) => (float[2] y) {
    h = Constant <value = float[2] {0, 0}> ()
    y = If (c) <
        then_branch = t () => (float[2] a) <float[2] w = {0, 0}> { a = Mul (h, w) },
        else_branch = e () => (float[2] b) { b = Neg (x) }
    >
}"""


@pytest.mark.parametrize("weights", [[2, 1, 1, 1], [1, 1, 2, 1]], ids=["constant", "subgraph"])
def test_models_with_different_external_data_have_changes(weights: list[int], tmp_path: Path) -> None:
    model = onnx.parser.parse_model(WITH_NESTED_WEIGHTS)
    constant, branch = (node.attribute[0] for node in model.graph.node)
    for offset, tensor in (("0", constant.t), ("8", branch.g.initializer[0])):
        tensor.ClearField("float_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", "w.bin"), ("offset", offset), ("length", "8")):
            tensor.external_data.add(key=key, value=value)
    results = []
    for folder, numbers in (("old", [1, 1, 1, 1]), ("new", weights)):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "m.onnx"
        path.write_bytes(model.SerializeToString())
        np.array(numbers, np.float32).tofile(tmp_path / folder / "w.bin")
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        results.append(session.run(None, {"x": np.zeros(2, np.float32), "c": np.array(True)})[0].tolist())
    assert results == [[1, 1], [2, 1]]
    old, new = tmp_path / "old" / "m.onnx", tmp_path / "new" / "m.onnx"
    assert [change.rule for change in compare(old, new).changes] == ["WEIGHTS_UNKNOWN"]
    assert not opshift.diff_model(old, new).equal


def test_reports_or_refuses_invalid_locations_of_external_data(tmp_path: Path) -> None:
    model = OLD.build()
    tensor = model.graph.initializer[0]
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    data, path = model.SerializeToString(), tmp_path / "m.onnx"
    for location in (b"w.b\0n", b"../..", b"w.bin"):
        path.write_bytes(data.replace(b"w.bin", location))
        assert [change.rule for change in compare(path, path).changes] == ["WEIGHTS_UNKNOWN"]
    data = data.replace(b"w.bin", b"w.bi\xff")
    with pytest.raises(InvalidModel, match="not UTF-8"):
        compare(data, data)


def test_refuses_model_without_graph() -> None:
    with pytest.raises(InvalidModel, match="no graph"):
        compare(OLD.build(), onnx.ModelProto(ir_version=8))


@pytest.mark.parametrize("call", [compare, opshift.diff_model])
def test_refuses_deeply_nested_graphs(call: Callable[[ModelProto, ModelProto], object]) -> None:
    for depth in (64, 65, 2_000):
        model = ModelProto(ir_version=8)
        model.opset_import.add(version=13)
        graph = model.graph
        for _ in range(depth):
            graph = graph.node.add(op_type="If").attribute.add(name="then_branch", type=5).g
            graph.name = "g"
        if depth == 64:
            call(model, model)
            continue
        with pytest.raises(InvalidModel, match="nested more than 64 deep"):
            call(model, model)
