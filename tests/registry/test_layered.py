"""A folder adds to the project's definitions; a whole tree takes their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from opshift.registry.catalogue import default_registry
from opshift.registry.errors import DefinitionError
from opshift.registry.layered import registry_over

ACME = "domain: com.acme\nname: Blur\nversions:\n- since_version: 1\n"
RELU = "domain: ai.onnx\nname: Relu\nversions:\n- since_version: 1\n"


def _folder(path: Path, name: str, text: str, *, whole: bool = False) -> Path:
    (path / name).parent.mkdir(parents=True)
    (path / name).write_text(text, "utf-8")
    if whole:
        (path / "releases.yaml").write_text("onnx: {}\n", "utf-8")
    return path


def test_without_folders_it_is_the_projects_own() -> None:
    assert registry_over([]) is default_registry()


def test_a_folder_adds_its_domain(tmp_path: Path) -> None:
    registry = registry_over([_folder(tmp_path, "com.acme/Blur.yaml", ACME)])
    assert registry.names("com.acme") == ("Blur",)
    assert registry.has("Conv")


@pytest.mark.parametrize("is_first", [True, False])
def test_a_tree_takes_the_place_of_the_projects(is_first: bool, tmp_path: Path) -> None:
    tree = _folder(tmp_path / "tree", "ai.onnx/Relu.yaml", RELU, whole=True)
    acme = _folder(tmp_path / "acme", "com.acme/Blur.yaml", ACME)
    registry = registry_over([tree, acme] if is_first else [acme, tree])
    assert registry.names() == ("Relu",)
    assert registry.names("com.acme") == ("Blur",)


def test_what_is_there_is_not_defined_again(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="also defined"):
        registry_over([_folder(tmp_path, "ai.onnx/Relu.yaml", RELU)])
