"""A folder of definitions extends the built-in ones; a complete tree replaces them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from opshift.registry.documents.document import operator_set
from opshift.registry.documents.files import DocumentFormat, write_document
from opshift.registry.errors import DefinitionError
from opshift.registry.lint_tree import lint_tree
from opshift.registry.registry import default_registry, load_registry

ACME = "domain: com.acme\nname: Blur\nversions:\n- since_version: 1\n"
OTHER = ACME.replace("com.acme", "com.other")
RELU = "domain: ai.onnx\nname: Relu\nversions:\n- since_version: 1\n"


def _write_folder(path: Path, name: str, text: str, *, complete: bool = False) -> Path:
    (path / name).parent.mkdir(parents=True)
    (path / name).write_text(text, "utf-8")
    if complete:
        (path / "releases.yaml").write_text("onnx: {}\n", "utf-8")
    return path


def test_returns_the_default_registry_without_folders() -> None:
    assert load_registry([]) is default_registry()


def test_a_folder_adds_its_domain(tmp_path: Path) -> None:
    registry = load_registry([_write_folder(tmp_path, "com.acme/Blur.yaml", ACME)])
    assert registry.names("com.acme") == ("Blur",)
    assert registry.has("Conv")


@pytest.mark.parametrize("is_first", [True, False])
def test_a_complete_tree_replaces_the_built_in_definitions(is_first: bool, tmp_path: Path) -> None:
    tree = _write_folder(tmp_path / "tree", "ai.onnx/Relu.yaml", RELU, complete=True)
    acme = _write_folder(tmp_path / "acme", "com.acme/Blur.yaml", ACME)
    registry = load_registry([tree, acme] if is_first else [acme, tree])
    assert registry.names() == ("Relu",)
    assert registry.names("com.acme") == ("Blur",)


NEW_VERSION = "domain: ai.onnx\nname: Relu\nversions:\n- since_version: 1\n- since_version: 6\n"
NEW_VERSION += "  step: {change: It is faster., up: compatible}\n"


def test_refuses_a_version_that_no_release_of_the_project_has(tmp_path: Path) -> None:
    text = NEW_VERSION.replace("Relu", "Blur").replace("6", "99")
    registry = load_registry([_write_folder(tmp_path, "ai.onnx/Blur.yaml", text)])
    with pytest.raises(DefinitionError, match=r"no release of ONNX has opset 99 of ai\.onnx"):
        registry.get_schema("Blur", 1)


def test_accepts_any_version_of_a_domain_without_releases(tmp_path: Path) -> None:
    text = NEW_VERSION.replace("ai.onnx", "com.acme").replace("6", "99")
    registry = load_registry([_write_folder(tmp_path, "com.acme/Relu.yaml", text)])
    assert registry.get_schema("Relu", domain="com.acme").since_version == 99


def test_refuses_a_second_definition_of_an_operator(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="also defined"):
        load_registry([_write_folder(tmp_path, "ai.onnx/Relu.yaml", RELU)])


TYPED = """\
domain: com.acme
name: Blur
versions:
- since_version: 1
  inputs: [{name: X, type: T}]
  outputs: [{name: Y, type: T}]
  type_constraints: {T: [all_float_types_ir4, acme]}
"""


def test_type_sets_of_a_folder_apply_to_its_own_definitions(tmp_path: Path) -> None:
    """Two folders redefine a set of the project; all three keep their own set, in every order."""
    folders = []
    for name, element in (("acme", "bool"), ("other", "int8")):
        text = TYPED.replace("acme", name)
        folders.append(_write_folder(tmp_path / name, f"com.{name}/Blur.yaml", text))
        sets = f"all_float_types_ir4: [tensor({element})]\n{name}: [tensor(string)]\n"
        (tmp_path / name / "types.yaml").write_text(sets, "utf-8")
    expected = default_registry().get_schema("Gelu").type_constraints
    for listed in (folders, folders[::-1]):
        registry = load_registry(listed)
        found = [registry.get_schema("Blur", 1, f"com.{name}").type_constraints for name in ("acme", "other")]
        assert found == [{"T": ("tensor(bool)", "tensor(string)")}, {"T": ("tensor(int8)", "tensor(string)")}]
        assert registry.get_schema("Gelu").type_constraints == expected
        assert [lint_tree(folder) for folder in folders] == [(), ()]


def test_a_folder_uses_type_sets_of_other_folders(tmp_path: Path) -> None:
    sets = _write_folder(tmp_path / "sets", "com.other/Blur.yaml", OTHER)
    (sets / "types.yaml").write_text("acme: [tensor(string)]\n", "utf-8")
    acme = _write_folder(tmp_path / "acme", "com.acme/Blur.yaml", TYPED)
    types = load_registry([sets, acme]).get_schema("Blur", 1, "com.acme").type_constraints["T"]
    assert {"tensor(float)", "tensor(string)"} <= {*types}


def test_adds_folders_and_documents(tmp_path: Path) -> None:
    folder = _write_folder(tmp_path / "acme", "com.acme/Blur.yaml", ACME)
    document = tmp_path / "other.json"
    other = load_registry([_write_folder(tmp_path / "other", "com.other/Blur.yaml", OTHER)])
    document.write_bytes(write_document(operator_set(other, "com.other"), DocumentFormat.JSON, other))
    registry = load_registry([str(document), str(folder)])
    assert registry.names("com.acme") == registry.names("com.other") == ("Blur",)
    assert registry.has("Conv")


def test_with_operator_replaces_and_adds_definitions(tmp_path: Path) -> None:
    base = load_registry([_write_folder(tmp_path, "com.acme/Blur.yaml", ACME)])
    blur = base.operator("Blur", "com.acme")
    assert blur is not None
    newer = replace(blur, versions=(*blur.versions, replace(blur.versions[0], since_version=3)))
    added = replace(newer, name="Sharpen")
    registry = base.with_operator(newer).with_operator(added)
    assert registry.names("com.acme") == ("Blur", "Sharpen")
    assert registry.operator("Blur", "com.acme") is newer
    assert registry.operator("Sharpen", "com.acme") is added
    assert registry.newest_opset("com.acme") == 3
    assert base.operator("Blur", "com.acme") is blur
    assert registry.with_folder(
        _write_folder(tmp_path / "b", "com.b/Blur.yaml", ACME.replace("acme", "b"))
    ).has("Sharpen", domain="com.acme")
