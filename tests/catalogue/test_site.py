"""The static site: pages, copies, links, HTML and untrusted texts."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Mapping
from itertools import chain, pairwise
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt
from support.site_pages import Page

from opshift.catalogue.documents import DOCS, TASKS
from opshift.catalogue.site import build_site, site_images
from opshift.checker.rule_table import rule_table
from opshift.model.errors import UsageError
from opshift.registry.explanations import refusal_causes
from opshift.registry.registry import default_registry, load_registry

pytestmark = pytest.mark.full  # the site of all definitions takes seconds to build

REGISTRY = default_registry()
VERSIONS = REGISTRY.get_all_schemas_with_history()
URL = "https://example.com/operators"
HOSTILE = "<script>alert(1)</script> {{ 7 * 7 }} [x](javascript:) | `a\\` & \" ' <img src onerror=y> \a\u202e"


def test_every_operator_version_has_a_page_and_copies(files: Mapping[str, str]) -> None:
    for version in VERSIONS:
        path = f"operators/{version.domain}/{version.name}/{version.since_version}"
        data = json.loads(files[f"{path}.json"])
        assert {**data, **version.to_dict()} == data, path
        assert files[f"{path}.md"].startswith(f"# {version.name} {version.since_version}\n"), path
        for name in (each.name for each in (*version.inputs, *version.outputs)):
            assert f"| `{name}` " in files[f"{path}.md"], path
        assert f"<title>{version.id} - " in files[f"{path}.html"], path


def test_every_page_has_copies(files: Mapping[str, str]) -> None:
    pages = [path.removesuffix(".html") for path in files if path.endswith(".html")]
    assert all(files[f"{path}.md"].startswith("# ") for path in pages)
    with_data = [path for path in pages if path.startswith(("operators/", "opsets/", "runtimes/onnx"))]
    assert all(files[f"{path}.json"] for path in with_data)
    links = [
        (path, normpath(join(dirname(path), unquote(link).partition("#")[0])))
        for path, text in files.items()
        if path.endswith(".md") and not path.startswith(("docs/", "404."))
        for link in re.findall(r"(?<!\\)\]\(([^)<> ]*)\)", text)
        if "://" not in link and not link.startswith("#")
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
    packages = (each.partition(".</p>")[0] for each in files["releases.html"].split("targets, too: ")[1:])
    assert sorted(", ".join(packages).split(", ")) == sorted(REGISTRY.releases.variants)
    for product, found in REGISTRY.releases.products.items():
        assert {name: each["opsets"] for name, each in releases[product].items()} == {
            name: each.opsets for name, each in found.items()
        }


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


def test_documents_link_to_operator_versions(pages: Mapping[str, Page]) -> None:
    links = pages["docs/downgrades.html"].links
    assert "../operators/ai.onnx/Clip/11.html" in links
    assert len([each for each in links if each.startswith("../operators/")]) > 500


def test_links_lead_to_pages_and_anchors(files: Mapping[str, str], pages: Mapping[str, Page]) -> None:
    broken = set()
    for path, page in pages.items():
        for link in page.links:
            if link.startswith("https://"):
                continue
            target, _, anchor = unquote(link).partition("#")
            if path == "404.html":  # its links work at any address
                assert target.startswith("/operators/") or not target
                target = target.removeprefix("/operators/")
            target = normpath(join(dirname(path), target)) if target else path
            if target not in files or (anchor and anchor not in pages[target].anchors):
                broken.add((path, link))
    assert not broken


def test_pages_are_well_formed(pages: Mapping[str, Page]) -> None:
    assert {path: page.mistakes for path, page in pages.items() if page.mistakes} == {}


def test_long_documents_have_contents_and_summaries(files: Mapping[str, str]) -> None:
    contents = files["docs/refusals.html"].partition("<details")[2].partition("</details>")[0]
    assert set(re.findall('href="#(.*?)"', contents)) == set(
        re.findall('<h2 id="(.*?)"', files["docs/refusals.html"])
    )
    assert "<details" not in files["docs/queries.html"]
    assert files["docs/index.html"].count("<dd>") == len(list(DOCS.glob("*.md")))
    assert "<dd></dd>" not in files["docs/index.html"]


def test_documents_are_ordered_by_task(files: Mapping[str, str]) -> None:
    names = [name for task in TASKS.values() for name in task]
    assert sorted(names) == sorted(each.stem for each in DOCS.glob("*.md"))
    for before, name in pairwise(names):
        assert f'href="{before}.html" rel="prev"' in files[f"docs/{name}.html"]
        assert f'href="{name}.html" rel="next"' in files[f"docs/{before}.html"]


def test_every_page_describes_itself(files: Mapping[str, str]) -> None:
    for path, text in files.items():
        if path.endswith(".html"):
            found = re.search('<meta name="description" content="([^"]+)">', text)
            assert found, path
            assert f'<meta property="og:description" content="{found[1]}">' in text


def test_pages_with_an_address_have_an_image(files: Mapping[str, str]) -> None:
    ((name, image),) = site_images().items()
    width, height = struct.unpack(">II", image[16:24])  # IHDR, the first chunk of a PNG file
    for path in ("index.html", "operators/ai.onnx/Resize/index.html", "404.html"):
        named = dict(re.findall(r'<meta (?:property|name)="([\w:]+)" content="([^"]*)">', files[path]))
        assert named["og:url"] == f"{URL}/{path}"
        assert named["og:image"] == f"{URL}/{name}"
        assert (named["og:image:width"], named["og:image:height"]) == (str(width), str(height))
        assert named["twitter:card"] == "summary_large_image"


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
            assert "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'" in text
            assert not re.search(r'<(script|link|img)[^>]+"(https?:)?//', text), path


def test_site_map_lists_all_pages(files: Mapping[str, str]) -> None:
    space = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    listed = [each.text for each in ElementTree.fromstring(files["sitemap.xml"]).iter(f"{space}loc")]
    assert listed == [f"{URL}/{path}" for path in files if path.endswith(".html") and path != "404.html"]


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
    assert not any("og:image" in text for path, text in files.items() if path.endswith(".html"))
    tags = list(_tags({path: text for path, text in files.items() if not path.startswith("docs/")}))
    assert "img" not in tags
    # the scripts are the search of each page, and filters
    scripts = [
        each for text in files.values() for each in re.findall(r"<script([^>]*)>", text) if "<html" in text
    ]
    assert all(re.fullmatch(r' src="(\.\./)*/?(search|filter)\.js" defer', each) for each in scripts)
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
