"""A folder of definitions extends the built-in ones; a complete tree replaces them."""

from __future__ import annotations

from pathlib import Path

import pytest

from opshift.registry.errors import DefinitionError
from opshift.registry.registry import default_registry, overlay

ACME = "domain: com.acme\nname: Blur\nversions:\n- since_version: 1\n"
RELU = "domain: ai.onnx\nname: Relu\nversions:\n- since_version: 1\n"


def _write_folder(path: Path, name: str, text: str, *, complete: bool = False) -> Path:
    (path / name).parent.mkdir(parents=True)
    (path / name).write_text(text, "utf-8")
    if complete:
        (path / "releases.yaml").write_text("onnx: {}\n", "utf-8")
    return path


def test_returns_the_default_registry_without_folders() -> None:
    assert overlay([]) is default_registry()


def test_a_folder_adds_its_domain(tmp_path: Path) -> None:
    registry = overlay([_write_folder(tmp_path, "com.acme/Blur.yaml", ACME)])
    assert registry.names("com.acme") == ("Blur",)
    assert registry.has("Conv")


@pytest.mark.parametrize("is_first", [True, False])
def test_a_complete_tree_replaces_the_built_in_definitions(is_first: bool, tmp_path: Path) -> None:
    tree = _write_folder(tmp_path / "tree", "ai.onnx/Relu.yaml", RELU, complete=True)
    acme = _write_folder(tmp_path / "acme", "com.acme/Blur.yaml", ACME)
    registry = overlay([tree, acme] if is_first else [acme, tree])
    assert registry.names() == ("Relu",)
    assert registry.names("com.acme") == ("Blur",)


NEW_VERSION = "domain: ai.onnx\nname: Relu\nversions:\n- since_version: 1\n- since_version: 6\n"


def test_refuses_a_version_that_no_release_of_the_project_has(tmp_path: Path) -> None:
    text = NEW_VERSION.replace("Relu", "Blur").replace("6", "99")
    registry = overlay([_write_folder(tmp_path, "ai.onnx/Blur.yaml", text)])
    with pytest.raises(DefinitionError, match=r"no release of ONNX has opset 99 of ai\.onnx"):
        registry.get_schema("Blur", 1)


def test_accepts_any_version_of_a_domain_without_releases(tmp_path: Path) -> None:
    text = NEW_VERSION.replace("ai.onnx", "com.acme").replace("6", "99")
    registry = overlay([_write_folder(tmp_path, "com.acme/Relu.yaml", text)])
    assert registry.get_schema("Relu", domain="com.acme").since_version == 99


def test_refuses_a_second_definition_of_an_operator(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="also defined"):
        overlay([_write_folder(tmp_path, "ai.onnx/Relu.yaml", RELU)])
