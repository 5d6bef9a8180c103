"""Fingerprints record published definitions and detect the edit of a single character."""

from __future__ import annotations

import re
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from opshift.registry.changes.trees import read_tree
from opshift.registry.errors import DefinitionError
from opshift.registry.fingerprints import (
    build_lock,
    fingerprint,
    load_lock,
    lock_differences,
    lock_text,
    operator_fingerprints,
)
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.record import from_plain_data
from opshift.registry.registry import default_registry

pytestmark = pytest.mark.every_case

ROOT = Path(__file__).resolve().parents[2]
OPSETS = ROOT / "opsets"
TOOL = ROOT / "tools" / "write_fingerprints.py"
Tool = Callable[[list[str]], int]


def test_published_definitions_are_unchanged() -> None:
    """After an intended change of a step, run `python tools/write_fingerprints.py --steps`."""
    found = lock_differences(default_registry().operators(), load_lock(OPSETS / "fingerprints.yaml"))
    assert [str(each) for each in found] == []


def test_the_lock_lists_every_version() -> None:
    lock = load_lock(OPSETS / "fingerprints.yaml")
    versions = default_registry().get_all_schemas_with_history()
    assert len(versions) > 650
    assert [v.id for v in versions if str(v.since_version) not in lock[v.domain][v.name]] == []


# Content of a fingerprint


def _version(**fields: object) -> OperatorVersion:
    data = {"domain": "com.acme", "name": "Blur", "since_version": 2, **fields}
    return from_plain_data(OperatorVersion, data)


X = {"name": "X", "type": "T"}
BASE: dict[str, object] = {
    "inputs": [X],
    "outputs": [{"name": "Y", "type": "T"}],
    "attributes": {"size": {"type": "INT", "default": 3}},
    "type_constraints": {"T": ["tensor(float)"]},
}
BODY = {"opset_imports": {"ai.onnx": 1}, "nodes": [{"op_type": "Relu", "outputs": ["Y"]}]}
CHANGES: dict[str, dict[str, object]] = {
    "a changed since_version": {"since_version": 3},
    "a changed name": {"name": "Blue"},
    "a changed domain": {"domain": "com.acne"},
    "a changed status": {"status": "EXPERIMENTAL"},
    "a changed shape rule": {"shape": "same_as_first"},
    "a changed bridge": {"bridge": "ring"},
    "a renamed input": {"inputs": [{**X, "name": "Z"}]},
    "an optional input": {"inputs": [{**X, "option": "optional"}]},
    "an added input": {"inputs": [X, {**X, "name": "Z"}]},
    "differentiability": {"inputs": [{**X, "differentiation": "differentiable"}]},
    "a changed default": {"attributes": {"size": {"type": "INT", "default": 4}}},
    "no default": {"attributes": {"size": {"type": "INT"}}},
    "a range": {"attributes": {"size": {"type": "INT", "default": 3, "minimum": 1}}},
    "a changed type": {"type_constraints": {"T": ["tensor(double)"]}},
    "a changed determinism": {"determinism": "non_deterministic"},
    "a deprecation": {"deprecation": {}},
}


@pytest.mark.parametrize("fields", CHANGES.values(), ids=CHANGES)
def test_every_fact_changes_the_fingerprint(fields: dict[str, object]) -> None:
    assert fingerprint(_version(**{**BASE, **fields})) != fingerprint(_version(**BASE))


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="no change"),
        pytest.param({"status": "STABLE"}, id="an explicit default"),
        pytest.param({"step": {"up": "compatible"}}, id="a step"),
        pytest.param({"removal": {"removed_in": 9, "up": "adapter"}}, id="a removal"),
        pytest.param({"body": BODY}, id="a function body"),
        pytest.param({"has_context_dependent_function": True}, id="a function body that depends on the node"),
    ],
)
def test_later_facts_keep_the_fingerprint(fields: dict[str, object]) -> None:
    assert fingerprint(_version(**{**BASE, **fields})) == fingerprint(_version(**BASE))


def test_a_fingerprint_is_32_hexadecimal_digits() -> None:
    assert re.fullmatch("[0-9a-f]{32}", fingerprint(_version()))


def test_an_added_body_is_a_new_entry_and_a_changed_one_is_detected() -> None:
    changed_body = {**BODY, "nodes": [{"op_type": "Clip", "outputs": ["Y"]}]}
    choices: list[dict[str, object]] = [{}, {"body": BODY}, {"body": changed_body}]
    plain, added, changed = (
        Operator(domain="com.acme", name="Blur", versions=(_version(**{**BASE, **fields}),))
        for fields in choices
    )
    assert [(each.entry, each.why) for each in lock_differences([added], build_lock([plain]))] == [
        ("2 body", "new")
    ]
    assert [(each.entry, each.why) for each in lock_differences([changed], build_lock([added]))] == [
        ("2 body", "changed")
    ]


def test_an_operator_has_entries_for_versions_steps_and_removal() -> None:
    upsample = default_registry().operator("Upsample")
    assert upsample is not None
    entries = operator_fingerprints(upsample)
    assert {"shared", "1", "7", "7 step", "9", "10", "10 step"} <= entries.keys()
    assert ("removal" in entries) == any(version.removal for version in upsample.versions)


# Edits of a file


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with a few of the project's definitions and their lock."""
    for name in ("types.yaml", "ai.onnx/Clip.yaml", "ai.onnx/GroupNormalization.yaml", "ai.onnx/ATen.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(OPSETS / name, tmp_path / name)
    (tmp_path / "fingerprints.yaml").write_text(lock_text(build_lock(_operators(tmp_path))), encoding="utf-8")
    return tmp_path


def _operators(tree: Path) -> list[Operator]:
    return list(read_tree(tree).operators.values())


def _differences(tree: Path) -> list[tuple[str, str]]:
    found = lock_differences(read_tree(tree).operators.values(), load_lock(tree / "fingerprints.yaml"))
    return [(each.entry, each.why) for each in found]


EDITS = {
    "a default": ("max: {type: FLOAT, default: 3.4028235e+38}", "3.4028235", "3.4028135", ["6"]),
    "a description": ("Limits every element", "Limits", "limits", []),
    "a type": ("    T: [all_numeric_types_ir4]", "ir4", "ir9", ["13"]),
    "a parameter": ("max: {type: FLOAT, absent", "FLOAT", "FLOATS", ["1"]),
    "a summary of a step": ("Integer types are accepted.", "accepted.", "accepted,", ["12 step"]),
    "a verb": ("ignore_attribute: consumed_inputs", "consumed", "consumes", ["6 step"]),
    "an absent value": ("absent: the highest", "the highest", "the kighest", ["1"]),
}


@pytest.mark.parametrize(("line", "old", "new", "entries"), EDITS.values(), ids=EDITS)
def test_detects_an_edit_of_one_character(
    tree: Path, line: str, old: str, new: str, entries: list[str]
) -> None:
    path = tree / "ai.onnx" / "Clip.yaml"
    text = path.read_text("utf-8")
    assert line in text
    path.write_text(text.replace(line, line.replace(old, new), 1), encoding="utf-8")
    assert _differences(tree) == [(entry, "changed") for entry in entries]


def test_detects_an_edited_type_set_in_versions_that_use_it(tree: Path) -> None:
    path = tree / "types.yaml"
    path.write_text(path.read_text("utf-8").replace("tensor(float16)", "tensor(uint2)"), encoding="utf-8")
    assert ("1", "changed") in _differences(tree)


def test_ignores_comments_and_layout(tree: Path) -> None:
    path = tree / "ai.onnx" / "Clip.yaml"
    path.write_text("# a comment\n" + path.read_text("utf-8") + "\n\n", encoding="utf-8")
    assert _differences(tree) == []


def test_detects_a_missing_operator(tree: Path) -> None:
    (tree / "ai.onnx" / "Clip.yaml").unlink()
    assert _differences(tree) == [("the operator", "missing")]


# Command line


@pytest.fixture
def tool() -> Tool:
    main: Tool = runpy.run_path(str(TOOL))["main"]
    return main


NEW_VERSION = """\
- since_version: 99
  step: {change: It is faster., up: compatible, down: compatible}
  inputs: [{name: input, type: T}]
  outputs: [{name: output, type: T}]
  type_constraints: {T: [all_float_types]}
"""


def _edit(tree: Path, name: str, old: str, new: str) -> None:
    path = tree / "ai.onnx" / f"{name}.yaml"
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_the_tool_appends_a_new_version_with_a_new_description(tool: Tool, tree: Path) -> None:
    before = load_lock(tree / "fingerprints.yaml")["ai.onnx"]
    path = tree / "ai.onnx" / "Clip.yaml"
    path.write_text(path.read_text("utf-8").replace("Limits", "Bounds") + NEW_VERSION, encoding="utf-8")
    assert tool([str(tree), "--check"]) == 1
    assert tool([str(tree)]) == 0
    after = load_lock(tree / "fingerprints.yaml")["ai.onnx"]
    assert after["Clip"].keys() - before["Clip"].keys() == {"99", "99 step"}
    assert after["Clip"].items() >= before["Clip"].items()
    assert tool([str(tree), "--check"]) == 0


@pytest.mark.parametrize(
    ("edit", "options", "code", "recorded"),
    [
        pytest.param(("Clip", "option: optional", "option: single"), [], 1, False, id="a version"),
        pytest.param(
            ("Clip", "option: optional", "option: single"), ["--steps"], 1, False, id="with --steps"
        ),
        pytest.param(("Clip", "option: optional", "option: single"), ["--force"], 0, True, id="with --force"),
        pytest.param(("Clip", "bridge: order", "bridge: real"), [], 1, False, id="a key at the top"),
        pytest.param(("Clip", "Integer types", "Integers"), [], 1, False, id="a step"),
        pytest.param(("Clip", "Integer types", "Integers"), ["--steps"], 0, True, id="a step with --steps"),
        pytest.param(
            ("Clip", "option: optional", "option: single"), ["--check"], 1, False, id="with --check"
        ),
    ],
)
def test_the_tool_rewrites_published_entries_only_with_options(
    tool: Tool, tree: Path, edit: tuple[str, str, str], options: list[str], code: int, recorded: bool
) -> None:
    before = (tree / "fingerprints.yaml").read_bytes()
    _edit(tree, *edit)
    assert tool([str(tree), *options]) == code
    assert ((tree / "fingerprints.yaml").read_bytes() != before) == recorded
    assert (_differences(tree) == []) == recorded


def test_the_tool_accepts_changes_of_experimental_operators(tool: Tool, tree: Path) -> None:
    _edit(tree, "ATen", "status: EXPERIMENTAL", "status: EXPERIMENTAL\n  shape: first")
    assert read_tree(tree).operators["ai.onnx", "ATen"].versions[0].status == "EXPERIMENTAL"
    assert tool([str(tree), "--check"]) == 1
    assert tool([str(tree)]) == 0
    assert _differences(tree) == []


def test_the_tool_keeps_missing_operators_without_force(tool: Tool, tree: Path) -> None:
    (tree / "ai.onnx" / "Clip.yaml").unlink()
    assert tool([str(tree)]) == 1
    assert "Clip" in load_lock(tree / "fingerprints.yaml")["ai.onnx"]
    assert tool([str(tree), "--force"]) == 0
    assert "Clip" not in load_lock(tree / "fingerprints.yaml")["ai.onnx"]


def test_refuses_a_lock_with_an_invalid_structure(tmp_path: Path) -> None:
    path = tmp_path / "fingerprints.yaml"
    path.write_text("ai.onnx: [Clip]\n", encoding="utf-8")
    with pytest.raises(DefinitionError):
        load_lock(path)
    assert load_lock(tmp_path / "none.yaml") == {}
