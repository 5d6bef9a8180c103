"""Imports by name follow the layers in pyproject.toml, and no modules import each other in a cycle."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import grimp
import networkx as nx
import pytest

from opshift.adapters.core.adapter_table import ENTRY_POINT_GROUP

pytestmark = pytest.mark.every_case

ROOT = Path(__file__).parents[1]


@cache
def import_graph() -> grimp.ImportGraph:
    """Return the imports of all modules: statements, also in functions, and names in texts."""
    graph = grimp.build_graph("opshift", exclude_type_checking_imports=True)
    for module in sorted(graph.modules):
        for name in named_modules(module, graph.modules):
            graph.add_import(importer=module, imported=name)
    return graph


def named_modules(module: str, modules: set[str]) -> Iterator[str]:
    """Yield the modules whose name is a text in a module: for `import_module`, or in a table."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    for node in ast.walk(ast.parse(Path(spec.origin).read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
            for name in (node.value, f"opshift.{node.value}"):
                if name in modules - {module, ENTRY_POINT_GROUP}:
                    yield name


def test_finds_imports_by_name() -> None:
    graph = import_graph()
    assert graph.direct_import_exists(importer="opshift", imported="opshift.converter.convert")


def test_imports_run_one_way() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (rows,) = (each["layers"] for each in contracts if each["type"] == "layers")
    layers = [set(row.split(" | ")) for row in rows]
    illegal = import_graph().find_illegal_dependencies_for_layers(layers=layers)
    assert [(each.importer, each.imported) for each in illegal] == []


def test_no_modules_import_each_other() -> None:
    graph = import_graph()
    imports = nx.DiGraph(
        (importer, imported)
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
    )
    cycles = [sorted(each) for each in nx.strongly_connected_components(imports) if len(each) > 1]
    assert cycles == []
