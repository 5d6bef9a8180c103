"""Comparison of two trees: changes of published versions and rules for new ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from opshift.registry.changes.policies import POLICIES, Mode
from opshift.registry.changes.trees import Tree, compare_trees, read_tree
from opshift.registry.errors import DefinitionError

BLUR = """\
domain: com.acme
name: Blur
versions:
- since_version: 1
  descriptions: {operator: It blurs.}
  inputs: [{name: X, type: T}]
  outputs: [{name: Y, type: T}]
  attributes:
    size: {type: INT, default: 3}
  type_constraints: {T: [tensor(float)]}
- since_version: 2
  step: {change: Doubles are taken., up: compatible, down: compatible}
  inputs: [{name: X, type: T}]
  outputs: [{name: Y, type: T}]
  attributes:
    size: {type: INT, default: 3}
  type_constraints: {T: [tensor(double), tensor(float)]}
"""
EXPERIMENTAL = BLUR.replace("since_version: 2\n", "since_version: 2\n  status: EXPERIMENTAL\n")
ADDED_TYPE = BLUR.replace("tensor(double), tensor(float)", "tensor(double), tensor(float), tensor(float16)")
NEW_DEFAULT = BLUR.replace("default: 3", "default: 5", 1)
NEW_DESCRIPTION = BLUR.replace("It blurs.", "It blurs an image.")
NEW_ATTRIBUTE = BLUR.replace(
    "size: {type: INT, default: 3}\n", "size: {type: INT, default: 3}\n    m: {type: INT}\n"
)
ONE_VERSION = BLUR[: BLUR.index("- since_version: 2")]
THIRD = """\
- since_version: 3
  step: {change: The size is removed., up: [{drop_attribute: size}], down: compatible}
  inputs: [{name: X, type: T}]
  outputs: [{name: Y, type: T}]
  type_constraints: {T: [tensor(double), tensor(float)]}
"""
REMOVAL = "  removal: {removed_in: 3, up: adapter}\n"
RELEASES = """\
onnx:
  '1.0': {ir_version: 3, opsets: {com.acme: 1}}
  '1.1': {ir_version: 3, opsets: {com.acme: 2}, released: false}
"""


def _tree(folder: Path, text: str, releases: str = "") -> Tree:
    path = folder / "com.acme" / "Blur.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    (folder / "releases.yaml").write_text(releases or "{}", encoding="utf-8")
    return read_tree(folder)


def _found(folder: Path, old: str, new: str, policy: str, mode: Mode, releases: str = "") -> list[str]:
    trees = _tree(folder / "old", old, releases), _tree(folder / "new", new, releases)
    findings = compare_trees(*trees, POLICIES[policy], mode)
    return [f"{each.operator.rpartition(':')[2]} {each.change.rule}" for each in findings]


@pytest.mark.parametrize(
    ("old", "new", "strict", "types_free", "additive_free"),
    [
        pytest.param(BLUR, BLUR, [], [], [], id="nothing changed"),
        pytest.param(BLUR, NEW_DESCRIPTION, [], [], [], id="a description"),
        pytest.param(BLUR, ADDED_TYPE, ["2 types-added"] * 2, [], [], id="types in place"),
        pytest.param(
            BLUR,
            NEW_ATTRIBUTE,
            ["1 attribute-added", "2 attribute-added"],
            ["1 attribute-added", "2 attribute-added"],
            [],
            id="an attribute in place",
        ),
        pytest.param(
            BLUR,
            NEW_DEFAULT,
            ["1 default-changed"],
            ["1 default-changed"],
            ["1 default-changed"],
            id="a default in place",
        ),
        pytest.param(
            BLUR,
            ONE_VERSION,
            ["2 version-deleted"],
            ["2 version-deleted"],
            ["2 version-deleted"],
            id="a deleted version",
        ),
        pytest.param(BLUR, BLUR + THIRD, [], [], [], id="a new version"),
        pytest.param(BLUR, BLUR + REMOVAL, [], [], [], id="a removal from a later opset"),
        pytest.param(
            EXPERIMENTAL,
            EXPERIMENTAL.replace("[{name: X, type: T}]", "[]"),
            *[["1 required-input-removed"]] * 3,
            id="an experimental version",
        ),
    ],
)
def test_a_policy_reports_changes_of_published_versions(
    tmp_path: Path, old: str, new: str, strict: list[str], types_free: list[str], additive_free: list[str]
) -> None:
    for policy, expected in (
        ("onnx-strict", strict),
        ("types-free", types_free),
        ("additive-free", additive_free),
    ):
        assert _found(tmp_path / policy, old, new, policy, Mode.NONE) == expected, policy


@pytest.mark.parametrize("policy", ["onnx-strict", "types-free", "additive-free"])
def test_reports_a_removal_from_a_released_opset(tmp_path: Path, policy: str) -> None:
    releases = RELEASES.replace("com.acme: 1", "com.acme: 3")
    found = _found(tmp_path, BLUR, BLUR + REMOVAL, policy, Mode.NONE, releases)
    assert found == ["2 operator-removed"]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (Mode.NONE, []),
        (Mode.BACKWARD, ["3 attribute-removed"]),
        (Mode.FORWARD, []),
        (Mode.FULL, ["3 attribute-removed"]),
        (Mode.FORWARD_TRANSITIVE, ["3 types-added", "3 types-added"]),
    ],
)
def test_a_mode_reports_incompatible_new_versions(tmp_path: Path, mode: Mode, expected: list[str]) -> None:
    assert _found(tmp_path, BLUR, BLUR + THIRD, "onnx-strict", mode) == expected


def test_a_mode_ignores_published_versions(tmp_path: Path) -> None:
    assert _found(tmp_path, BLUR + THIRD, BLUR + THIRD, "onnx-strict", Mode.FULL) == []


def test_allows_changes_of_an_unreleased_opset(tmp_path: Path) -> None:
    assert _found(tmp_path, BLUR, ADDED_TYPE, "onnx-strict", Mode.NONE, RELEASES) == []
    assert _found(tmp_path / "b", BLUR, NEW_DEFAULT, "onnx-strict", Mode.NONE, RELEASES) == [
        "1 default-changed"
    ]


def test_reports_a_version_inserted_into_a_released_opset(tmp_path: Path) -> None:
    other = BLUR.replace("name: Blur", "name: Glow")
    old, new = _tree(tmp_path / "old", BLUR), _tree(tmp_path / "new", BLUR)
    (tmp_path / "new" / "com.acme" / "Glow.yaml").write_text(other, encoding="utf-8")
    new = read_tree(tmp_path / "new")
    found = list(compare_trees(old, new, POLICIES["onnx-strict"]))
    assert [(each.operator, each.change.rule) for each in found] == [
        ("com.acme.Glow:1", "version-inserted"),
        ("com.acme.Glow:2", "version-inserted"),
    ]
    assert found[0].remedy == "use since_version 3 or later"


def test_an_opset_that_only_removes_an_operator_is_released(tmp_path: Path) -> None:
    glow = ONE_VERSION.replace("name: Blur", "name: Glow")
    for folder, text in (("old", glow), ("new", glow + THIRD)):
        _tree(tmp_path / folder, BLUR + REMOVAL)
        (tmp_path / folder / "com.acme" / "Glow.yaml").write_text(text, encoding="utf-8")
    trees = read_tree(tmp_path / "old"), read_tree(tmp_path / "new")
    (found,) = compare_trees(*trees, POLICIES["onnx-strict"])
    assert (found.operator, found.change.rule) == ("com.acme.Glow:3", "version-inserted")
    assert found.remedy == "use since_version 4 or later"


def test_reports_every_version_of_a_deleted_operator(tmp_path: Path) -> None:
    old = _tree(tmp_path / "old", BLUR)
    found = compare_trees(old, Tree({}, old.releases), POLICIES["onnx-strict"])
    assert [each.change.rule for each in found] == ["version-deleted"] * 2


def test_refuses_a_folder_without_definitions(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="contains no operator definitions"):
        read_tree(tmp_path)


def test_a_tree_may_use_the_built_in_type_sets(tmp_path: Path) -> None:
    tree = _tree(tmp_path, BLUR.replace("[tensor(float)]", "[all_float_types]"))
    assert "tensor(float16)" in tree.operators["com.acme", "Blur"].versions[0].type_constraints["T"]
