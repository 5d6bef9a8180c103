"""The declared rewrites that steps down use, on operators that a folder of definitions adds.

They are ONNX's operators under another domain, with a step down that the test declares. Under ONNX's own
domain their nodes are run before and after.
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
from support.running import Array, assert_equal, build, run

from opshift import ConversionRefused, Registry, convert_version, default_registry
from opshift.registry.steps import VERBS

ACME = "com.acme"
RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.standard_normal((1, 2, 4, 4)).astype(np.float32)
LIST = np.array([-2.0, 0.5, 3.0], np.float32)
BOXES = {"x": IMAGE, "rois": np.array([[0, 0, 2, 3]], np.float32), "b": np.array([0])}
POOLED = IMAGE.reshape(1, 2, 2, 2, 2, 2).max((3, 5))
ROWS_OF = {"data": IMAGE[0, 0], "i": np.array([[2], [0]]), "u": IMAGE[0, 1, :2]}
HEADS = {name: RANDOM.standard_normal((1, 2, 3, 4)).astype(np.float32) for name in "qkv"}
BOX = {"output_height": 2, "output_width": 2}
WINDOW = {"kernel_shape": (2, 2), "strides": (2, 2)}


class Step(NamedTuple):
    """Two neighbouring versions of an operator, and how a node goes from the newer to the older."""

    op: str
    newer: int
    older: int
    verbs: Sequence[Mapping[str, Any]]


TO_ATTRIBUTE = Step("Squeeze", 13, 11, [{"input_to_attribute": "axes"}])
TO_NUMBER = Step("TopK", 10, 1, [{"input_to_attribute": {"input": "K", "attribute": "k"}}])
SCALES = Step("Upsample", 9, 7, [{"input_to_attribute": "scales"}])
DROPPED = Step("ScatterND", 16, 13, [{"drop_attribute": "reduction"}])
PLACED = Step(
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
CACHED = Step("Attention", 24, 23, [{"require_no_input": "nonpad_kv_seqlen"}])
INDEXED = Step("MaxPool", 8, 1, [{"drop_attribute": "storage_order"}, {"require_no_output": "Indices"}])


class Row(NamedTuple):
    """A node that is fed with everything in `feeds`, and what it states afterwards."""

    step: Step
    feeds: Mapping[str, Array]
    attributes: Mapping[str, Any]
    after: Mapping[str, Any] = {}
    expected: Sequence[Array] | None = None
    constants: Sequence[str] = ()
    inputs: Sequence[str] | None = None
    outputs: Sequence[str] = ("y",)


SQUEEZED = {"x": IMAGE, "a": np.array([0])}
CHANGED = {
    "an attribute at its default is dropped": Row(DROPPED, ROWS_OF, {"reduction": "none"}),
    "an attribute that is not stated need not be dropped": Row(DROPPED, ROWS_OF, {}),
    "a constant becomes a list": Row(
        TO_ATTRIBUTE, SQUEEZED, {}, {"axes": (0,)}, constants=["a"], inputs=["x"]
    ),
    "an input that is left out becomes nothing": Row(TO_ATTRIBUTE, {"x": IMAGE}, {}),
    "a list of one becomes a number": Row(
        TO_NUMBER,
        {"x": LIST, "k": np.array([2])},
        {},
        {"k": 2},
        constants=["k"],
        inputs=["x"],
        outputs=("y", "i"),
    ),
    "the required value is given": Row(
        PLACED, BOXES, {**BOX, "coordinate_transformation_mode": "output_half_pixel"}, BOX
    ),
    "an input that came later is not used": Row(CACHED, HEADS, {}),
    "an output that came later is not there": Row(INDEXED, {"x": IMAGE}, WINDOW, WINDOW),
    "an output that came later has no name": Row(
        INDEXED, {"x": IMAGE}, {**WINDOW, "storage_order": 0}, WINDOW, [POOLED], outputs=("y", "")
    ),
}
REFUSED = {
    "an attribute that matters is not dropped": (
        Row(DROPPED, ROWS_OF, {"reduction": "add"}),
        "reduction is 'add'; com.acme.ScatterND:13 supports only the default, 'none'",
    ),
    "a computed input is no attribute": (
        Row(TO_ATTRIBUTE, SQUEEZED, {}),
        "input axes ('a') is not a constant",
    ),
    "another value than the required one": (
        Row(PLACED, BOXES, {**BOX, "coordinate_transformation_mode": "half_pixel"}),
        "coordinate_transformation_mode is 'half_pixel'; com.acme.RoiAlign:10 requires 'output_half_pixel'",
    ),
    "a default that is not the required value": (
        Row(PLACED, BOXES, BOX),
        "coordinate_transformation_mode is 'half_pixel'; com.acme.RoiAlign:10 requires 'output_half_pixel'",
    ),
    "an input that came later is used": (
        Row(
            CACHED,
            {**HEADS, "length": np.array([2])},
            {},
            inputs=["q", "k", "v", "", "", "", "length"],
        ),
        "input nonpad_kv_seqlen is used, which com.acme.Attention:23 does not have",
    ),
    "an output that came later is used": (
        Row(INDEXED, {"x": IMAGE}, WINDOW, outputs=("y", "i")),
        "output Indices is used, which com.acme.MaxPool:1 does not have",
    ),
    "of two verbs the first refuses": (
        Row(INDEXED, {"x": IMAGE}, {**WINDOW, "storage_order": 1}, outputs=("y", "i")),
        "storage_order is 1; com.acme.MaxPool:1 supports only the default, 0",
    ),
}

Declare = Callable[[Step], Registry]


@pytest.fixture
def declare(tmp_path: Path) -> Declare:
    """A registry that has the two versions of a step in another domain."""

    def registry(step: Step) -> Registry:
        shipped = files("opshift.opsets") / "ai.onnx" / f"{step.op}.yaml"
        definition = yaml.safe_load(shipped.read_text(encoding="utf-8"))
        listed = {each["since_version"]: each for each in definition["versions"]}
        older, newer = listed[step.older], listed[step.newer]
        for each in (older, newer):
            each.pop("before", None)
            each.pop("step", None)
        newer["step"] = {"up": {"refuse": "these tests go down"}, "down": [*step.verbs]}
        folder = tmp_path / ACME
        folder.mkdir()
        content = {**definition, "domain": ACME, "versions": [older, newer]}
        (folder / f"{step.op}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
        return default_registry().with_folder(tmp_path)

    return registry


def _model(row: Row, nodes: Sequence[onnx.NodeProto] = ()) -> onnx.ModelProto:
    given = {name: array for name, array in row.feeds.items() if name in row.constants}
    feeds = {name: array for name, array in row.feeds.items() if name not in given}
    inputs = row.inputs if row.inputs and not given else list(row.feeds)
    node = helper.make_node(row.step.op, inputs, row.outputs, name="node", **row.attributes)
    kinds = {name: TensorProto.INT64 if name == "i" else TensorProto.FLOAT for name in row.outputs if name}
    return build([*nodes, node], feeds, kinds, row.step.newer, initializers=given)


def _moved(model: onnx.ModelProto, step: Step, registry: Registry) -> onnx.ModelProto:
    """A model of ONNX's operators that took a step down under the other domain."""
    acme = onnx.ModelProto()
    acme.CopyFrom(model)
    acme.graph.node[-1].domain = ACME
    acme.opset_import.append(helper.make_opsetid(ACME, step.newer))
    moved = convert_version(acme, {ACME: step.newer - 1}, registry=registry)
    assert moved.opset_import[1].version == step.newer - 1
    moved.graph.node[-1].domain = ""
    del moved.opset_import[1:]
    moved.opset_import[0].version = step.newer - 1
    return moved


def _stated(node: onnx.NodeProto) -> dict[str, Any]:
    found = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}


@pytest.mark.parametrize("row", CHANGED.values(), ids=CHANGED)
def test_numbers_stay_the_same(row: Row, declare: Declare) -> None:
    model = _model(row)
    moved = _moved(model, row.step, declare(row.step))
    (node,) = moved.graph.node
    assert node.name == "node"
    assert _stated(node) == row.after
    assert list(node.input) == (row.inputs or list(row.feeds))
    feeds = {each.name: row.feeds[each.name] for each in model.graph.input}
    assert_equal(run(moved, feeds), row.expected or run(model, feeds))


@pytest.mark.parametrize(("row", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_the_other_version_cannot_say_is_refused(row: Row, reason: str, declare: Declare) -> None:
    with pytest.raises(ConversionRefused) as caught:
        _moved(_model(row), row.step, declare(row.step))
    assert [each.reason for each in caught.value.refusals] == [reason]


def test_every_verb_that_no_step_up_uses_is_here() -> None:
    """Those of steps up have their rows in `test_verbs.py`."""
    steps = (version.step for version in default_registry().get_all_schemas_with_history() if version.step)
    up = {verb.name for step in steps if isinstance(step.up, tuple) for verb in step.up}
    here = {name for row in CHANGED.values() for verb in row.step.verbs for name in verb}
    assert set(VERBS) - up <= here


def _tensor(values: Any, kind: Any = np.int64, *, raw: bool = True) -> onnx.TensorProto:
    array = np.array(values, kind)
    element = helper.np_dtype_to_tensor_dtype(array.dtype)
    content = array.tobytes() if raw else array.flatten().tolist()
    return helper.make_tensor("", element, array.shape, content, raw=raw)


def _constant(name: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], **attributes)


def _cast(source: str, result: str, to: int) -> onnx.NodeProto:
    return helper.make_node("Cast", [source], [result], to=to)


def _same(source: str, result: str) -> onnx.NodeProto:
    return helper.make_node("Identity", [source], [result])


ZERO = np.array([0])
MADE: dict[str, list[onnx.NodeProto]] = {
    "a tensor of raw bytes": [_constant("a", value=_tensor([0]))],
    "a tensor of listed numbers": [_constant("a", value=_tensor([0], raw=False))],
    "a list of integers": [_constant("a", value_ints=[0])],
    "Identity of a constant": [_constant("c", value_ints=[0]), _same("c", "a")],
    "Identity of Identity of an initializer": [_same("zero", "h"), _same("h", "a")],
    "a Cast from a smaller type": [
        _constant("c", value=_tensor([0], np.int32)),
        _cast("c", "a", TensorProto.INT64),
    ],
    "a Cast there and back": [
        _cast("zero", "c", TensorProto.INT32),
        _same("c", "d"),
        _cast("d", "a", TensorProto.INT64),
    ],
    "a Cast of listed small numbers": [
        _constant("c", value=_tensor([0], np.uint8, raw=False)),
        _cast("c", "a", TensorProto.INT64),
    ],
}


def _squeeze(nodes: Sequence[onnx.NodeProto], feeds: Mapping[str, Array] | None = None) -> onnx.ModelProto:
    inputs = ["x", *(feeds or {})]
    given = {"x": IMAGE, **(feeds or {})}
    squeeze = helper.make_node("Squeeze", ["x", "a"], ["y"], name="node")
    model = build([*nodes, squeeze], {name: given[name] for name in inputs}, ["y"], 13)
    if any("zero" in node.input for node in nodes):
        model.graph.initializer.append(helper.make_tensor("zero", TensorProto.INT64, [1], [0]))
    return model


@pytest.mark.parametrize("nodes", MADE.values(), ids=MADE)
def test_what_leads_to_a_constant_is_followed(nodes: list[onnx.NodeProto], declare: Declare) -> None:
    model = _squeeze(nodes)
    moved = _moved(model, TO_ATTRIBUTE, declare(TO_ATTRIBUTE))
    assert list(moved.graph.node[-1].input) == ["x"]
    assert _stated(moved.graph.node[-1]) == {"axes": (0,)}
    assert_equal(run(moved, {"x": IMAGE}), run(model, {"x": IMAGE}))


def test_a_number_is_read_as_a_list_of_one(declare: Declare) -> None:
    """The runtime insists on a list of axes, and does not run the original."""
    moved = _moved(_squeeze([_constant("a", value_int=0)]), TO_ATTRIBUTE, declare(TO_ATTRIBUTE))
    assert_equal(run(moved, {"x": IMAGE}), [IMAGE[0]])


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"value_floats": [1.0, 1.0, 2.0, 3.0]}, id="a list of floats"),
        pytest.param({"value": _tensor([1, 1, 2, 3], np.float32)}, id="a tensor of raw bytes"),
        pytest.param({"value": _tensor([1, 1, 2, 3], np.float32, raw=False)}, id="a tensor of numbers"),
        pytest.param({"value": _tensor([1, 1, 2, 3], np.float16)}, id="half precision, cast"),
    ],
)
def test_floats_are_read_as_they_are(values: dict[str, Any], declare: Declare) -> None:
    cast = _cast("c", "s", TensorProto.FLOAT)
    model = _model(Row(SCALES, {"x": IMAGE, "s": LIST}, {}), [_constant("c", **values), cast])
    del model.graph.input[1]
    model.opset_import[0].version = 13
    moved = _moved(model, SCALES, declare(SCALES))
    assert _stated(moved.graph.node[-1]) == {"scales": (1, 1, 2, 3)}
    del moved.graph.node[:-1]
    assert_equal(run(moved, {"x": IMAGE}), [IMAGE.repeat(2, 2).repeat(3, 3)])


SPARSE = helper.make_sparse_tensor(_tensor([0], raw=False), _tensor([0], raw=False), [1])
OPEN: dict[str, tuple[list[onnx.NodeProto], dict[str, Array], bool]] = {
    "an initializer that a caller may override": ([], {"a": ZERO}, True),
    "what follows from such an initializer": ([_same("b", "a")], {"b": ZERO}, True),
    "an input of the graph": ([], {"a": ZERO}, False),
    "a sum, even of constants": ([helper.make_node("Add", ["zero", "zero"], ["a"])], {}, False),
    "a sparse constant": ([_constant("a", sparse_value=SPARSE)], {}, False),
    "a Cast that may change a number": (
        [_constant("c", value_floats=[0.0]), _cast("c", "a", TensorProto.INT64)],
        {},
        False,
    ),
}


@pytest.mark.parametrize(("nodes", "feeds", "is_overridable"), OPEN.values(), ids=OPEN)
def test_what_may_differ_between_runs_is_no_attribute(
    nodes: list[onnx.NodeProto], feeds: dict[str, Array], is_overridable: bool, declare: Declare
) -> None:
    model = _squeeze(nodes, feeds)
    for name in feeds if is_overridable else ():
        model.graph.initializer.append(helper.make_tensor(name, TensorProto.INT64, [1], [0]))
    with pytest.raises(ConversionRefused) as caught:
        _moved(model, TO_ATTRIBUTE, declare(TO_ATTRIBUTE))
    (found,) = caught.value.refusals
    assert found.reason == "input axes ('a') is not a constant"
    assert found.remedy == "make it an initializer that is not a graph input"


def test_a_constant_of_the_graph_around_is_one(declare: Declare) -> None:
    """A branch may look at an initializer outside."""
    squeeze = helper.make_node("Squeeze", ["x", "a"], ["z"], name="node", domain=ACME)
    branch = helper.make_graph(
        [squeeze], "branch", [], [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)]
    )
    choice = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    feeds = {"x": IMAGE, "c": np.array(True)}
    model = build([choice], feeds, ["y"], {"": 13, ACME: 13}, initializers={"a": ZERO})
    moved = convert_version(model, {ACME: 11}, registry=declare(TO_ATTRIBUTE))
    for attribute in moved.graph.node[0].attribute:
        assert _stated(attribute.g.node[0]) == {"axes": (0,)}
