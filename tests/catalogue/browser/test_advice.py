"""Remedies as controls of the page that converts, and conversions that succeed instead of a refused one."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from onnx import parser

from opshift.catalogue.browser.result_pages import OPTIONS, with_controls
from opshift.catalogue.browser.session import run

HEAD = '<ir_version: 10, opset_import: ["" : 20]> example'
GELU = f"{HEAD} (float[2] x) => (float[2] y) {{ y = Gelu (x) }}"
STRINGS = f"{HEAD} (string[2] x) => (string[2, M] y, int64[2] n) {{ y, n = StringSplit (x) }}"
SOFTMAX = '<ir_version: 8, opset_import: ["" : 13]> example (float[] x) => (float[] y) { y = Softmax (x) }'


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("pass --allow large (allow= in Python), or", f"choose <code>large</code> under {OPTIONS}, or"),
        ("with <code>--allow approximate</code>.", f"choose <code>approximate</code> under {OPTIONS}."),
        ("pass <code>--allow</code> with the named deviation", f"choose the named deviation under {OPTIONS}"),
        (
            "declare the shapes with <code>--shape NAME=...</code> (<code>shapes=</code> in Python), "
            "or try <code>--infer-shapes</code>",
            f"declare the shapes under {OPTIONS}",
        ),
        (
            "<h3>a</h3>\n<p>b</p>\n<h3>c</h3>\n<p>d</p>\n<h2>e</h2>",
            "<details open><summary>a</summary>\n<p>b</p>\n</details>\n"
            "<details><summary>c</summary>\n<p>d</p>\n</details>\n<h2>e</h2>",
        ),
        ("<h3>a</h3>\n<p>b</p>\n", "<details open><summary>a</summary>\n<p>b</p>\n</details>\n"),
    ],
)
def test_remedies_name_controls_and_causes_are_folded(html: str, expected: str) -> None:
    assert with_controls(html) == expected


def _html(command: str, name: str, settings: dict[str, object], folder: Path) -> str:
    """Return the result of a command for Softmax with an input of this name."""
    model = parser.parse_model(SOFTMAX)
    model.graph.input[0].name = model.graph.node[0].input[0] = name
    path = folder / "model.onnx"
    onnx.save(model, path)
    return str(run(command, [str(path)], json.dumps(settings))["html"])


@pytest.mark.parametrize("name", ["x", "my input", "x (1)", "a_b*c"])
@pytest.mark.parametrize("command", ["convert", "reach"])
def test_refusals_name_the_control_for_shapes(tmp_path: Path, name: str, command: str) -> None:
    html = _html(command, name, {"target": ["10"], "shapes": []}, tmp_path)
    assert f"What to do: declare the shape of '{name}' under {OPTIONS}.</p>" in html
    assert "--shape" not in html


@pytest.mark.parametrize("name", ["x", "my input", "x (1)", "a_b*c"])
@pytest.mark.parametrize("command", ["runs", "fit"])
def test_runtimes_that_need_ranks_name_the_control(tmp_path: Path, name: str, command: str) -> None:
    html = _html(command, name, {"runtime": "openvino-2026.4.1", "shapes": []}, tmp_path)
    assert f"(declare the shape of '{name}' under {OPTIONS})" in html
    assert "--shape" not in html


@pytest.mark.parametrize("command", ["convert", "plan", "reach"])
def test_declared_shapes_are_used(tmp_path: Path, command: str) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(parser.parse_model(SOFTMAX), path)
    for shapes, is_unknown in ([], True), (["x=2,3"], False):
        html = run(command, [str(path)], json.dumps({"target": ["10"], "shapes": shapes}))["html"]
        assert ("rank of 'x' is unknown" in html) is is_unknown


@pytest.mark.parametrize(
    ("model", "settings", "expected"),
    [
        (GELU, {"target": ["7"]}, ["Convert to opset 9 instead", "Allow approximate"]),
        (GELU, {"target": ["7"], "allow": ["approximate"]}, []),
        (GELU, {"target": ["11"]}, []),
        (STRINGS, {"target": ["11"]}, []),  # opset 20 is that of the model
    ],
)
def test_offers_conversions_that_succeed(
    tmp_path: Path, model: str, settings: dict[str, object], expected: list[str]
) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(parser.parse_model(model), path)
    for command in "plan", "convert":
        found = run(command, [str(path)], json.dumps(settings))
        offered = found.get("offers", [])
        assert [each["label"] for each in offered] == expected
        for each in offered:
            change = {"target": [each["target"]]} if "target" in each else {"allow": each["allow"]}
            assert run("convert", [str(path)], json.dumps({**settings, **change}))["possible"]
