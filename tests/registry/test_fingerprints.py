"""Fingerprints: what is published stays what it was, and an edit of one character is seen."""

from __future__ import annotations

import re
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from opshift.registry.catalogue import default_registry
from opshift.registry.changes.trees import read_tree
from opshift.registry.errors import DefinitionError
from opshift.registry.fingerprints import (
    fingerprint,
    load_lock,
    lock_text,
    locked,
    moved,
    operator_fingerprints,
)
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.record import checked

ROOT = Path(__file__).resolve().parents[2]
OPSETS = ROOT / "opsets"
TOOL = ROOT / "tools" / "write_fingerprints.py"
Tool = Callable[[list[str]], int]


def test_no_published_definition_has_changed() -> None:
    """If this fails after a step was improved on purpose: python tools/write_fingerprints.py --steps."""
    found = moved(default_registry().operators(), load_lock(OPSETS / "fingerprints.yaml"))
    assert [str(each) for each in found] == []


def test_every_version_is_on_record() -> None:
    lock = load_lock(OPSETS / "fingerprints.yaml")
    versions = default_registry().get_all_schemas_with_history()
    assert len(versions) > 650
    assert [v.id for v in versions if str(v.since_version) not in lock[v.domain][v.name]] == []


# What a fingerprint is of


def _version(**fields: object) -> OperatorVersion:
    stated = {"domain": "com.acme", "name": "Blur", "since_version": 2, **fields}
    return checked(OperatorVersion, stated)


X = {"name": "X", "type": "T"}
BASE: dict[str, object] = {
    "description": "It blurs.",
    "inputs": [X],
    "outputs": [{"name": "Y", "type": "T"}],
    "attributes": {"size": {"type": "INT", "default": 3}},
    "type_constraints": {"T": ["tensor(float)"]},
}
DIFFERENT: dict[str, dict[str, object]] = {
    "another number": {"since_version": 3},
    "another name": {"name": "Blue"},
    "another domain": {"domain": "com.acne"},
    "another description": {"description": "It blurs!"},
    "another status": {"status": "EXPERIMENTAL"},
    "another shape rule": {"shape": "same_as_first"},
    "another bridge": {"bridge": "ring"},
    "another input": {"inputs": [{**X, "name": "Z"}]},
    "an optional input": {"inputs": [{**X, "option": "optional"}]},
    "one input more": {"inputs": [X, {**X, "name": "Z"}]},
    "differentiability": {"inputs": [{**X, "differentiation": "differentiable"}]},
    "another default": {"attributes": {"size": {"type": "INT", "default": 4}}},
    "no default": {"attributes": {"size": {"type": "INT"}}},
    "a range": {"attributes": {"size": {"type": "INT", "default": 3, "minimum": 1}}},
    "another type": {"type_constraints": {"T": ["tensor(double)"]}},
    "randomness": {"determinism": "non_deterministic"},
    "a deprecation": {"deprecation": {}},
    "a body": {"body": {"opset_imports": {"ai.onnx": 1}, "nodes": [{"op_type": "Relu", "outputs": ["Y"]}]}},
}


@pytest.mark.parametrize("fields", DIFFERENT.values(), ids=DIFFERENT)
def test_whatever_a_definition_says_is_part_of_it(fields: dict[str, object]) -> None:
    assert fingerprint(_version(**{**BASE, **fields})) != fingerprint(_version(**BASE))


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"status": "STABLE"}, id="a default spelled out"),
        pytest.param({"step": {"up": "compatible"}}, id="how nodes are converted"),
        pytest.param({"removal": {"removed_in": 9, "up": "adapter"}}, id="that it was removed later"),
    ],
)
def test_what_comes_later_is_not(fields: dict[str, object]) -> None:
    assert fingerprint(_version(**{**BASE, **fields})) == fingerprint(_version(**BASE))


def test_a_fingerprint_is_32_hexadecimal_digits() -> None:
    assert re.fullmatch("[0-9a-f]{32}", fingerprint(_version()))


def test_an_operator_has_an_entry_for_each_version_and_step_and_its_removal() -> None:
    upsample = default_registry().operator("Upsample")
    assert upsample is not None
    entries = operator_fingerprints(upsample)
    assert {"shared", "1", "7", "7 step", "9", "10", "10 step"} <= entries.keys()
    assert ("removal" in entries) == any(version.removal for version in upsample.versions)


# Edits of a file


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with a few of the project's definitions, on record."""
    for name in ("types.yaml", "ai.onnx/Clip.yaml", "ai.onnx/GroupNormalization.yaml", "ai.onnx/ATen.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(OPSETS / name, tmp_path / name)
    (tmp_path / "fingerprints.yaml").write_text(lock_text(locked(_operators(tmp_path))), encoding="utf-8")
    return tmp_path


def _operators(tree: Path) -> list[Operator]:
    return list(read_tree(tree).operators.values())


def _moved(tree: Path) -> list[tuple[str, str]]:
    found = moved(read_tree(tree).operators.values(), load_lock(tree / "fingerprints.yaml"))
    return [(each.entry, each.why) for each in found]


EDITS = {
    "a default": ("max: {type: FLOAT, default: 3.4028235e+38}", "3.4028235", "3.4028135", ["6"]),
    "a description": ("Limits every element", "Limits", "limits", ["shared"]),
    "a type": ("    T: [all_numeric_types_ir4]", "ir4", "ir9", ["13"]),
    "a parameter": ("{name: min, type: T, option: optional}", "name: min", "name: mib", ["11"]),
    "a sentence about a step": ("Integer types are accepted.", "accepted.", "accepted,", ["12 step"]),
    "a verb": ("ignore_attribute: consumed_inputs", "consumed", "consumes", ["6 step"]),
    "an absent value": ("absent: the highest", "the highest", "the kighest", ["1"]),
}


@pytest.mark.parametrize(("line", "old", "new", "entries"), EDITS.values(), ids=EDITS)
def test_an_edit_of_one_character_is_seen(
    tree: Path, line: str, old: str, new: str, entries: list[str]
) -> None:
    path = tree / "ai.onnx" / "Clip.yaml"
    text = path.read_text("utf-8")
    assert line in text
    path.write_text(text.replace(line, line.replace(old, new), 1), encoding="utf-8")
    assert _moved(tree) == [(entry, "changed") for entry in entries]


def test_an_edit_of_a_set_of_types_is_seen_in_every_version_that_uses_it(tree: Path) -> None:
    path = tree / "types.yaml"
    path.write_text(path.read_text("utf-8").replace("tensor(float16)", "tensor(float17)"), encoding="utf-8")
    assert ("1", "changed") in _moved(tree)


def test_comments_and_layout_are_free(tree: Path) -> None:
    path = tree / "ai.onnx" / "Clip.yaml"
    path.write_text("# a comment\n" + path.read_text("utf-8") + "\n\n", encoding="utf-8")
    assert _moved(tree) == []


def test_an_operator_that_is_gone_is_seen(tree: Path) -> None:
    (tree / "ai.onnx" / "Clip.yaml").unlink()
    assert _moved(tree) == [("the operator", "missing")]


# The tool


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
    kept = [entry for entry in before["Clip"] if entry != "shared"]
    assert [after["Clip"][entry] for entry in kept] == [before["Clip"][entry] for entry in kept]
    assert tool([str(tree), "--check"]) == 0


@pytest.mark.parametrize(
    ("edit", "options", "code", "recorded"),
    [
        pytest.param(("Clip", "option: optional", "option: single"), [], 1, False, id="a version"),
        pytest.param(
            ("Clip", "option: optional", "option: single"), ["--steps"], 1, False, id="with --steps"
        ),
        pytest.param(("Clip", "option: optional", "option: single"), ["--force"], 0, True, id="with --force"),
        pytest.param(("Clip", "Limits", "Bounds"), [], 1, False, id="a description"),
        pytest.param(("Clip", "Integer types", "Integers"), [], 1, False, id="a step"),
        pytest.param(("Clip", "Integer types", "Integers"), ["--steps"], 0, True, id="a step with --steps"),
        pytest.param(("Clip", "option: optional", "option: single"), ["--check"], 1, False, id="checked"),
    ],
)
def test_the_tool_rewrites_only_what_it_is_told_to(
    tool: Tool, tree: Path, edit: tuple[str, str, str], options: list[str], code: int, recorded: bool
) -> None:
    before = (tree / "fingerprints.yaml").read_bytes()
    _edit(tree, *edit)
    assert tool([str(tree), *options]) == code
    assert ((tree / "fingerprints.yaml").read_bytes() != before) == recorded
    assert (_moved(tree) == []) == recorded


def test_an_experiment_may_change(tool: Tool, tree: Path) -> None:
    _edit(tree, "ATen", "status: EXPERIMENTAL", "status: EXPERIMENTAL\n  shape: first")
    assert read_tree(tree).operators["ai.onnx", "ATen"].versions[0].status == "EXPERIMENTAL"
    assert tool([str(tree), "--check"]) == 1
    assert tool([str(tree)]) == 0
    assert _moved(tree) == []


def test_what_is_gone_stays_on_record(tool: Tool, tree: Path) -> None:
    (tree / "ai.onnx" / "Clip.yaml").unlink()
    assert tool([str(tree)]) == 1
    assert "Clip" in load_lock(tree / "fingerprints.yaml")["ai.onnx"]
    assert tool([str(tree), "--force"]) == 0
    assert "Clip" not in load_lock(tree / "fingerprints.yaml")["ai.onnx"]


def test_a_lock_of_another_form_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fingerprints.yaml"
    path.write_text("ai.onnx: [Clip]\n", encoding="utf-8")
    with pytest.raises(DefinitionError):
        load_lock(path)
    assert load_lock(tmp_path / "none.yaml") == {}
