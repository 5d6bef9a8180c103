"""Private adapters that fail or emit invalid nodes: the error has the line of the adapter."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from opshift.adapters.core.adapter_table import UnusableAdapters, load_adapters, temporary_adapters
from opshift.converter.convert import convert_version
from opshift.converter.refusals import ConversionRefused
from opshift.model.errors import Place
from opshift.model.extensions import ExtensionFailed
from opshift.registry.registry import default_registry
from opshift.rewriting import version_steps

ACME = Path(__file__).parents[2] / "examples" / "acme" / "acme_operators"

CODE = """from opshift.adapters import adapter
@adapter("Scale", 1, 2, domain="com.acme")
def up(node, out):
    pass
    {body}
@adapter("Scale", 2, 1, domain="com.acme")
def down(node, out):
    raise KeyError(0)
"""

FACTOR = 'out.constant(1.5, "float")'

FAILING = {
    "unknown key": ('{}["x"]', "raises KeyError: 'x'"),
    "failed assertion": ("assert False, 'no'", "raises AssertionError: no"),
    "missing file": ('open("/nowhere/at/all")', "raises FileNotFoundError"),
    "unknown name": ("undefined", "raises NameError"),
    "own exception": ("raise type('Mine', (Exception,), {})('text')", "raises Mine: text"),
    "recursion": ("f = lambda: f(); f()", "raises RecursionError"),
    "unknown constant": ('out.constant_value("nowhere").scalar', "raises AttributeError"),
    "wrong argument": ("out.constant()", "raises TypeError"),
    "exit": ("import sys; sys.exit(0)", "raises SystemExit: 0"),
}

INVALID = {
    "no node": ("return 3", "emits no node"),
    "unknown input": (
        'out.replace(node, inputs=[node.inputs[0], "nowhere"])',
        "emits Scale: the input 'nowhere' is unknown",
    ),
    "unknown input of a new node": (
        f'out.emit("Scale", ["nowhere", {FACTOR}], node.outputs)',
        "the input 'nowhere' is unknown",
    ),
    "later value": ('out.replace(node, inputs=[node.inputs[0], out.fresh("a") + "b"])', "'ab' is unknown"),
    "no name": ("out.replace(node, inputs=[node.inputs[0], None])", "None is not the name of a value"),
    "taken output": (
        f'out.emit("Scale", [node.inputs[0], {FACTOR}], ["other"]); out.replace(node)',
        "the output 'other' is not a new name",
    ),
    "output twice": (
        f'[out.emit("Scale", [node.inputs[0], {FACTOR}], node.outputs) for _ in "ab"]',
        "the output 'y' is not a new name",
    ),
    "no output": (f'out.emit("Scale", [node.inputs[0], {FACTOR}])', "does not compute the output 'y'"),
    "too few inputs": (
        "out.replace(node, attributes={})",
        "emits Scale: has 1 input; com.acme.Scale:2 expects 2",
    ),
    "too many inputs": (
        "out.replace(node, inputs=[*node.inputs] * 3)",
        "emits Scale: has 3 inputs; com.acme.Scale:2 expects 2",
    ),
    "unknown attribute": (
        f'out.replace(node, inputs=[node.inputs[0], {FACTOR}], attributes={{"k": 1}})',
        "emits Scale: com.acme.Scale:2 does not define the attribute 'k'",
    ),
    "wrong attribute of an ONNX operator": (
        'out.emit("Elu", node.inputs[:1], node.outputs, domain="", alpha="a")',
        "emits Elu: attribute 'alpha' of ai.onnx.Elu:6 cannot hold 'a'",
    ),
    "too few inputs of an ONNX operator": (
        'out.emit("Mul", node.inputs[:1], node.outputs, domain="")',
        "emits Mul: has 1 input; ai.onnx.Mul:13 expects 2",
    ),
    "unknown operator": (
        'out.emit("Sofmax", node.inputs[:1], node.outputs, domain="")',
        "emits Sofmax: ai.onnx has no operator 'Sofmax'; did you mean Softmax",
    ),
    "operator of a later opset": (
        'out.emit("Gelu", node.inputs[:1], node.outputs, domain="")',
        "emits Gelu: Gelu is not in opset 13 of ai.onnx",
    ),
    "opset that is not an integer": (
        'out.emit("Relu", node.inputs[:1], node.outputs, domain="", opset=1.5)',
        "emits Relu: expected a name, an opset and a domain",
    ),
    "unknown operator in a subgraph": (
        'from opshift.adapters import Emitted, Graph, Node; out.emit("If", node.inputs[:1], node.outputs, '
        'domain="", then_branch=Graph("g", (), (), (Emitted(Node("Rel", (), ("z",), {}), 13, False),)))',
        "emits If: Rel in a subgraph: ai.onnx has no operator 'Rel'",
    ),
    "own version again": (
        'out.emit("Scale", node.inputs, node.outputs, opset=1)',
        "the adapter com.acme.Scale 1 -> 2 converts 50,001 nodes in place of one",
    ),
    "own version twice": (
        'out.emit("Scale", [out.emit("Scale", node.inputs, opset=1)], node.outputs, opset=1)',
        "nodes in place of one: it emits nodes that it converts again",
    ),
    "output of a different type": (
        'out.emit("Cast", node.inputs[:1], node.outputs, domain="", to=7)',
        "computes the output 'y' with the type int64, expected float",
    ),
    "output with the type of a constant": (
        'out.emit("Identity", [out.constant([1], "bool")], node.outputs, domain="")',
        "computes the output 'y' with the type bool, expected float",
    ),
    "unknown domain": (
        'out.emit("Scale", node.inputs[:1], node.outputs, domain="com.other")',
        "emits Scale: no definitions for domain 'com.other'",
    ),
}


@pytest.fixture(autouse=True)
def _temporary_table() -> Iterator[None]:
    with temporary_adapters():
        yield


def _model(opset: int) -> onnx.ModelProto:
    node = helper.make_node("Scale", ["x", "k"][:opset], ["y"], domain="com.acme")
    x, y, k = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xyk")
    imports = [helper.make_opsetid("", 13), helper.make_opsetid("com.acme", opset)]
    return helper.make_model(helper.make_graph([node], "g", [x, k], [y]), opset_imports=imports)


def _failure(tmp_path: Path, body: str, source: int, target: int) -> tuple[ExtensionFailed, Path]:
    file = tmp_path / "scale.py"
    file.write_text(CODE.format(body=body))
    load_adapters(file)
    model, registry = _model(source), default_registry().with_folder(ACME)
    with pytest.raises(ExtensionFailed) as caught:
        convert_version(model, {"com.acme": target}, registry=registry, inplace=True)
    assert model == _model(source)
    assert caught.value.place.node == "node Scale -> y"
    assert caught.value.extension == f"adapter com.acme.Scale {source} -> {target}"
    return caught.value, file


@pytest.mark.parametrize(("body", "reason"), FAILING.values(), ids=FAILING)
def test_reports_exception_with_line(tmp_path: Path, body: str, reason: str) -> None:
    found, file = _failure(tmp_path, body, 1, 2)
    assert f"the adapter com.acme.Scale 1 -> 2 {reason}" in found.reason
    assert f"raises {found.exception}" in found.reason
    assert found.place == Place(str(file), 5, "node Scale -> y")
    assert isinstance(found.__cause__, BaseException)


def test_reports_exception_of_downgrade(tmp_path: Path) -> None:
    found, file = _failure(tmp_path, "", 2, 1)
    assert str(found) == (
        f"{file}:8: node Scale -> y: the adapter com.acme.Scale 2 -> 1 raises KeyError: 0"
        " (fix the code at this place)"
    )


@pytest.mark.parametrize(("body", "reason"), INVALID.values(), ids=INVALID)
def test_reports_invalid_nodes(tmp_path: Path, body: str, reason: str) -> None:
    found, file = _failure(tmp_path, body, 1, 2)
    assert reason in found.reason
    assert not found.exception
    assert found.place == Place(str(file), 2, "node Scale -> y")


@pytest.mark.parametrize("body", ["out.replace(None)", "out.emitted.append(3)"])
def test_reports_emitted_objects_that_are_no_nodes(tmp_path: Path, body: str) -> None:
    found, file = _failure(tmp_path, body, 1, 2)
    assert "raises AttributeError" in found.reason
    assert (found.place.file, found.place.line) == (str(file), 2)


def test_error_keeps_its_fields_when_pickled(tmp_path: Path) -> None:
    found, _ = _failure(tmp_path, "{}[0]", 1, 2)
    copy = pickle.loads(pickle.dumps(found))
    assert type(copy) is ExtensionFailed
    assert copy.as_dict() == found.as_dict()
    assert found.as_dict()["exception"] == "KeyError: 0"


def test_exception_in_a_helper_is_reported_at_its_call(tmp_path: Path) -> None:
    (tmp_path / "helper_of_acme.py").write_text("def fail():\n    return {}[0]\n")
    sys.path.append(str(tmp_path))
    try:
        found, file = _failure(tmp_path, "import helper_of_acme; helper_of_acme.fail()", 1, 2)
    finally:
        sys.path.remove(str(tmp_path))
    assert (found.place.file, found.place.line) == (str(file), 5)


def test_invalid_node_is_refused_and_the_adapter_not_blamed(tmp_path: Path) -> None:
    file = tmp_path / "scale.py"
    file.write_text(CODE.format(body="node.inputs[0]"))
    load_adapters(file)
    model = _model(1)
    del model.graph.node[0].input[:]
    with pytest.raises(ConversionRefused, match="has 0 inputs") as caught:
        convert_version(model, {"com.acme": 2}, registry=default_registry().with_folder(ACME))
    assert caught.value.refusals[0].operator == "com.acme.Scale:1"


def test_failed_import_registers_nothing(tmp_path: Path) -> None:
    file = tmp_path / "scale.py"
    file.write_text(CODE.format(body="pass") + "\n{}[0]\n")
    for _ in range(2):
        with pytest.raises(UnusableAdapters, match="KeyError: 0") as caught:
            load_adapters(file)
        assert caught.value.place.line == 10
    file.write_text(CODE.format(body="pass"))
    load_adapters(file)


def test_error_of_built_in_step_is_no_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version_steps, "is_external", lambda _: False)
    file = tmp_path / "scale.py"
    file.write_text(CODE.format(body="{}[0]"))
    load_adapters(file)
    with pytest.raises(ConversionRefused) as caught:
        convert_version(_model(1), {"com.acme": 2}, registry=default_registry().with_folder(ACME))
    (refusal,) = caught.value.refusals
    assert refusal.reason == "the node does not have the form that com.acme.Scale:1 requires"
    assert "opshift check" in refusal.remedy
