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
