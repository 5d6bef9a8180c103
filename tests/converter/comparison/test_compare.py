"""Two versions of a model: what changed, and what that asks of the version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import opshift
from opshift import InvalidModel, compare, convert_version, pack_version
from opshift.converter.comparison.rules import RULES
from opshift.converter.model_version import Rise

FLOAT, HALF, DOUBLE = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE
INT32, INT64, TEXT = TensorProto.INT32, TensorProto.INT64, TensorProto.STRING
Dims = Sequence[int | str | None] | None
Signature = Mapping[str, tuple[int, Dims]]


@dataclass(frozen=True)
class Model:
    """What a model of a test looks like; its nodes do not matter."""

    inputs: Signature = field(default_factory=lambda: {"x": (FLOAT, ["N", 3]), "m": (FLOAT, ["N"])})
    outputs: Signature = field(default_factory=lambda: {"y": (FLOAT, ["N", 3])})
    defaults: Mapping[str, float] = field(default_factory=dict)
    op: str = "Relu"
    opsets: Mapping[str, int] = field(default_factory=lambda: {"": 13})
    ir_version: int = 8
    doc: str = ""
    weight: float = 1.0
    version: str = "1.0.0"
    meanings: Mapping[str, str] = field(default_factory=dict)
    props: Mapping[str, str] = field(default_factory=dict)

    def built(self) -> onnx.ModelProto:
        values = {**self.defaults, "w": self.weight}
        graph = helper.make_graph(
            [helper.make_node(self.op, ["x"], ["y"])],
            "g",
            [self._value(name, *each) for name, each in self.inputs.items()],
            [self._value(name, *each) for name, each in self.outputs.items()],
            [numpy_helper.from_array(np.full(1, value, np.float32), name) for name, value in values.items()],
        )
        imports = [helper.make_opsetid(*each) for each in self.opsets.items()]
        found = helper.make_model(
            graph, opset_imports=imports, ir_version=self.ir_version, doc_string=self.doc
        )
        found.model_version = pack_version(self.version)
        helper.set_model_props(found, dict(self.props))
        return found

    def _value(self, name: str, element: int, dims: Dims) -> onnx.ValueInfoProto:
        found = helper.make_tensor_value_info(name, element, dims)
        found.type.denotation = self.meanings.get(name, "")
        return found


Entry = tuple[int, Dims]
X: Entry = (FLOAT, ["N", 3])
M: Entry = (FLOAT, ["N"])
Y: Entry = (FLOAT, ["N", 3])
OLD = Model()


def ins(**changes: Any) -> Model:
    return replace(OLD, inputs={**OLD.inputs, **changes})


def outs(**changes: Any) -> Model:
    return replace(OLD, outputs={**OLD.outputs, **changes})


def inputs_of(old: Dims, new: Dims) -> tuple[Model, Model]:
    return ins(x=(FLOAT, old)), ins(x=(FLOAT, new))


def outputs_of(old: Dims, new: Dims) -> tuple[Model, Model]:
    return outs(y=(FLOAT, old)), outs(y=(FLOAT, new))


WITH_Z = replace(ins(z=(FLOAT, [1])), defaults={"z": 1.0})
CASES: dict[str, tuple[Model, Model, set[str]]] = {
    "nothing": (OLD, OLD, set()),
    "an input more": (OLD, ins(z=(FLOAT, [1])), {"INPUT_ADDED"}),
    "an input more with a default": (OLD, WITH_Z, {"INPUT_ADDED_WITH_DEFAULT"}),
    "an input less": (ins(z=(FLOAT, [1])), OLD, {"INPUT_REMOVED"}),
    "an input of another name": (
        OLD,
        replace(OLD, inputs={"x": X, "mask": M}),
        {"INPUT_RENAMED"},
    ),
    "another input at the same place": (
        OLD,
        replace(OLD, inputs={"x": X, "k": (INT64, [])}),
        {"INPUT_ADDED", "INPUT_REMOVED"},
    ),
    "inputs in another order": (OLD, replace(OLD, inputs={"m": M, "x": X}), {"INPUTS_REORDERED"}),
    "an input put in front": (
        OLD,
        replace(OLD, inputs={"z": (FLOAT, [1]), **OLD.inputs}, defaults={"z": 1.0}),
        {"INPUT_ADDED_WITH_DEFAULT", "INPUTS_REORDERED"},
    ),
    "a default less": (WITH_Z, ins(z=(FLOAT, [1])), {"INPUT_DEFAULT_REMOVED"}),
    "a default more": (ins(z=(FLOAT, [1])), WITH_Z, {"INPUT_DEFAULT_ADDED"}),
    "another default": (WITH_Z, replace(WITH_Z, defaults={"z": 2.0}), {"INPUT_DEFAULT_CHANGED"}),
    "text for numbers": (OLD, ins(x=(TEXT, ["N", 3])), {"INPUT_TYPE_CHANGED"}),
    "a wider input": (ins(x=(HALF, ["N", 3])), OLD, {"INPUT_TYPE_WIDENED"}),
    "a narrower input": (OLD, ins(x=(HALF, ["N", 3])), {"INPUT_TYPE_CHANGED"}),
    "a wider integer": (ins(m=(INT32, ["N"])), ins(m=(INT64, ["N"])), {"INPUT_TYPE_WIDENED"}),
    "integers for floats": (OLD, ins(m=(INT64, ["N"])), {"INPUT_TYPE_CHANGED"}),
    "an output more": (OLD, outs(z=(FLOAT, [1])), {"OUTPUT_ADDED"}),
    "an output less": (outs(z=(FLOAT, [1])), OLD, {"OUTPUT_REMOVED"}),
    "an output of another name": (OLD, replace(OLD, outputs={"z": Y}), {"OUTPUT_RENAMED"}),
    "outputs in another order": (
        replace(OLD, outputs={"y": Y, "z": M}),
        replace(OLD, outputs={"z": M, "y": Y}),
        {"OUTPUTS_REORDERED"},
    ),
    "a wider output": (OLD, outs(y=(DOUBLE, ["N", 3])), {"OUTPUT_TYPE_WIDENED"}),
    "a narrower output": (OLD, outs(y=(HALF, ["N", 3])), {"OUTPUT_TYPE_CHANGED"}),
    "an input of another size": (*inputs_of(["N", 3], ["N", 4]), {"INPUT_SHAPE_CHANGED"}),
    "an input of another rank": (*inputs_of(["N", 3], ["N", 3, 1]), {"INPUT_SHAPE_CHANGED"}),
    "an input of any size": (*inputs_of(["N", 3], ["N", "C"]), {"INPUT_SHAPE_WIDENED"}),
    "an input of one size": (*inputs_of(["N", "C"], ["N", 3]), {"INPUT_SHAPE_NARROWED"}),
    "an input of any rank": (*inputs_of(["N", 3], None), {"INPUT_SHAPE_WIDENED"}),
    "an input of one rank": (*inputs_of(None, ["N", 3]), {"INPUT_SHAPE_NARROWED"}),
    "an output of another size": (*outputs_of(["N", 3], ["N", 4]), {"OUTPUT_SHAPE_CHANGED"}),
    "an output of any size": (*outputs_of(["N", 3], ["N", "C"]), {"OUTPUT_SHAPE_WIDENED"}),
    "an output of one size": (*outputs_of(["N", "C"], ["N", 3]), {"OUTPUT_SHAPE_NARROWED"}),
    "inputs that need not be alike": (
        OLD,
        ins(m=(FLOAT, ["L"])),
        {"INPUT_SHAPE_WIDENED", "OUTPUT_SHAPE_WIDENED"},
    ),
    "inputs that have to be alike": (
        ins(m=(FLOAT, ["L"])),
        OLD,
        {"INPUT_SHAPE_NARROWED", "OUTPUT_SHAPE_NARROWED"},
    ),
    "an output that promises less": (OLD, outs(y=(FLOAT, ["L", 3])), {"OUTPUT_SHAPE_WIDENED"}),
    "an output that promises more": (outs(y=(FLOAT, ["L", 3])), OLD, {"OUTPUT_SHAPE_NARROWED"}),
    "a dimension of another name": (
        OLD,
        Model({"x": (FLOAT, ["B", 3]), "m": (FLOAT, ["B"])}, {"y": (FLOAT, ["B", 3])}),
        {"DIMENSION_RENAMED"},
    ),
    "a name that binds nothing goes": (*inputs_of(["L", 3], [None, 3]), {"DIMENSION_RENAMED"}),
    "a higher opset": (OLD, replace(OLD, opsets={"": 14}), {"OPSET_RAISED"}),
    "a lower opset": (OLD, replace(OLD, opsets={"": 12}), {"OPSET_LOWERED"}),
    "another domain": (OLD, replace(OLD, opsets={"": 13, "ai.onnx.ml": 3}), {"OPSET_RAISED"}),
    "a domain less": (replace(OLD, opsets={"": 13, "ai.onnx.ml": 3}), OLD, {"OPSET_LOWERED"}),
    "the same domain, spelled out": (OLD, replace(OLD, opsets={"ai.onnx": 13}), set()),
    "a higher IR version": (OLD, replace(OLD, ir_version=9), {"IR_VERSION_RAISED"}),
    "a lower IR version": (OLD, replace(OLD, ir_version=7), {"IR_VERSION_LOWERED"}),
    "another node": (OLD, replace(OLD, op="Sigmoid"), {"GRAPH_CHANGED"}),
    "another weight": (OLD, replace(OLD, weight=2.0), {"GRAPH_CHANGED"}),
    "another text": (OLD, replace(OLD, doc="better"), {"METADATA_CHANGED"}),
    "another denotation": (
        replace(OLD, meanings={"x": "IMAGE"}),
        replace(OLD, meanings={"x": "TEXT"}),
        {"MEANING_CHANGED", "METADATA_CHANGED"},
    ),
    "a denotation more": (OLD, replace(OLD, meanings={"x": "IMAGE"}), {"METADATA_CHANGED"}),
    "grey images for coloured ones": (
        replace(OLD, props={"Image.BitmapPixelFormat": "Rgb8"}),
        replace(OLD, props={"Image.BitmapPixelFormat": "Gray8"}),
        {"MEANING_CHANGED", "METADATA_CHANGED"},
    ),
    "the same images, spelled otherwise": (
        replace(OLD, props={"Image.BitmapPixelFormat": "Rgb8"}),
        replace(OLD, props={"image.bitmapPixelFormat": "RGB8"}),
        {"METADATA_CHANGED"},
    ),
}


@pytest.mark.parametrize(("old", "new", "rules"), CASES.values(), ids=CASES)
def test_what_changed(old: Model, new: Model, rules: set[str]) -> None:
    found = compare(old.built(), new.built())
    assert {change.rule for change in found.changes} == rules
    assert found.required == max((RULES[rule].rise for rule in rules), default=Rise.NONE)


def test_every_rule_has_a_case() -> None:
    covered = set().union(*(rules for _, _, rules in CASES.values()))
    assert covered | {"WEIGHTS_UNKNOWN"} == set(RULES)


ENOUGH = {
    "nothing changed, the same version": (OLD, "1.0.0", True),
    "nothing changed, a lower version": (OLD, "0.9.0", False),
    "a patch for a patch": (replace(OLD, weight=2.0), "1.0.1", True),
    "nothing for a patch": (replace(OLD, weight=2.0), "1.0.0", False),
    "a patch for a minor": (outs(z=(FLOAT, [1])), "1.0.1", False),
    "a minor for a minor": (outs(z=(FLOAT, [1])), "1.1.0", True),
    "a minor for a major": (ins(z=(FLOAT, [1])), "1.1.0", False),
    "a major for a major": (ins(z=(FLOAT, [1])), "2.0.0", True),
    "a major for a patch": (replace(OLD, weight=2.0), "2.0.0", True),
}


@pytest.mark.parametrize(("new", "version", "enough"), ENOUGH.values(), ids=ENOUGH)
def test_whether_the_version_rises_enough(new: Model, version: str, enough: bool) -> None:
    assert compare(OLD.built(), replace(new, version=version).built()).enough is enough


def test_the_gravest_change_comes_first() -> None:
    new = replace(OLD, weight=2.0, outputs={**OLD.outputs, "z": M}, inputs={"x": (TEXT, ["N", 3]), "m": M})
    found = compare(OLD.built(), new.built())
    assert [change.rise.name for change in found.changes] == ["MAJOR", "MINOR", "PATCH"]
    assert found.lowest == "2.0.0"


def test_a_change_tells_what_was_and_what_is() -> None:
    first = compare(OLD.built(), ins(x=(TEXT, ["N", 4])).built()).changes
    assert [(each.place, each.before, each.after) for each in first] == [
        ("input 'x'", "tensor(float)", "tensor(string)"),
        ("input 'x'", "[N, 3]", "[N, 4]"),
    ]


def test_the_comparison_is_plain_data() -> None:
    data = compare(OLD.built(), replace(OLD, weight=2.0, version="1.0.1").built()).as_dict()
    assert {name: data[name] for name in data if name != "changes"} == {
        "old_version": "1.0.0", "new_version": "1.0.1", "required": "PATCH", "risen": "PATCH", "enough": True,
        "lowest": "1.0.1",
    }  # fmt: skip
    assert data["changes"] == [
        {"rule": "GRAPH_CHANGED", "rise": "PATCH", "place": "graph", "why": "the signature is the same",
         "before": "", "after": ""}
    ]  # fmt: skip


def test_a_conversion_upwards_asks_for_a_minor() -> None:
    golden = Path(__file__).parents[2] / "golden" / "segmenter-9.onnx"
    found = compare(golden, convert_version(golden, 17))
    assert found.required == Rise.MINOR
    assert {"OPSET_RAISED", "GRAPH_CHANGED"} <= {change.rule for change in found.changes}


def test_models_of_different_classes_are_compared() -> None:
    model = OLD.built()
    data = model.SerializeToString()
    assert compare(model, opshift.ModelProto.FromString(data)).changes == ()
    assert compare(data, model).changes == ()


def test_weights_in_files_of_their_own(tmp_path: Path) -> None:
    """They are compared where both models are files; elsewhere they may have changed."""
    for folder, weight in (("one", 1.0), ("same", 1.0), ("other", 2.0)):
        (tmp_path / folder).mkdir()
        options = {"save_as_external_data": True, "location": "w.bin", "size_threshold": 0}
        onnx.save(replace(OLD, weight=weight).built(), tmp_path / folder / "m.onnx", **options)
    one, same, other = (tmp_path / folder / "m.onnx" for folder in ("one", "same", "other"))
    assert compare(one, same).changes == ()
    assert [change.rule for change in compare(one, other).changes] == ["WEIGHTS_UNKNOWN"]
    assert [change.rule for change in compare(one, same.read_bytes()).changes] == ["WEIGHTS_UNKNOWN"]
    (tmp_path / "same" / "w.bin").unlink()
    assert [change.rule for change in compare(one, same).changes] == ["WEIGHTS_UNKNOWN"]


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(InvalidModel, match="no graph"):
        compare(OLD.built(), onnx.ModelProto(ir_version=8))
