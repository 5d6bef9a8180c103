"""Differences between two models."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from support.rich_model import full_model

import opshift
from opshift import InvalidModel, diff_model
from opshift.analysis.model_diff.diff import MAX_CONTEXT
from opshift.analysis.model_diff.result import ModelDiff, NodeDifference

MODEL = """
<ir_version: 10, opset_import: ["" : 10, "local" : 1]>
example (float[N, 4] x, bool c) => (float[N, 4] y, float[N, 4] z)
<float[1] w = {2.0}, float[1] unused = {3.0}>
{
    [first] a = Clip <min = 0.0, max = 6.0> (x)
    [middle] b = Mul (a, w)
    [call] d = local.twice (b)
    [branch] e = If (c) <
        then_branch = yes () => (float[N, 4] t) { [inner] t = Clip <min = 0.0> (d) },
        else_branch = no () => (float[N, 4] f) { f = Relu (d) }
    >
    [last] y = Softmax <axis = 1> (e)
    [other] z = Relu (b)
}
<domain: "local", opset_import: ["" : 10]>
twice (p) => (q) { [body] q = Add (p, p) }
"""


def example() -> onnx.ModelProto:
    model = onnx.parser.parse_model(MODEL)
    helper.set_model_props(model, {"author": "Ada"})
    return model


def statuses(diff: ModelDiff) -> dict[str, str]:
    """Return the status of each node that is not equal, by its place."""
    regions = (region for container in diff.containers for region in container.regions)
    found = {each.node.place: each.status for region in regions for each in region.changed}
    return {**found, **{each.node.place: each.status for one in diff.containers for each in one.renamed}}


def properties(diff: ModelDiff) -> dict[tuple[str, str], tuple[str, str]]:
    return {
        (container.place, each.name): (each.before, each.after)
        for container in diff.containers
        for each in container.properties
    }


def find(diff: ModelDiff, place: str) -> NodeDifference:
    regions = (region for container in diff.containers for region in container.regions)
    return next(each for region in regions for each in region.changed if each.node.place == place)


def test_conversion_changes_the_rewritten_nodes_only() -> None:
    conversion = opshift.convert(example(), 13)
    diff = diff_model(example(), conversion.model)
    rewritten = {each for each, status in statuses(diff).items() if status == "changed"}
    assert rewritten - {"branch"} == {"first", "inner", "last"}
    assert [each.place for each in diff.containers] == [
        "model", "graph", "graph, 'branch' then_branch", "function local.twice",
    ]  # fmt: skip
    assert properties(diff)["model", "opset ai.onnx"] == ("10", "13")
    changes = [str(each) for each in find(diff, "first").changes]
    assert changes == [
        "- attribute 'min': 0",
        "- attribute 'max': 6",
        "+ input 1: const",
        "+ input 2: const_1",
    ]
    assert [text for _, text in find(diff, "first").node.constants] == ["float[] = 0", "float[] = 6"]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(lambda model, _: model, id="message"),
        pytest.param(lambda model, _: model.SerializeToString(), id="bytes"),
        pytest.param(lambda model, _: opshift.ModelProto.FromString(model.SerializeToString()), id="class"),
        pytest.param(lambda model, path: onnx.save(model, path) or path, id="path"),
    ],
)
def test_equal_models_have_no_differences(
    given: Callable[[onnx.ModelProto, Path], opshift.ModelProto], tmp_path: Path
) -> None:
    diff = diff_model(example(), given(example(), tmp_path / "model.onnx"))
    assert (diff.equal, str(diff), diff.counts()["kept"]) == (True, "no differences", 9)


def _swap_inputs(model: onnx.ModelProto) -> None:
    values = [*model.graph.input]
    del model.graph.input[:]
    model.graph.input.extend(reversed(values))


def _swap_nodes(model: onnx.ModelProto) -> None:
    nodes = [*model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend([*nodes[:4], nodes[5], nodes[4]])


def _set_weight(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array([5.0], np.float32), "w"))


def _set_large_weight(model: onnx.ModelProto, value: float = 1.0) -> None:
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.full(9, value, np.float32), "w"))


def _quantize(model: onnx.ModelProto) -> None:
    annotation = model.graph.quantization_annotation.add(tensor_name="a")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")


PROPERTY_CHANGES: list[tuple[str, Callable[[onnx.ModelProto], object], tuple[str, str], tuple[str, str]]] = [
    ("ir version", lambda m: setattr(m, "ir_version", 9), ("model", "IR version"), ("10", "9")),
    ("producer", lambda m: setattr(m, "producer_name", "p"), ("model", "producer name"), ("", "p")),
    ("opset", lambda m: setattr(m.opset_import[0], "version", 11), ("model", "opset ai.onnx"), ("10", "11")),
    (
        "metadata",
        lambda m: helper.set_model_props(m, {"author": "Bob"}),
        ("model", "metadata 'author'"),
        ("Ada", "Bob"),
    ),
    (
        "function",
        lambda m: m.functions.pop(),
        ("model", "functions local.twice"),
        ("function, number of nodes: 1", ""),
    ),
    (
        "training",
        lambda m: m.training_info.add().algorithm.node.add(op_type="Relu"),
        ("model", "training info 0"),
        ("", "number of nodes: 0 initialize, 1 train"),
    ),
    ("weight", _set_weight, ("graph", "initializer 'w'"), ("float[1] = 2", "float[1] = 5")),
    (
        "large weight",
        lambda m: _set_large_weight(m, 2.0),
        ("graph", "initializer 'w'"),
        ("float[1] = 2", "float[9]"),
    ),
    (
        "type",
        lambda m: setattr(m.graph.output[0].type.tensor_type, "elem_type", TensorProto.DOUBLE),
        ("graph", "output 'y'"),
        ("float[N, 4]", "double[N, 4]"),
    ),
    (
        "order of inputs",
        _swap_inputs,
        ("graph", "order of inputs and outputs"),
        ("input 'x', input 'c', output 'y', output 'z'", "input 'c', input 'x', output 'y', output 'z'"),
    ),
    ("order of nodes", _swap_nodes, ("graph", "order of nodes"), ("", "differs")),
    (
        "removed initializer",
        lambda m: m.graph.initializer.pop(),
        ("graph", "initializer 'unused'"),
        ("float[1] = 3", ""),
    ),
    ("doc string", lambda m: setattr(m.graph, "doc_string", "d"), ("graph", "doc string"), ("", "d")),
    ("quantization", _quantize, ("graph", "quantization annotation 'a'"), ("", "tensor_name")),
    (
        "declared value",
        lambda m: m.graph.value_info.append(helper.make_tensor_value_info("a", 1, [None])),
        ("graph", "value 'a'"),
        ("", "float[?]"),
    ),
    (
        "function input",
        lambda m: m.functions[0].attribute.append("alpha"),
        ("function local.twice", "attribute"),
        ("", "[alpha]"),
    ),
]


@pytest.mark.parametrize(
    ("change", "place", "states"),
    [pytest.param(change, place, states, id=name) for name, change, place, states in PROPERTY_CHANGES],
)
def test_finds_changed_property(
    change: Callable[[onnx.ModelProto], object], place: tuple[str, str], states: tuple[str, str]
) -> None:
    old, new = example(), example()
    change(new)
    for (one, other), expected in (((old, new), states), ((new, old), states[::-1])):
        before, after = properties(diff_model(one, other))[place]
        if place[1] != "order of nodes":
            assert (before.startswith(expected[0]), after.startswith(expected[1])) == (True, True)


def test_large_tensors_of_the_same_shape_differ() -> None:
    old, new = example(), example()
    _set_large_weight(old)
    _set_large_weight(new, 2.0)
    states = properties(diff_model(old, new))["graph", "initializer 'w'"]
    assert states == ("float[9]", "float[9], other content")


def test_reports_unknown_fields() -> None:
    data = example().SerializeToString()
    diff = diff_model(data, data + b"\xa2\x06\x03abc")  # field 100
    assert properties(diff)["model", "encoding"][1].startswith("same content, different serialization")


def test_matches_nodes_by_computation_if_values_have_new_names() -> None:
    new = example()
    for node in new.graph.node:
        node.name = ""
        node.input[:] = [{"x": "image", "w": "weight"}.get(name, f"new_{name}") for name in node.input]
        node.output[:] = [f"new_{name}" for name in node.output]
    for value in (*new.graph.input, *new.graph.output):
        value.name = "image" if value.name == "x" else f"new_{value.name}"
    new.graph.initializer[0].name = "weight"
    for graph in (each.g for each in new.graph.node[3].attribute):
        graph.node[0].input[0] = f"new_{graph.node[0].input[0]}"
    diff = diff_model(example(), new)
    counts = diff.counts()
    # the subgraphs of If hold the new names, so If itself is found by its first input
    assert (counts["added"], counts["removed"], counts["changed"]) == (0, 0, 1)
    assert properties(diff)["graph", "initializer 'weight' renamed"] == ("w", "weight")
    assert properties(diff)["graph", "input 'image' renamed"] == ("x", "image")


def test_replaced_node_is_added_and_removed_in_one_region() -> None:
    new = example()
    new.graph.node[5].op_type = "Abs"
    (container,) = diff_model(example(), new).containers
    (region,) = container.regions
    assert [(each.status, each.node.operator) for each in region.nodes] == [
        ("kept", "Mul"), ("added", "Abs"), ("removed", "Relu"),
    ]  # fmt: skip
    assert region.title == "Relu -> Abs"


def test_inserted_node_is_added_and_its_reader_changed() -> None:
    new = example()
    new.graph.node.insert(2, helper.make_node("Neg", ["b"], ["negated"], "negate"))
    new.graph.node[3].input[0] = "negated"
    diff = diff_model(example(), new)
    assert statuses(diff) == {"negate": "added", "call": "changed"}
    assert [str(each) for each in find(diff, "call").changes] == ["~ input 0: b -> negated"]


ORDERED, SWAPPED = "a = Relu (x) b = Neg (x)", "a = Neg (x) b = Relu (x)"
SUB = ["~ input 0: a -> a (renamed from b)", "~ input 1: b -> b (renamed from a)"]
OTHER_BRANCH = "else_branch = e () => (f) { f = Abs (x) }"
CAPTURES = f"y = If (c) <then_branch = t () => (s) {{ s = Sub (a, b) }}, {OTHER_BRANCH}>"
CAPTURED = [change.replace("input", "captured value") for change in SUB]
OWN = f"h = If (c) <then_branch = t () => (s) {{ a = Neg (x) s = Elu <alpha = %s> (a) }}, {OTHER_BRANCH}>"
OUTPUTS = {
    ("graph", "value of output 0"): ("a", "a (renamed from b)"),
    ("graph", "value of output 1"): ("b", "b (renamed from a)"),
}

Values = dict[tuple[str, str], tuple[str, str]]
EXCHANGES: dict[str, tuple[str, str, str, dict[str, list[str]], Values]] = {
    "inputs": (f"{ORDERED} y = Sub (a, b)", f"{SWAPPED} y = Sub (a, b)", "y", {"y": SUB}, {}),
    "both names": (f"{ORDERED} y = Sub (a, b)", f"{SWAPPED} y = Sub (b, a)", "y", {}, {}),
    "outputs of one node": (
        "a, b = Split (x) y = Sub (a, b)", "b, a = Split (x) y = Sub (a, b)", "y", {"y": SUB}, {}
    ),
    "names of the outputs of one node": (
        "a, b = Split (x) y = Sub (a, b)", "b, a = Split (x) y = Sub (b, a)", "y", {}, {}
    ),
    "one input": (
        f"{ORDERED} y = Add (a, x)", f"{SWAPPED} y = Add (a, x)", "y", {"y": SUB[:1]}, {}
    ),
    "outputs of the graph": (ORDERED, SWAPPED, "a, b", {}, OUTPUTS),
    "outputs of a node and of the graph": ("a, b = Split (x)", "b, a = Split (x)", "a, b", {}, OUTPUTS),
    "captured values": (
        f"{ORDERED} {CAPTURES}", f"{SWAPPED} {CAPTURES}", "y", {"y": CAPTURED, "s": SUB}, {}
    ),
    "captured value as the output of a subgraph": (
        f"{ORDERED} {CAPTURES.replace('(s)', '(a)').replace('s = Sub (a, b)', 's = Abs (x)')}",
        f"{SWAPPED} {CAPTURES.replace('(s)', '(a)').replace('s = Sub (a, b)', 's = Abs (x)')}",
        "y",
        {"y": ["~ captured value 1: a -> a (renamed from b)"]},
        {("graph, If -> y then_branch", "value of output 0"): ("a", "a (renamed from b)")},
    ),
    "names that a subgraph uses for its own values": (
        f"{OWN % '1.0'} {ORDERED} y = Sub (a, h)",
        f"{OWN % '2.0'} {SWAPPED} y = Sub (b, h)",
        "y",
        {"h": [
            "~ attribute 'then_branch': graph, number of nodes: 2 -> graph, number of nodes: 2, other content"
        ], "s": ["~ attribute 'alpha': 1 -> 2"]},
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "outputs", "changes", "values"), EXCHANGES.values(), ids=EXCHANGES)
def test_names_of_exchanged_values(
    old: str, new: str, outputs: str, changes: dict[str, list[str]], values: Values
) -> None:
    """Models that differ only in names compute the same; changes explain any other result."""
    header = '<ir_version: 8, opset_import: ["" : 13]> g (float[2] x, bool c)'
    models = [onnx.parser.parse_model(f"{header} => ({outputs}) {{ {nodes} }}") for nodes in (old, new)]
    feeds = {"x": np.array([1.0, -3.0], np.float32), "c": np.array(True)}
    results = [ReferenceEvaluator(each).run(None, feeds) for each in models]
    diff = diff_model(*models)
    found = {place: status for place, status in statuses(diff).items() if status != "renamed"}
    assert found == dict.fromkeys(changes, "changed")
    assert {place: [str(each) for each in find(diff, place).changes] for place in changes} == changes
    found_values = {place: texts for place, texts in properties(diff).items() if "value of" in place[1]}
    assert found_values == values
    assert bool(changes or values) != all(map(np.array_equal, *results))


def test_exchanged_values_in_a_function() -> None:
    old, new = example(), example()
    for model, names in ((old, "ab"), (new, "ba")):
        nodes = [helper.make_node("Relu", ["p"], [names[0]]), helper.make_node("Neg", ["p"], [names[1]])]
        del model.functions[0].node[:]
        model.functions[0].node.extend([*nodes, helper.make_node("Sub", ["a", "b"], ["q"])])
    assert [str(each) for each in find(diff_model(old, new), "q").changes] == SUB


def test_order_of_attributes_and_encoding_of_nodes_do_not_matter() -> None:
    new = example()
    new.graph.node[0].attribute.append(new.graph.node[0].attribute[0])
    del new.graph.node[0].attribute[0]
    assert statuses(diff_model(example(), new)) == {}


def _chain(count: int, constant: bool = False) -> onnx.ModelProto:
    """Return a model with a Relu after each Clip; the Clip nodes read one constant if `constant`."""
    nodes = [helper.make_node("Constant", [], ["least"], "constant", value_float=0.0)] if constant else []
    for each in range(count):
        inputs = [f"v{each}", *(["least"] if constant else [])]
        nodes.append(helper.make_node("Clip", inputs, [f"c{each}"], f"clip{each}"))
        nodes.append(helper.make_node("Relu", [f"c{each}"], [f"v{each + 1}"], f"relu{each}"))
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("v0", f"v{count}")]
    return helper.make_model(helper.make_graph(nodes, "g", values[:1], values[1:]))


def test_shared_constant_does_not_join_regions() -> None:
    container = diff_model(_chain(4), _chain(4, constant=True)).containers[-1]
    assert [len(list(each.changed)) for each in container.regions] == [2, 1, 1, 1]
    assert [len(group) for group in container.identical()] == [1, 3]


def test_region_has_limited_context() -> None:
    old = _chain(1)
    for each in range(20):
        old.graph.node.append(helper.make_node("Abs", [f"s{each}"], [f"t{each}"], f"abs{each}"))
        old.graph.node.insert(0, helper.make_node("Abs", ["v0"], [f"s{each}"]))
    new = deepcopy(old)
    old.graph.node.append(helper.make_node("Concat", [f"t{each}" for each in range(20)], ["u"], axis=0))
    new.graph.node.append(helper.make_node("Concat", [f"t{each}" for each in range(20)], ["u"], axis=-1))
    (region,) = diff_model(old, new).containers[-1].regions
    assert sum(each.status == "kept" for each in region.nodes) == MAX_CONTEXT


def test_result_is_plain_data() -> None:
    diff = diff_model(example(), opshift.convert_version(example(), 13))
    assert pickle.loads(pickle.dumps(diff)) == diff
    data = json.loads(json.dumps(diff.as_dict()))
    assert data["nodes"] == diff.counts()
    assert [each["place"] for each in data["containers"]] == [each.place for each in diff.containers]
    assert str(diff).startswith("nodes: ")


def test_external_data_without_files_is_unknown(tmp_path: Path) -> None:
    model = example()
    tensor = model.graph.initializer[0]
    tensor.ClearField("float_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    paths = [tmp_path / "old.onnx", tmp_path / "new.onnx"]
    for path in paths:
        path.write_bytes(model.SerializeToString())
    assert list(properties(diff_model(*paths))) == [("model", "external data files")]
    (tmp_path / "weights.bin").write_bytes(bytes(4))
    assert diff_model(*paths).equal


def test_refuses_message_without_graph() -> None:
    with pytest.raises(InvalidModel, match="no graph"):
        diff_model(example(), b"\x08\x07")


@pytest.mark.parametrize(
    ("field", "broken"),
    [
        pytest.param(b"\x12\x01b", b"\x12\x01\xff", id="output"),
        pytest.param(b"Softmax", b"Softma\xff", id="operator"),
        pytest.param(b"local", b"loca\xff", id="domain"),
    ],
)
def test_refuses_names_that_are_not_text(field: bytes, broken: bytes) -> None:
    data = example().SerializeToString()
    with pytest.raises(InvalidModel, match="not UTF-8"):
        diff_model(data, data.replace(field, broken))


def _changes(message: Any, changed: set[str]) -> Iterator[str]:
    """Change each set scalar field of a message and its submessages in turn, and yield its name meanwhile."""
    for field, value in message.ListFields():
        name = f"{type(message).__name__}.{field.name}"
        if hasattr(value, "ListFields"):
            yield from _changes(value, changed)
        elif hasattr(value, "add"):
            for each in value:
                yield from _changes(each, changed)
        elif name not in changed:
            changed.add(name)  # once for each field of each type of message
            if not hasattr(value, "append"):
                setattr(message, field.name, _other(value))
                yield name
                setattr(message, field.name, value)
            else:
                original = value[0]
                value[0] = _other(original)
                yield name
                value[0] = original


def _other(value: Any) -> Any:
    if isinstance(value, bytes):
        return value + b"x"
    if isinstance(value, str):
        return f"{value}x"
    return value - 1 if value == 1 else value + 1  # enumerations have no value after their last one


def test_finds_change_of_every_field() -> None:
    old, new = full_model(), full_model()
    unknown = diff_model(old, new).containers[0]  # external data files of messages
    assert [each.name for each in unknown.properties] == ["external data files"]
    changed: set[str] = set()
    for name in _changes(new, changed):
        found = set(diff_model(old, new).containers) - {unknown}
        names = {change.name for each in found for change in each.properties}
        assert found, name
        assert names != {"encoding"}, name
    assert len(changed) > 50
    assert diff_model(old, new).containers == (unknown,)
