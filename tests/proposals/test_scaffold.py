"""A new proposal is a folder whose files can be read, and whose answers are open."""

from __future__ import annotations

from pathlib import Path

import pytest

from opshift.converter.errors import UsageError
from opshift.proposals.check import check_proposal
from opshift.proposals.models import KINDS, Kind
from opshift.proposals.scaffold import Wanted, scaffold
from opshift.registry.catalogue import default_registry

UNREADABLE = {"proposal.format", "operator.format", "examples.format", "reference.loads", "steps.adapters"}
SETTLED = {
    "opset.released",
    "opset.next",
    "opset.published",
    "opset.version",
    "operator.name",
    "operator.domain",
}


def _new(kind: Kind, name: str, path: Path, domain: str = "ai.onnx") -> Path:
    scaffold(path, Wanted(kind, domain, name, "Ada", "ada@example.com"), default_registry())
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_starts_with_files_that_can_be_read(kind: Kind, tmp_path: Path) -> None:
    name = "Novelty" if kind in ("new-operator", "new-function", "promotion") else "Softmax"
    found = {each.rule for each in check_proposal(_new(kind, name, tmp_path / "new")).errors}
    assert found & (UNREADABLE | SETTLED) == set()
    assert "proposal.motivation" in found


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        pytest.param(
            "update", "Softmax", "- since_version: 29", id="an update has a version for the next opset"
        ),
        pytest.param("deprecation", "Softmax", "deprecation:", id="a deprecation says what replaces it"),
        pytest.param("removal", "Softmax", "removed_in: 29", id="a removal says when"),
        pytest.param("new-function", "Novelty", "  body:", id="a function has a body"),
    ],
)
def test_the_definition_has_what_the_kind_needs(kind: Kind, name: str, text: str, tmp_path: Path) -> None:
    assert text in (_new(kind, name, tmp_path / "new") / "operator.yaml").read_text("utf-8")


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    path = _new("new-function", "Novelty", tmp_path / "new")
    with pytest.raises(UsageError, match="already"):
        _new("update", "Softmax", path)


def test_what_is_not_there_cannot_be_updated(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no operator 'Softmaxx'"):
        _new("update", "Softmaxx", tmp_path / "new")


def test_a_preview_operator_is_experimental(tmp_path: Path) -> None:
    path = _new("new-function", "Novelty", tmp_path / "new", "ai.onnx.preview")
    definition = (path / "operator.yaml").read_text("utf-8")
    assert "- since_version: 1\n  status: EXPERIMENTAL" in definition
