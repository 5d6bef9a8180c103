"""Commands of the page that converts, on files in the current folder."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

import opshift
from opshift.analysis.pages.conversion_page import conversion_page
from opshift.catalogue.browser.session import COMMANDS, Answer, prepare, run
from opshift.converter.streaming.convert_file import convert_file
from opshift.registry.runtimes.files import runtime_files

TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
example (float[N, 4] x) => (float[N, 4] y) {
    a = Clip (x, low, high)
    y = Softmax <axis = 1> (a)
}
"""

STRINGS = """
<ir_version: 10, opset_import: ["" : 20]>
example (string[2] x) => (string[N, M] y, int64[N] n) { y, n = StringSplit (x) }
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    model = parser.parse_model(TEXT.replace("low, high", ""))
    onnx.save(model, "model.onnx")
    return tmp_path


def answer(command: str, *paths: str, **settings: object) -> Answer:
    return run(command, paths, json.dumps(settings))


def content(found: Answer, source: Path) -> bytes:
    data = source.read_bytes()
    return b"".join(each if isinstance(each, bytes) else data[each[0] : each[1]] for each in found["pieces"])


@pytest.mark.parametrize("target", ["7", "11", "17", "21", "onnx-1.9"])
def test_converts_to_the_bytes_of_the_command_line(target: str) -> None:
    found = answer("convert", "model.onnx", target=[target])
    report = convert_file("model.onnx", "expected.onnx", target)
    assert found["possible"]
    assert content(found, Path("model.onnx")) == Path("expected.onnx").read_bytes()
    assert found["markdown"] == conversion_page(report, "model.onnx").markdown
    assert json.loads(found["json"])["nodes"] == list(report.nodes)


def test_replaces_operators_of_a_domain_at_the_opset_of_the_model() -> None:
    text = '<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> g (float[2] x) => (float[2] y)'
    onnx.save(parser.parse_model(f"{text} {{ y = com.microsoft.Gelu (x) }}"), "gelu.onnx")
    found = answer("convert", "gelu.onnx", target=None, without=["com.microsoft"], allow=[], shapes=[])
    convert_file("gelu.onnx", "expected.onnx", without="com.microsoft")
    assert content(found, Path("gelu.onnx")) == Path("expected.onnx").read_bytes()


SWISH = '<ir_version: 8, opset_import: ["": 17]> g (float[N] x) => (float[N] y)'


@pytest.mark.parametrize(
    ("command", "settings"),
    [
        ("convert", {"target": ["24"]}),
        ("plan", {"target": ["24"]}),
        ("fit", {"runtime": "openvino-2026.4.1"}),
    ],
)
def test_recognizes_operators(command: str, settings: dict[str, object]) -> None:
    onnx.save(parser.parse_model(f"{SWISH} {{ s = Sigmoid (x)  y = Mul (x, s) }}"), "swish.onnx")
    kept, found = (answer(command, "swish.onnx", **settings, recognize=each) for each in (False, True))
    assert "Swish" not in kept["markdown"]
    assert "Swish" in found["markdown"]
    if command == "convert":
        convert_file("swish.onnx", "expected.onnx", 24, recognize=True)
        assert content(found, Path("swish.onnx")) == Path("expected.onnx").read_bytes()


def test_large_weights_are_ranges_of_the_file() -> None:
    weights = numpy_helper.from_array(numpy.ones(1 << 19, "float32"), "w")
    graph = helper.make_graph(
        [helper.make_node("Clip", ["w"], ["c"]), helper.make_node("Identity", ["c"], ["y"])],
        "large",
        [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [weights],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), "large.onnx")
    found = answer("convert", "large.onnx", target=["10"])
    convert_file("large.onnx", "expected.onnx", 10)
    assert any(isinstance(each, tuple) for each in found["pieces"])
    assert content(found, Path("large.onnx")) == Path("expected.onnx").read_bytes()


def test_names_the_files_with_weights() -> None:
    graph = onnx.load("model.onnx")
    graph.graph.initializer.append(numpy_helper.from_array(numpy.zeros(1000, "float32"), "w"))
    onnx.save(graph, "external.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    found = answer("convert", "external.onnx", target=["11"])
    assert "`weights.bin`" in found["markdown"]
    assert json.loads(found["json"])["external_data"] == ["weights.bin"]
    convert_file("external.onnx", "expected.onnx", 11)
    assert content(found, Path("external.onnx")) == Path("expected.onnx").read_bytes()


@pytest.mark.parametrize("command", ["convert", "plan"])
def test_refusals_have_a_remedy_and_no_model(command: str) -> None:
    onnx.save(parser.parse_model(STRINGS), "strings.onnx")
    found = answer(command, "strings.onnx", target=["11"])
    assert not found["possible"]
    assert not found["pieces"]
    assert "What to do" in found["markdown"]
    assert json.loads(found["json"])["refusals"]


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("plan", "Changed nodes"),
        ("inspect", "`Clip"),
        ("check", "No findings"),
        ("reach", "From opset"),
        ("runs", "`onnxruntime-"),
    ],
)
def test_reports_are_pages_and_data(command: str, text: str) -> None:
    found = answer(command, "model.onnx", target=["11"])
    assert found["possible"]
    assert text in found["markdown"]
    assert "model.onnx" in found["html"]
    assert found["page"].startswith("<!doctype html>")
    assert json.loads(found["json"])["input"] == "model.onnx"


def test_check_lists_findings() -> None:
    model = onnx.load("model.onnx")
    model.graph.node[0].input[0] = "missing"
    onnx.save(model, "broken.onnx")
    found = answer("check", "broken.onnx")
    assert "missing" in found["markdown"]
    assert json.loads(found["json"])["findings"]


@pytest.mark.parametrize("command", ["compare", "diff"])
def test_compares_two_models(command: str) -> None:
    convert_file("model.onnx", "new.onnx", 10)
    found = answer(command, "model.onnx", "new.onnx")
    assert "model.onnx" in found["markdown"].partition("\n")[0]
    assert json.loads(found["json"])["new"] == "new.onnx"


def test_reach_explains_limits() -> None:
    onnx.save(parser.parse_model(STRINGS), "strings.onnx")
    assert "## Opset" in answer("reach", "strings.onnx")["markdown"]


@pytest.mark.parametrize("command", sorted({*COMMANDS} - {"read"}))
def test_other_files_are_one_error(command: str) -> None:
    Path("notes.onnx").write_bytes(b"<script>alert(1)</script>")
    paths = ["notes.onnx"] * (2 if command in ("compare", "diff") else 1)
    found = answer(command, *paths, target=["11"], runtime="tract-0.23.9")
    assert "not" in found["markdown"]
    assert "<script>" not in found["html"]


def read(text: str, opset: str) -> Path:
    """Write the model of a text as the page does."""
    found = answer("read", text=text, opset=opset)
    assert found["possible"], found["markdown"]
    Path("nodes.onnx").write_bytes(content(found, Path("model.onnx")))
    return Path("nodes.onnx")


def test_shows_what_a_node_becomes() -> None:
    source = read("y = Softmax <axis = 1> (float[N, 4, 4] x)", "9")
    found = answer("convert", source.name, target=["13"], nodes=True)
    convert_file(source, "expected.onnx", 13)
    assert content(found, source) == Path("expected.onnx").read_bytes()
    assert "  y = Reshape(softmax, shape)\n" in found["markdown"]
    assert "<code>ir_version 7\n" in found["html"]


def test_refuses_a_node_with_the_reason_and_the_remedy() -> None:
    source = read("y = TopK(float[N] x, int64[1] k)", "10")
    found = answer("convert", source.name, target=["9"], nodes=True)
    assert not found["possible"]
    assert "What to do" in found["markdown"]
    assert "Resulting model" not in found["markdown"]


@pytest.mark.parametrize(
    ("text", "opset", "reason"),
    [("y = Relu(x", "9", "line 1, column 11"), ("y = Relu(x)", "99", "no opset 99"), ("<b>", "9", "&gt;")],
)
def test_text_that_cannot_be_read_is_an_error(text: str, opset: str, reason: str) -> None:
    found = answer("read", text=text, opset=opset)
    assert not found["possible"]
    assert reason in found["html"]


def test_long_names_in_text_stay_text() -> None:
    source = read('"<img src=x>\n```\n# y" = Softmax <axis = 1> (float[2, 3, 4] x)', "9")
    found = answer("convert", source.name, target=["13"], nodes=True)
    assert "<img" not in found["html"]
    assert "<h1>y" not in found["html"]


def test_lists_all_releases_or_one() -> None:
    source = read("y = Relu(float[N] x)", "13")
    found = answer("runs", source.name, runtime="all")
    assert len(json.loads(found["json"])["runtimes"]) == len(runtime_files())
    assert re.search(r"`onnxruntime 1\.14\.1 to [\d.]+` \| runs \|", found["markdown"])
    (one,) = json.loads(answer("runs", source.name, runtime="tensorrt-8.6")["json"])["runtimes"]
    assert one["runtime"] == "tensorrt-8.6"


def test_fits_a_model_like_the_command_line() -> None:
    source = read("y = Gelu(float[2, 3] x)", "20")
    found = answer("fit", source.name, runtime="tensorrt-8.6", allow=[])
    expected = opshift.fit(source.read_bytes(), "tensorrt-8.6")
    assert content(found, source) == expected.model
    assert json.loads(found["json"])["nodes"] == list(expected.report.nodes)
    assert "| nodes | 1 | 5 |" in found["markdown"]


def test_fits_a_model_with_declared_shapes() -> None:
    source = read("y = Relu(float[] x)", "18")
    refused = answer("fit", source.name, runtime="openvino", shapes=[])
    assert "--shape x=..." in refused["markdown"]
    found = answer("fit", source.name, runtime="openvino", shapes=["x=2,N"])
    expected = opshift.fit(source.read_bytes(), "openvino", shapes={"x": (2, "N")})
    assert content(found, source) == expected.model
    assert "'x' is declared as [2, N]" in found["markdown"].replace("\\", "")


def test_lists_what_prevents_that_a_model_fits() -> None:
    source = read("y = Det(float[2, 2] x)", "20")
    found = answer("fit", source.name, runtime="tensorrt-8.6")
    assert not found["possible"]
    assert "| graph, node Det -> y | `ai.onnx.Det:11` | tensorrt-8.6 has no kernel" in found["markdown"]


def test_a_fitted_large_model_shares_ranges_of_the_file() -> None:
    weights = numpy_helper.from_array(numpy.ones(1 << 19, "float32"), "w")
    graph = helper.make_graph(
        [helper.make_node("Gelu", ["w"], ["y"])],
        "large",
        [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [weights],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), "large.onnx")
    found = answer("fit", "large.onnx", runtime="tensorrt-8.6")
    assert any(isinstance(each, tuple) for each in found["pieces"])
    fitted = onnx.load_from_string(content(found, Path("large.onnx")))
    (result,) = ReferenceEvaluator(fitted).run(None, {})
    numpy.testing.assert_allclose(result[0], 0.8413447, rtol=1e-5)


def test_prepares_without_leaving_files(folder: Path) -> None:
    before = sorted(folder.iterdir())
    prepare()
    assert sorted(folder.iterdir()) == before
    assert Path.cwd() == folder


def test_hostile_names_are_escaped() -> None:
    name = "<img src=x onerror=alert(1)>.onnx"
    Path("model.onnx").rename(name)
    for command in ("convert", "inspect", "check", "reach"):
        assert "<img" not in answer(command, name, target=["11"])["html"]


def test_unknown_target_is_an_error() -> None:
    found = answer("convert", "model.onnx", target=["999"])
    assert not found["possible"]
    assert "999" in found["markdown"]


def test_names_a_missing_module(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Answer:
        raise ModuleNotFoundError("", name="networkx.classes")

    monkeypatch.setitem(COMMANDS, "convert", fail)
    assert answer("convert", "model.onnx") == {"missing": "networkx"}


def test_lack_of_memory_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Answer:
        raise MemoryError

    monkeypatch.setitem(COMMANDS, "convert", fail)
    assert "memory" in answer("convert", "model.onnx")["markdown"]
