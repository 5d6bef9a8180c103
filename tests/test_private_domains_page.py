"""The page on private domains: its code is part of the example package, and its names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import opshift.adapters
import opshift.shapes
from opshift.adapters import Node, Rewriter

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "private-domains.md").read_text("utf-8")
FILES = [
    path.read_text("utf-8")
    for path in (ROOT / "examples" / "acme").rglob("*")
    if path.suffix in (".py", ".yaml", ".toml")
]
BLOCKS = re.findall(r"^```(?:python|yaml|toml)\n(.*?)^```", PAGE, re.M | re.S)


@pytest.mark.parametrize("block", BLOCKS)
def test_code_is_part_of_the_example(block: str) -> None:
    assert [text for text in FILES if block in text]


def test_page_has_code() -> None:
    assert len(BLOCKS) > 5


def _names(title: str) -> list[str]:
    table = PAGE.partition(f"| {title} | purpose |\n|---|---|\n")[2].partition("\n\n")[0]
    rows = [line.split(" | ")[0] for line in table.splitlines()]
    return re.findall(r"`(\w+)", " ".join(rows))


def test_adapter_names_exist() -> None:
    names = _names("name")
    assert len(names) > 7
    assert [name for name in names if not hasattr(opshift.adapters, name)] == []


def test_methods_of_the_rewriter_exist() -> None:
    names = _names("`Rewriter`")
    assert len(names) > 12
    assert [name for name in names if not hasattr(Rewriter, name)] == []


@pytest.mark.parametrize(
    "name", ["Shape", "ShapeContext", "Shapes", "ShapeRule", "rule", "data_rule", "broadcast"]
)
def test_shape_names_exist(name: str) -> None:
    assert hasattr(opshift.shapes, name)


@pytest.mark.parametrize("kind", [Node, Rewriter, opshift.shapes.ShapeContext])
def test_public_methods_have_docstrings(kind: type) -> None:
    methods = [name for name, value in vars(kind).items() if callable(value) and not name.startswith("_")]
    deprecated = {"become", "concede"}
    assert [name for name in methods if name not in deprecated and not getattr(kind, name).__doc__] == []


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)[^)]*\)", PAGE))
def test_links_exist(link: str) -> None:
    assert (ROOT / "docs" / link).exists()
