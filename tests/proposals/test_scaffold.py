"""New proposals: readable files with open questions."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from opshift.model.errors import UsageError
from opshift.proposals.check import check_proposal
from opshift.proposals.content.models import INTRODUCING_KINDS, KINDS, Example, Kind, Proposal
from opshift.proposals.scaffold import ProposalRequest, scaffold
from opshift.registry.documents.document import operator_set
from opshift.registry.documents.files import DocumentFormat, write_document
from opshift.registry.registry import default_registry
from opshift.registry.steps import VERBS
from opshift.registry.yaml_files import load_yaml

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "proposals.md"
UNREADABLE = {"proposal.format", "operator.format", "examples.format", "reference.loads", "steps.adapters"}
DETERMINED = {
    "opset.released",
    "opset.next",
    "opset.published",
    "opset.version",
    "operator.name",
    "operator.domain",
}


def _new(kind: Kind, name: str, path: Path, domain: str = "ai.onnx") -> Path:
    scaffold(path, ProposalRequest(kind, domain, name, "Ada", "ada@example.com"), default_registry())
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_creates_readable_files_for_every_kind(kind: Kind, tmp_path: Path) -> None:
    name = "Novelty" if kind in ("new-operator", "new-function", "promotion") else "Hardmax"
    rules = {each.rule for each in check_proposal(_new(kind, name, tmp_path / "new")).errors}
    assert rules & (UNREADABLE | DETERMINED) == set()
    assert "proposal.motivation" in rules


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        pytest.param(
            "update", "Hardmax", "- since_version: 29", id="update has a version for the next opset"
        ),
        pytest.param("deprecation", "Hardmax", "deprecation:", id="deprecation names its replacement"),
        pytest.param("removal", "Hardmax", "removed_in: 29", id="removal names its opset"),
        pytest.param("new-function", "Novelty", "  body:", id="function has a body"),
    ],
)
def test_definition_has_parts_of_its_kind(kind: Kind, name: str, text: str, tmp_path: Path) -> None:
    assert text in (_new(kind, name, tmp_path / "new") / "operator.yaml").read_text("utf-8")


@pytest.mark.parametrize(
    ("kind", "domain", "name", "file", "text"),
    [
        pytest.param(
            "new-operator", "ai.onnx", "Novelty", "adapters.py", '@adapter("Novelty", 29, 28', id="downgrade"
        ),
        pytest.param(
            "update", "ai.onnx", "Hardmax", "adapters.py", '@adapter("Hardmax", 29, 13', id="update"
        ),
        pytest.param("removal", "ai.onnx", "Xor", "adapters.py", '@adapter("Xor", 7, 29', id="removal"),
        pytest.param("removal", "ai.onnx", "Xor", "examples.yaml", "\n  - {type: bool", id="element type"),
        pytest.param("update", "ai.onnx", "Gemm", "examples.yaml", "2]]}\n  - {type: float", id="two inputs"),
        pytest.param("update", "ai.onnx", "Hardmax", "operator.yaml", "{drop_attribute: alpha}", id="verbs"),
        pytest.param(
            "promotion",
            "ai.onnx",
            "FlexAttention",
            "operator.yaml",
            "shape: flex_attention\nversions:\n- since_version: 29\n  status: STABLE\n  # Conversion",
            id="promoted definition",
        ),
    ],
)
def test_files_follow_the_operator(
    kind: Kind, domain: str, name: str, file: str, text: str, tmp_path: Path
) -> None:
    assert text in (_new(kind, name, tmp_path / "new", domain) / file).read_text("utf-8")


@pytest.mark.parametrize("domain", ["com.acme", "ai.onnx.preview"])
@pytest.mark.parametrize("kind", ["new-operator", "new-function"])
def test_version_1_has_no_previous_opset(kind: Kind, domain: str, tmp_path: Path) -> None:
    path = _new(kind, "Novelty", tmp_path / "new", domain)
    assert "before" not in (path / "operator.yaml").read_text("utf-8")
    assert not (path / "adapters.py").exists()


def test_update_inherits_texts(tmp_path: Path) -> None:
    path = _new("update", "Softmax", tmp_path / "new")
    *_, last = load_yaml(path / "operator.yaml")["versions"]
    assert "descriptions" not in last
    assert "operator.description" not in {each.rule for each in check_proposal(path).errors}


def test_new_operator_asks_for_texts(tmp_path: Path) -> None:
    checked = check_proposal(_new("new-function", "Novelty", tmp_path / "new"))
    (found,) = (each for each in checked.errors if each.rule == "operator.description")
    assert found.reason.endswith("operator (0), inputs X (0), outputs Y (0), types T (0)")


def test_refuses_to_overwrite_folder(tmp_path: Path) -> None:
    path = _new("new-function", "Novelty", tmp_path / "new")
    with pytest.raises(UsageError, match="already"):
        _new("update", "Hardmax", path)


@pytest.mark.parametrize("kind", ["new-operator", "new-function", "promotion"])
def test_refuses_new_operator_that_exists(kind: Kind, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"ai\.onnx already has an operator Relu"):
        _new(kind, "Relu", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_refuses_update_of_unknown_operator(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no operator 'Softmaxx'"):
        _new("update", "Softmaxx", tmp_path / "new")


def test_refuses_second_deprecation(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"ai\.onnx\.Scatter:11 is already deprecated"):
        _new("deprecation", "Scatter", tmp_path / "new")


def test_update_must_change_something(tmp_path: Path) -> None:
    path = _new("update", "Softmax", tmp_path / "new") / "operator.yaml"
    path.write_text(path.read_text("utf-8").replace("change: ''", "change: A new version."), "utf-8")
    reasons = [each.reason for each in check_proposal(path.parent).errors if each.rule == "steps.change"]
    assert reasons == ["the version is the same as version 13"]


def test_preview_operator_is_experimental(tmp_path: Path) -> None:
    path = _new("new-function", "Novelty", tmp_path / "new", "ai.onnx.preview")
    definition = (path / "operator.yaml").read_text("utf-8")
    assert "- since_version: 1\n  status: EXPERIMENTAL" in definition


ANSWERS = {"examples.yaml": Example.model_fields, "proposal.yaml": Proposal.model_fields}
REQUIRED = {
    "new-operator": "shape determinism before differentiation attributes type_constraints descriptions",
    "new-function": "shape determinism before differentiation attributes descriptions body opset_imports",
    "promotion": "shape determinism before differentiation attributes type_constraints descriptions",
    "update": "step change up down",
    "deprecation": "step change up down deprecation replaced_by mapping",
    "removal": "removal removed_in replaced_by mapping up",
}
"""Keys of operator.yaml that rules require."""


@pytest.mark.parametrize("kind", KINDS)
def test_scaffold_and_guide_name_every_key(kind: Kind, tmp_path: Path) -> None:
    name = "Novelty" if kind in INTRODUCING_KINDS else "GlobalMaxPool"
    path = _new(kind, name, tmp_path / "new")
    guide = GUIDE.read_text("utf-8")
    for file, keys in {**ANSWERS, "operator.yaml": REQUIRED[kind].split()}.items():
        text = (path / file).read_text("utf-8")
        assert [key for key in keys if not re.search(rf"\b{key}\b", text)] == []
        assert [key for key in keys if not re.search(rf"\b{key}\b", guide)] == []


def test_guide_lists_every_verb() -> None:
    rows = re.findall(r"^\| `(\w+): .*` \|", GUIDE.read_text("utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(VERBS)


def test_removed_operator_cannot_be_updated(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is removed"):
        _new("update", "Affine", tmp_path / "new")


def test_suggests_operator_to_update(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        _new("update", "Softmaxx", tmp_path / "new")
    assert "did you mean Softmax" in refused.value.remedy


LAYOUT = """\
domain: com.acme
name: Blur
shape: same_as_first
axes: dimension
one_of: [[axis, mode]]
requires: ["rank(X) >= 1"]
versions:
- since_version: 1
  inputs: [{name: X, type: T}]
  outputs: [{name: Y, type: T}]
  attributes: {axis: {type: INT}, mode: {type: STRING}}
  type_constraints: {T: [tensor(float)]}
  before:
  - drop_attribute: axis
  descriptions:
    operator: |
      First paragraph.

      Second paragraph.
    inputs: {X: The x.}
    outputs: {Y: The y.}
    attributes: {axis: The axis., mode: The mode.}
    types: {T: The type.}
"""
"""A definition with a list at the indentation of its key, and a text with an empty line."""

HEAD, VERSION = LAYOUT.split("versions:\n")
LAYOUTS = {
    "the usual layout": LAYOUT,
    "no line break at the end": LAYOUT.rstrip(),
    "a comment after the number": LAYOUT.replace("version: 1", "version: 1  # first"),
    "an indented list": f"{HEAD}versions:\n{textwrap.indent(VERSION, '  ')}",
    "the versions first": f"versions:\n{VERSION}{HEAD}",
    "the number last": f"{HEAD}versions:\n- {VERSION.partition(chr(10))[2].strip()}\n  since_version: 1\n",
    "a quoted key": LAYOUT.replace("  before", '  "before"'),
    "an alias": LAYOUT.replace("tensor(float)]", "&float tensor(float), *float]"),
    "an alias at the end": LAYOUT.replace("The x.", "&x The x.").replace("The type.", "*x"),
    "one line": f"{HEAD}versions: [{{since_version: 1, status: STABLE, outputs: [], "
    "attributes: {axis: {type: INT}, mode: {type: STRING}}}]\n",
    "a number only": "domain: com.acme\nname: Blur\nversions:\n- {since_version: 1, status: STABLE}\n",
}


@pytest.mark.parametrize("kind", ["update", "deprecation", "removal", "promotion"])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_copies_definitions_in_every_layout(kind: Kind, layout: str, tmp_path: Path) -> None:
    file = tmp_path / "opsets" / "com.acme" / "Blur.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(layout, "utf-8")
    registry = default_registry().with_folder(tmp_path / "opsets")
    domain = "ai.onnx" if kind == "promotion" else "com.acme"
    scaffold(tmp_path / "new", ProposalRequest(kind, domain, "Blur"), registry)
    old, new = load_yaml(file), load_yaml(tmp_path / "new" / "operator.yaml")
    (first,) = old["versions"]
    copied = {key: each for key, each in first.items() if key not in ("since_version", "status", "before")}
    *kept, last = new.pop("versions")
    added = {key: each for key, each in last.items() if key not in copied and key not in ("status", "step")}
    if kind == "promotion":
        assert (len(kept), set(added), last["status"]) == (0, {"since_version"}, "STABLE")
    elif kind == "removal":
        assert (len(kept), set(added)) == (0, first.keys() - copied.keys() - {"status"} | {"removal"})
    else:
        assert kept == [first]
        assert set(added) == {"since_version"} | ({"deprecation"} if kind == "deprecation" else set())
        assert last["step"] == {"change": ""}
        copied.pop("descriptions", None)
    assert {key: last.get(key) for key in copied} == copied
    assert new == {**{key: each for key, each in old.items() if key != "versions"}, "domain": domain}


def test_promoted_version_has_all_its_texts(tmp_path: Path) -> None:
    file = tmp_path / "opsets" / "com.acme" / "Blur.yaml"
    file.parent.mkdir(parents=True)
    second = VERSION[: VERSION.index("  before")].replace("version: 1", "version: 2")
    step = "  step: {change: It is faster., up: compatible}\n"
    file.write_text(f"{LAYOUT}{second}{step}  descriptions: {{attributes: {{axis: New.}}}}\n", "utf-8")
    registry = default_registry().with_folder(tmp_path / "opsets")
    scaffold(tmp_path / "new", ProposalRequest("promotion", "ai.onnx", "Blur"), registry)
    (version,) = load_yaml(tmp_path / "new" / "operator.yaml")["versions"]
    assert "step" not in version
    assert version["descriptions"]["operator"] == "First paragraph.\n\nSecond paragraph.\n"
    assert version["descriptions"]["attributes"] == {"axis": "New.", "mode": "The mode."}


def test_refuses_a_definition_in_a_document(tmp_path: Path) -> None:
    document = tmp_path / "acme.json"
    document.write_bytes(
        write_document(
            operator_set(default_registry(), "ai.onnx.preview"), DocumentFormat.JSON, default_registry()
        )
    )
    document.write_text(document.read_text().replace("ai.onnx.preview", "com.acme"))
    registry = default_registry().with_document(document)
    name = registry.names("com.acme")[0]
    with pytest.raises(UsageError, match="is defined in a document"):
        scaffold(tmp_path / "new", ProposalRequest("update", "com.acme", name), registry)
