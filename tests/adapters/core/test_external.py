"""Private adapters that fail or emit invalid nodes: the node is refused, with the line of the adapter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from opshift.adapters.core.adapter_table import UnusableAdapters, load_adapters, temporary_adapters
from opshift.converter.convert import convert_version
from opshift.converter.errors import ConversionRefused
from opshift.converter.rewrite import version_steps
from opshift.registry.registry import default_registry

ACME = Path(__file__).parents[3] / "examples" / "acme"

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
}

INVALID = {
    "no node": ("return 3", "emits no node"),
    "unknown input": ('out.replace(node, inputs=[node.inputs[0], "nowhere"])', "unknown input 'nowhere'"),
    "unknown input of a new node": (
        f'out.emit("Scale", ["nowhere", {FACTOR}], node.outputs)',
        "unknown input 'nowhere'",
    ),
    "later value": ('out.replace(node, inputs=[node.inputs[0], out.fresh("a") + "b"])', "unknown input 'ab'"),
    "no name": ("out.replace(node, inputs=[node.inputs[0], None])", "the value None, which is not a name"),
    "taken output": (
        f'out.emit("Scale", [node.inputs[0], {FACTOR}], ["other"]); out.replace(node)',
        "output 'other', which is not a new name",
    ),
    "output twice": (
        f'[out.emit("Scale", [node.inputs[0], {FACTOR}], node.outputs) for _ in "ab"]',
        "output 'y', which is not a new name",
    ),
    "no output": (f'out.emit("Scale", [node.inputs[0], {FACTOR}])', "does not compute the output 'y'"),
    "too few inputs": (
        "out.replace(node, attributes={})",
        "1 inputs, which com.acme.Scale:2 does not accept",
    ),
    "too many inputs": ("out.replace(node, inputs=[*node.inputs] * 3)", "3 inputs, which com.acme.Scale:2"),
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


def _refusal(tmp_path: Path, body: str, source: int, target: int) -> tuple[str, Path]:
    file = tmp_path / "scale.py"
    file.write_text(CODE.format(body=body))
    load_adapters(file)
    model, registry = _model(source), default_registry().with_folder(ACME)
    with pytest.raises(ConversionRefused) as caught:
        convert_version(model, {"com.acme": target}, registry=registry, inplace=True)
    assert model == _model(source)
    (refusal,) = caught.value.refusals
    assert refusal.remedy == "correct the adapter"
    return refusal.reason, file


@pytest.mark.parametrize(("body", "reason"), FAILING.values(), ids=FAILING)
def test_reports_exception_with_line(tmp_path: Path, body: str, reason: str) -> None:
    found, file = _refusal(tmp_path, body, 1, 2)
    assert reason in found
    assert f"({file}:5)" in found


def test_reports_exception_of_downgrade(tmp_path: Path) -> None:
    found, file = _refusal(tmp_path, "", 2, 1)
    assert found == f"its adapter raises KeyError: 0 ({file}:8)"


@pytest.mark.parametrize(("body", "reason"), INVALID.values(), ids=INVALID)
def test_refuses_invalid_nodes(tmp_path: Path, body: str, reason: str) -> None:
    found, file = _refusal(tmp_path, body, 1, 2)
    assert reason in found
    assert f"({file}:2)" in found


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
