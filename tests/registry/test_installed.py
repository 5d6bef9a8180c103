"""Installed packages provide definitions of private domains, which are looked up on first use."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from support.installed import forget_installed_packages, install

from opshift.checker.check import check
from opshift.converter.convert import convert_version
from opshift.model.errors import OpshiftError
from opshift.opsets import OPSETS
from opshift.registry.errors import DefinitionError, UnknownDomain
from opshift.registry.installed import installed_domains
from opshift.registry.registry import Registry, load_registry

BLUR = """\
domain: com.acme.images
name: Blur
versions:
- since_version: 2
  inputs: [{name: X, type: T}]
  outputs: [{name: Y, type: T}]
  type_constraints: {T: acme_types}
"""
TYPES = "acme_types: [tensor(float), tensor(uint8)]\n"
FILES = {
    "acme_images/__init__.py": "",
    "acme_images/com.acme.images/Blur.yaml": BLUR,
    "acme_images/types.yaml": TYPES,
}
ENTRY_POINTS = "[opshift.opsets]\ncom.acme.images = acme_images\n"
DOMAIN = "com.acme.images"


@pytest.fixture(autouse=True)
def _no_packages() -> Iterator[None]:
    forget_installed_packages()
    yield
    forget_installed_packages()
    for name in [name for name in sys.modules if name.startswith("acme_images")]:
        del sys.modules[name]


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    install(monkeypatch, tmp_path / "site", FILES, ENTRY_POINTS)
    return tmp_path / "site" / "acme_images"


def _registry() -> Registry:
    return Registry((OPSETS,), installed=True)


def _model() -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    nodes = [helper.make_node("Blur", ["x"], ["b"], domain=DOMAIN), helper.make_node("Relu", ["b"], ["y"])]
    imports = [helper.make_opsetid("", 12), helper.make_opsetid(DOMAIN, 2)]
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=imports, ir_version=7)


def test_package_defines_its_domain(package: Path) -> None:
    registry = _registry()
    assert registry.has_domain(DOMAIN)
    assert DOMAIN in registry.domains()
    assert registry.names(DOMAIN) == ("Blur",)
    assert registry.newest_opset(DOMAIN) == 2
    assert registry.get_schema("Blur", 2, DOMAIN).type_constraints["T"] == ("tensor(float)", "tensor(uint8)")
    assert registry.file_of("Blur", DOMAIN) == package / DOMAIN / "Blur.yaml"
    assert registry.has("Softmax", 13)


def test_package_is_imported_when_its_domain_is_used(package: Path) -> None:
    registry = _registry()
    registry.get_schema("Relu", 13)
    assert DOMAIN in registry.domains()
    assert "acme_images" not in sys.modules
    assert not registry.has_domain("com.other")
    assert "acme_images" not in sys.modules
    assert registry.has_domain(DOMAIN)
    assert "acme_images" in sys.modules


def test_converts_and_checks_models_of_the_domain(package: Path) -> None:
    registry = _registry()
    converted = convert_version(_model(), 17, registry=registry)
    assert [each.version for each in converted.opset_import] == [17, 2]
    model = _model()
    model.graph.node[0].op_type = "Blr"
    (found,) = [each for each in check(model, registry=registry) if each.level == "error"]
    assert "did you mean Blur?" in found.remedy


def test_folder_and_complete_tree_come_before_packages(package: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work" / DOMAIN
    folder.mkdir(parents=True)
    (folder / "Glow.yaml").write_text(BLUR.replace("Blur", "Glow").replace("acme_types", "tensor(float)"))
    registry = load_registry([tmp_path / "work"])
    assert registry.names(DOMAIN) == ("Glow",)
    assert _registry().with_folder(tmp_path / "work").names(DOMAIN) == ("Glow",)
    (tmp_path / "work" / "releases.yaml").write_text("onnx: {}\n")
    folder.rename(tmp_path / "work" / "com.other")
    assert not load_registry([tmp_path / "work"]).has_domain(DOMAIN)
    assert not Registry((OPSETS,)).has_domain(DOMAIN)


def test_two_packages_share_a_domain(package: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    glow = BLUR.replace("Blur", "Glow").replace("acme_types", "tensor(float)")
    files = {"acme_images_b/__init__.py": "", f"acme_images_b/{DOMAIN}/Glow.yaml": glow}
    entry_points = ENTRY_POINTS.replace("= acme_images", "= acme_images_b")
    _rename_metadata(package.parent)
    install(monkeypatch, tmp_path / "b", files, entry_points)
    assert sorted(_registry().names(DOMAIN)) == ["Blur", "Glow"]


def test_two_packages_must_not_define_one_operator(
    package: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files = {"acme_images_b/__init__.py": "", f"acme_images_b/{DOMAIN}/Blur.yaml": BLUR}
    _rename_metadata(package.parent)
    install(monkeypatch, tmp_path / "b", files, ENTRY_POINTS.replace("= acme_images", "= acme_images_b"))
    with pytest.raises(DefinitionError, match=r"is also defined in .*Blur\.yaml"):
        _registry().names(DOMAIN)


def _rename_metadata(site: Path) -> None:
    """Rename a distribution, because a second one with the same name is ignored."""
    (site / "acme-1.0.dist-info").rename(site / "other-1.0.dist-info")
    path = site / "other-1.0.dist-info" / "METADATA"
    path.write_text(path.read_text().replace("Name: acme", "Name: other"))


@pytest.mark.parametrize(
    ("files", "entry_point", "reason"),
    [
        pytest.param({}, "nobody_has_this", "cannot be imported: ModuleNotFoundError", id="missing"),
        pytest.param(
            {"acme_images_c/__init__.py": "1 / 0"},
            "acme_images_c",
            "cannot be imported: ZeroDivisionError",
            id="broken",
        ),
        pytest.param(
            {"acme_images_d/__init__.py": ""}, "acme_images_d", "has no definitions of com.acme", id="empty"
        ),
        pytest.param({"acme_images_e.py": ""}, "acme_images_e", "has no definitions", id="module"),
        pytest.param({"acme_images_f.py": "x = 1"}, "acme_images_f:x", "has no definitions", id="attribute"),
        pytest.param({"acme_images_g.py": ""}, "acme_images_g:y", "AttributeError", id="missing attribute"),
        pytest.param(
            {"acme_images_h/__init__.py": "", f"acme_images_h/{DOMAIN}/Blur.yaml": "[]"},
            "acme_images_h",
            "is not an operator definition",
            id="invalid definition",
        ),
    ],
)
def test_reports_an_unusable_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: dict[str, str], entry_point: str, reason: str
) -> None:
    install(monkeypatch, tmp_path, files, f"[opshift.opsets]\n{DOMAIN} = {entry_point}\n")
    registry = _registry()
    assert registry.get_schema("Softmax", 13).since_version == 13
    with pytest.raises(OpshiftError, match=reason) as caught:
        registry.get_schema("Blur", 2, DOMAIN)
    assert f"{DOMAIN} = {entry_point}" in str(caught.value.place) or "Blur.yaml:1" in str(caught.value.place)


def test_entry_point_without_such_a_domain_is_ignored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(monkeypatch, tmp_path, FILES, ENTRY_POINTS.replace("com.acme.images =", "images ="))
    with pytest.raises(UnknownDomain, match="no definitions"):
        _registry().get_schema("Blur", 2, DOMAIN)


def test_unreadable_entry_points_are_left_to_importlib(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "other-1.dist-info" / "entry_points.txt").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert installed_domains() == ()


def test_archive_on_the_path_may_have_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import zipfile

    install(monkeypatch, tmp_path / "site", FILES, ENTRY_POINTS)
    with zipfile.ZipFile(tmp_path / "site.zip", "w") as archive:
        for path in (tmp_path / "site").rglob("*"):
            if path.is_file():
                archive.write(path, path.relative_to(tmp_path / "site"))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site.zip"), *sys.path[1:]])
    forget_installed_packages()
    assert installed_domains() == (DOMAIN,)


WITHOUT_PACKAGES = """
import sys
before = set(sys.modules)
import opshift
model = sys.argv[1]
opshift.convert_version(model, 17)
assert "importlib.metadata" not in set(sys.modules) - before or "pydantic" in sys.modules, "imported"
"""


def test_conversion_without_packages_does_not_import_metadata(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(_model(), path)
    command = [sys.executable, "-c", WITHOUT_PACKAGES, str(path)]
    for _ in range(2):  # the first run may compile definitions
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
