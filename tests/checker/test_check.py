"""Inputs and results of a check of a whole model."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper
from support.checker_cases.case import parse_text, violated_rules
from support.checker_cases.graphs import BRANCH, nested
from support.checker_cases.nodes import SCAN
from support.checker_cases.tensors import external

import opshift
from opshift.checker.check import MAX_ERRORS, check, require_legal
from opshift.checker.findings import Finding, IllegalModel, Level
from opshift.model.errors import InvalidModel
from opshift.model.messages import ModelProto

RELU = "g (float[2] x) => (float[2] y) { [act] y = Relu(x) }"
BROKEN = "g (float[2] x) => (float[2] y) { [act] y = Relu <alpha = 1.0> (z) }"


def opshift_message(model: onnx.ModelProto) -> Any:
    return ModelProto.FromString(model.SerializeToString())


@pytest.mark.parametrize(
    "to_input",
    [
        lambda model: model,
        opshift_message,
        lambda model: model.SerializeToString(),
        lambda model: bytearray(model.SerializeToString()),
    ],
    ids=["onnx message", "opshift message", "bytes", "bytearray"],
)
def test_accepts_model_as(to_input: Callable[[onnx.ModelProto], Any]) -> None:
    assert check(to_input(parse_text(RELU))) == ()
    assert {each.rule for each in check(to_input(parse_text(BROKEN)))} == {
        "node.attribute-known",
        "value.unknown",
    }


def test_accepts_path(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(parse_text(BROKEN), path)
    assert check(path) == check(str(path)) == check(parse_text(BROKEN))


def test_public_names_are_the_definitions() -> None:
    assert opshift.check is check
    assert (opshift.Finding, opshift.IllegalModel) == (Finding, IllegalModel)


def test_finding_holds_rule_place_reason_and_remedy() -> None:
    (finding,) = check(parse_text(RELU.replace("Relu(x)", "Relu <alpha = 1.0> (x)")))
    assert finding == Finding(
        "node.attribute-known",
        Level.ERROR,
        "graph, node 'act', attribute 'alpha'",
        "is not an attribute of ai.onnx.Relu:14",
        "remove the attribute, or correct its name",
    )
    assert finding.as_dict()["level"] == "error"
    assert str(finding).startswith(
        "error node.attribute-known: graph, node 'act', attribute 'alpha': is not an"
    )


def test_reports_all_findings() -> None:
    text = (
        "g (float[2] x) => (float[2] y) {" + " ".join(f"y{i} = Rule(x)" for i in range(50)) + "y = Relu(y0) }"
    )
    assert len(check(parse_text(text))) == 50


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ("x, x", "omits input 2, 'c', which the function requires"),
        ('x, "", x', "omits input 1, 'b', which the function requires"),
        ("x", "omits 2 inputs that the function requires; the first one is input 1, 'b'"),
        ('"", x', "omits 2 inputs that the function requires; the first one is input 0, 'a'"),
    ],
)
def test_reports_omitted_inputs_once(inputs: str, reason: str) -> None:
    model = parse_text(
        f"g (float[2] x) => (float[2] y) {{ y = local.F({inputs}) }}"
        '<domain: "local", opset_import: ["": 17]> F (a, b, c) => (d) { d = Sum(a, b, c) }',
    )
    model.opset_import.add(domain="local", version=1)
    assert [each.reason for each in check(model) if each.rule == "function.call-input-missing"] == [reason]


def test_does_not_change_model() -> None:
    model = parse_text(BROKEN)
    before = model.SerializeToString()
    check(model)
    assert model.SerializeToString() == before


def test_accepts_messages_of_older_onnx_releases() -> None:
    """ONNX releases before IR version 11 have no field for device configurations."""

    class Older:
        def __init__(self, model: onnx.ModelProto) -> None:
            self._model = model
            self.graph, self.opset_import = model.graph, model.opset_import

        def SerializeToString(self) -> bytes:  # noqa: N802 - as protobuf spells it
            return bytes(self._model.SerializeToString())

    assert violated_rules(Older(parse_text(BROKEN))) == {"node.attribute-known", "value.unknown"}


@pytest.mark.parametrize(
    "data",
    [b"", b"\x01\x02\x03", parse_text(RELU).SerializeToString()[:-3]],
    ids=["empty", "junk", "truncated"],
)
def test_reports_unreadable_bytes(data: bytes, tmp_path: Path) -> None:
    (finding,) = check(data)
    assert (finding.rule, finding.level, finding.place) == ("model.readable", Level.ERROR, "model")
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    (finding,) = check(path)
    assert (finding.rule, finding.place) == ("model.readable", str(path))


def test_refuses_unsupported_type() -> None:
    with pytest.raises(InvalidModel, match="expected a ModelProto, bytes, a path or a binary file, got int"):
        check(42)


def test_reports_names_that_are_not_utf_8() -> None:
    model = parse_text(
        "mark (float[2] mark) => (float[2] out) <float[2] w = {1, 2}> { [mark] mark2 = mark(mark, w) }"
    )
    places = [each.place for each in check(model.SerializeToString().replace(b"mark", b"m\xffrk"))]
    assert len(places) > 2


def test_reports_names_that_protobuf_cannot_decode(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        b"\xff".decode()

    monkeypatch.setattr("opshift.checker.check.Walk.run", fail)
    (finding,) = check(parse_text(RELU))
    assert finding.rule == "model.text"


def test_reports_graphs_nested_too_deeply() -> None:
    model = opshift_message(parse_text(BRANCH))
    nested(model, levels=200)
    assert "graph.depth" in violated_rules(model)


def test_infers_no_types_after_broken_node() -> None:
    """The output types of a broken node are unknown."""
    text = "g (float[2] x, int64[2] n) => (float[2] y) { a = Relu(x, n)  y = Add(a, n) }"
    assert violated_rules(parse_text(text)) == {"node.input-count"}
    assert violated_rules(parse_text(text.replace("(x, n)", "(x)"))) == {"type.variable"}


def test_infers_no_types_of_functions_that_replace_operators() -> None:
    text = """<ir_version: 10, opset_import: ["": 21]>
    g (float[2] x) => (int64[2] y) { y = Relu(x) }
    <domain: "", opset_import: ["": 21]> Relu (a) => (b) { b = Cast <to = 7> (a) }
    """
    assert violated_rules(parse_text(text)) == {"function.standard"}


def test_looks_for_external_data_next_to_model(tmp_path: Path) -> None:
    model = external()
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    assert violated_rules(model) == set()
    assert violated_rules(path) == violated_rules(model, folder=tmp_path) == {"external.file"}
    (tmp_path / "weights.bin").write_bytes(bytes(4096 + 8))
    assert violated_rules(path) == set()
    (tmp_path / "weights.bin").write_bytes(bytes(4096 + 7))
    assert violated_rules(path) == {"external.size"}


HARD, SYMBOLIC = "'weights.bin', a file with 2 hard links", "'weights.bin', a path with a symbolic link"

LINKS: dict[str, tuple[list[tuple[str, int]], Callable[[Path, Path], object], list[str]]] = {
    "no link": ([("weights.bin", 0)], Path.rename, []),
    "one tensor after the first page": ([("weights.bin", 4096)], Path.hardlink_to, [HARD]),
    "three tensors at the start": ([("weights.bin", 0)] * 3, Path.hardlink_to, [HARD]),
    "two spellings": ([("weights.bin", 0), ("./weights.bin", 4096)], Path.hardlink_to, [HARD]),
    "two files": (
        [("weights.bin", 0), ("deep/v.bin", 0)],
        Path.hardlink_to,
        [HARD, "'deep/v.bin', a file with 2 hard links"],
    ),
    "symbolic link": ([("weights.bin", 0), ("weights.bin", 4096)], Path.symlink_to, [SYMBOLIC]),
    "link to a folder": ([("link/v.bin", 0)], Path.rename, ["'link/v.bin', a path with a symbolic link"]),
}


@pytest.mark.parametrize(("tensors", "link", "reasons"), LINKS.values(), ids=LINKS)
def test_reports_links_once_for_a_file(
    tensors: list[tuple[str, int]], link: Callable[[Path, Path], object], reasons: list[str], tmp_path: Path
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "link").symlink_to("deep")
    for name in ("weights.bin", "deep/v.bin"):
        path, original = tmp_path / name, tmp_path / f"{name}.original"
        original.write_bytes(bytes(4096 + 8))
        link(*((original, path) if link is Path.rename else (path, original)))
    model = external()
    del model.graph.initializer[:]
    for number, (location, offset) in enumerate(tensors):
        (tensor,) = external(location).graph.initializer
        tensor.name, tensor.external_data[1].value = f"w{number}", str(offset)
        model.graph.initializer.append(tensor)
    found = [each for each in check(model, folder=tmp_path) if each.rule == "external.links"]
    assert [(each.level, each.reason) for each in found] == [
        ("warning", f"has external data in {each}") for each in reasons
    ]


def test_checks_checksum_of_external_data(tmp_path: Path) -> None:
    data = bytes(4096) + b"weights!"
    (tmp_path / "weights.bin").write_bytes(data)
    model = external()
    entry = model.graph.initializer[0].external_data.add(key="checksum", value=hashlib.sha1(data).hexdigest())
    assert violated_rules(model, folder=tmp_path) == set()
    entry.value = entry.value.upper()
    assert violated_rules(model, folder=tmp_path) == set()
    entry.value = "not a digest"
    assert violated_rules(model, folder=tmp_path) == {"external.checksum"}
    entry.value = hashlib.sha1(b"other").hexdigest()
    assert violated_rules(model) == set()
    finding = next(each for each in check(model, folder=tmp_path) if each.rule == "external.checksum")
    assert hashlib.sha1(data).hexdigest() in finding.reason
    # The file is missing: its digest cannot be wrong as well.
    (tmp_path / "weights.bin").unlink()
    assert violated_rules(model, folder=tmp_path) == {"external.file"}


def test_links_must_stay_in_model_folder(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    weights = bytes(4096 + 8)
    (tmp_path / "weights.bin").write_bytes(weights)
    (tmp_path / "model" / "inside.bin").write_bytes(weights)
    link = tmp_path / "model" / "weights.bin"
    link.symlink_to(tmp_path / "model" / "inside.bin")
    assert violated_rules(external(), folder=tmp_path / "model") == {"external.links"}
    link.unlink()
    link.symlink_to(tmp_path / "weights.bin")
    assert violated_rules(external(), folder=tmp_path / "model") == {"external.file"}


def test_checks_against_given_registry(tmp_path: Path) -> None:
    (tmp_path / "com.acme").mkdir()
    (tmp_path / "com.acme" / "Twist.yaml").write_text(
        "domain: com.acme\nname: Twist\nversions:\n- since_version: 1\n  before: {refuse: there was none}\n"
        "  inputs:\n  - {name: X, type: tensor(float)}\n  outputs:\n  - {name: Y, type: tensor(float)}\n"
    )
    model = parse_text(
        '<ir_version: 10, opset_import: ["": 21, "com.acme": 1]> '
        "g (int64[2] x) => (float[2] y) { y = com.acme.Twist <angle = 90> (x) }"
    )
    registry = opshift.default_registry().with_folder(tmp_path)
    assert violated_rules(model) == {"node.undefined"}
    assert violated_rules(model, registry=registry) == {"node.attribute-known"}
    del model.graph.node[0].attribute[:]
    assert violated_rules(model, registry=registry) == {"type.input"}


def test_counts_nodes_without_a_definition() -> None:
    model = parse_text(
        '<ir_version: 10, opset_import: ["": 21, "com.acme": 1, "com.microsoft": 1]> '
        "g (float[2] x, bool c) => (float[2] y) {"
        "  a = com.acme.Twist(x)  b = com.acme.Turn(a)  d = com.microsoft.FutureOperator(b)"
        "  y = If (c) <then_branch = t () => (p) { p = com.acme.Twist(d) }, else_branch = e () => (q)"
        " { q = com.acme.Called(d) }>"
        '} <domain: "com.acme", opset_import: ["": 21]> Called (a) => (b) { b = Relu(a) }'
    )
    found = {each.reason for each in check(model) if each.rule == "node.undefined"}
    assert found == {
        "3 nodes of com.acme were not checked: 'Turn', 'Twist'",
        "1 node of com.microsoft was not checked: 'FutureOperator'",
    }


def test_require_legal_accepts_legal_model() -> None:
    require_legal(parse_text(RELU))


def test_warnings_do_not_make_a_model_illegal() -> None:
    model = parse_text(RELU)
    model.opset_import.add(domain="ai.onnx", version=21)
    assert [each.level for each in check(model)] == [Level.WARNING]
    require_legal(model)


def test_error_holds_all_findings() -> None:
    with pytest.raises(IllegalModel) as caught:
        require_legal(parse_text(BROKEN), when="on arrival")
    assert len(caught.value.findings) == 2
    assert (
        caught.value.reason
        == "on arrival: value.unknown: input 'z' is not a node output, graph input or initializer, and 1 more"
    )
    assert isinstance(caught.value, InvalidModel)


@pytest.mark.parametrize(
    ("level", "included"),
    [(Level.ERROR, {Level.ERROR}), (Level.WARNING, {Level.ERROR, Level.WARNING}), (Level.INFO, set(Level))],
)
def test_level_includes_more_severe_levels(level: Level, included: set[Level]) -> None:
    assert {each for each in Level if level.includes(each)} == included


def chain(count: int) -> onnx.ModelProto:
    nodes = [helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"], f"n{i}") for i in range(count)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("v0", f"v{count}")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def count_calls(model: onnx.ModelProto) -> int:
    """Return the number of function calls of a check, in Python and in C."""
    count = 0

    def count_call(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(count_call)
    try:
        check(model)
    finally:
        sys.setprofile(None)
    return count


def test_work_is_linear_in_number_of_nodes() -> None:
    small, large = chain(500), chain(2000)
    count_calls(small)
    assert count_calls(large) < 4.2 * count_calls(small)


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param(
            "m = ReduceMax(x)  d = Sub(x, m)  e = Exp(d)  s, x = ReduceSum(e)  y = Div(e, s)", id="link"
        ),
        pytest.param("y = Relu(y)", id="itself"),
        pytest.param("a = Add(b, x)  b = Mul(a, a)  y = Exp(b)", id="two nodes"),
        pytest.param("a = Relu(b)  b = Relu(a)  y = Concat <axis = 0> (a, b)", id="two links"),
    ],
)
def test_ends_for_cycles(nodes: str) -> None:
    assert violated_rules(parse_text(f"g (float[2] x) => (float[2] y) {{ {nodes} }}"))


@pytest.mark.parametrize(
    "field", ["attribute", "operator", "domain", "import", "metadata", "dimension", "names"]
)
def test_reports_any_string_that_is_not_utf_8(field: str) -> None:
    model = parse_text("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    node = model.graph.node[0]
    if field == "attribute":
        node.attribute.add(name="PLACEHOLDER", i=1, type=2)
    elif field == "operator":
        node.op_type = "PLACEHOLDER"
    elif field == "domain":
        node.domain = "PLACEHOLDER"
    elif field == "import":
        model.opset_import.add(domain="PLACEHOLDER", version=1)
    elif field == "names":
        # the shape of Expand needs a constant, and hence the names of all nodes
        model = parse_text(
            "g (float[2] x) => (float[n] y) { s = Shape(x)  PLACEHOLDER = Concat <axis = 0> (s, s)"
            "  y = Expand(x, PLACEHOLDER) }"
        )
    elif field == "metadata":
        model.metadata_props.add(key="PLACEHOLDER", value="a")
    else:
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "PLACEHOLDER"
    check(model.SerializeToString().replace(b"PLACEHOLDER", b"\xff\xfeACEHOLDER"))


@pytest.mark.parametrize(
    ("name", "kind", "change"),
    [
        ("num_scan_inputs", onnx.AttributeProto.GRAPH, {"g": onnx.GraphProto(name="h")}),
        ("num_scan_inputs", onnx.AttributeProto.FLOATS, {"floats": [1.0]}),
        ("scan_input_axes", onnx.AttributeProto.INT, {"i": 0}),
        ("scan_input_axes", onnx.AttributeProto.STRINGS, {"strings": [b"0"]}),
    ],
)
def test_reports_scan_with_attribute_of_wrong_type(name: str, kind: int, change: dict[str, Any]) -> None:
    """The shapes of the inputs of the body depend on these attributes."""
    model = parse_text(SCAN)
    scan = model.graph.node[0]
    kept = [attribute for attribute in scan.attribute if attribute.name != name]
    del scan.attribute[:]
    scan.attribute.extend([*kept, onnx.AttributeProto(name=name, type=kind, **change)])
    assert "node.attribute-type" in violated_rules(model)


def test_reports_scan_over_scalar() -> None:
    model = parse_text(SCAN)
    model.graph.input[1].type.tensor_type.shape.ClearField("dim")
    del model.graph.node[0].attribute[1].g.input[1].type.tensor_type.shape.dim[:]
    assert check(model)


@pytest.mark.parametrize(
    "call",
    [lambda model: opshift.runs(model, "onnxruntime"), lambda model: opshift.fit(model, "onnxruntime")],
    ids=["runs", "fit"],
)
def test_refuses_more_training_graphs_than_models_have(call: Callable[[onnx.ModelProto], object]) -> None:
    model = parse_text(RELU)
    for _ in range(200):
        model.training_info.add()
    (finding,) = check(model)
    assert (finding.rule, finding.reason) == (
        "model.readable",
        "training_info has 200 entries, more than 100",
    )
    with pytest.raises(InvalidModel, match="training_info has 200 entries, more than 100"):
        call(model)


def test_stops_after_many_errors() -> None:
    model = parse_text(RELU)
    for _ in range(MAX_ERRORS + 10):
        model.graph.node.add()
    *errors, last = check(model)
    assert len([each for each in errors if each.level == "error"]) == MAX_ERRORS
    assert (last.rule, last.level, "20,000 errors or more" in last.reason) == ("model.errors", "info", True)


def test_refuses_more_functions_than_models_have() -> None:
    model = parse_text(RELU)
    for _ in range(20_001):
        model.functions.add()
    assert [each.reason for each in check(model)] == ["functions has 20,001 entries, more than 20,000"]


def test_folding_ignores_attributes_with_too_many_graphs() -> None:
    model = parse_text(RELU)
    model.graph.node[0].op_type = "If"
    graphs = model.graph.node[0].attribute.add(name="graphs", type=onnx.AttributeProto.GRAPHS).graphs
    for _ in range(101):
        graphs.add(name="g")
    with pytest.raises(InvalidModel, match="has 101 graphs, more than 100"):
        opshift.simplify(model)
