"""Imports in functions avoid the import of a module at the start, and each has a reason."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.every_case

PACKAGE = Path(__file__).parents[1] / "src" / "opshift"

REASONS = {
    "opshift.cli": "help and completion import the module of a command, and need only its options",
    "opshift.analysis.verification.verify": "numpy is optional, and few verifications fail",
    "opshift.catalogue.browser.session": "the page starts in Pyodide, and few visitors use all commands",
    "opshift.batch": "the settings are read by all processes, and each needs few of the stages",
}
"""Modules and packages whose imports in functions need no comment, with the reason."""

IMPORTED = {
    "opshift.registry.yaml_files": "definitions are compiled, so few programs read YAML",
    "opshift.registry.lint": "the same: definitions are checked when they are compiled",
    "opshift.registry.type_sets": "the same: compiled definitions contain no sets",
    "pydantic": "the same: compiled definitions are valid",
    "networkx": "routes are compiled, and the nodes of most graphs are in order",
    "opshift.registry.documents": "few registries read operator-set documents",
    "opshift.converter.functions": "few models have functions",
    "opshift.inference.function_scope": "the same",
    "opshift.converter.declared_shapes": "few callers declare shapes",
    "opshift.converter.element_types": "few conversions change element types",
    "opshift.converter.folding": "few conversions fold",
    "opshift.converter.reversible": "few conversions are reversible",
    "opshift.checker.check": "few conversions check their results",
    "opshift.proposals.evidence": "numpy is optional, and listing proposals gathers no evidence",
    "opshift.model.remote": "few names are URLs",
    "opshift.stores.s3": "few names are URLs",
    "opshift.model.onnx_text": "few programs read models as text",
}
"""Modules and packages that functions import without a comment, with the reason."""

OPTIONAL = frozenset(
    (
        "aiohttp",
        "distributed",
        "fsspec",
        "jinja2",
        "markdown_it",
        "markupsafe",
        "numpy",
        "onnx",
        "onnx_ir",
        "rich",
    )
)
"""Packages that are not always installed, or that few calls need."""


class FunctionImport(NamedTuple):
    """Import statement: importing module, line, imported modules, and whether it has a comment."""

    module: str
    line: int
    imported: frozenset[str]
    has_comment: bool


@cache
def sources() -> dict[str, str]:
    """Return the sources of all modules, by name."""
    found: dict[str, str] = {}
    for path in PACKAGE.rglob("*.py"):
        found[module_name(path)] = path.read_text("utf-8")
    for folder in ("registry", "adapters", "converter"):  # rglob does not follow links
        for path in (PACKAGE / folder).resolve().rglob("*.py"):
            found[module_name(PACKAGE / folder / path.relative_to((PACKAGE / folder).resolve()))] = (
                path.read_text("utf-8")
            )
    return found


def module_name(path: Path) -> str:
    """Return the name of the module of a file."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def imported_by(node: ast.AST) -> frozenset[str]:
    """Return the modules that a statement imports."""
    if isinstance(node, ast.Import):
        return frozenset(alias.name for alias in node.names)
    if not isinstance(node, ast.ImportFrom) or node.module is None:
        return frozenset()
    names = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(full if full in sources() else node.module for full in names.values())


def statements_at_start(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that the import of a module executes, except those for type checkers."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        for name in ("body", "orelse", "handlers"):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from statements_at_start(getattr(node, name, []))


@cache
def imported_at_start(module: str) -> frozenset[str]:
    """Return the modules that a module imports by itself, with the packages that contain them."""
    nodes = statements_at_start(ast.parse(sources().get(module, "")).body)
    names = {name for node in nodes for name in imported_by(node)}
    parents = (name.rsplit(".", count)[0] for name in names for count in range(1, name.count(".") + 1))
    return frozenset((*names, *parents))


def loaded_with(module: str) -> set[str]:
    """Return all modules that the import of a module loads."""
    loaded: set[str] = set()
    waiting = [module]
    while waiting:
        current = waiting.pop()
        if current not in loaded:
            loaded.add(current)
            waiting += imported_at_start(current)
    return loaded


@cache
def imports_in_functions() -> tuple[FunctionImport, ...]:
    """Return the imports in functions."""
    found: dict[tuple[str, int], FunctionImport] = {}
    for module, source in sources().items():
        lines = source.splitlines()
        functions = [each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.FunctionDef)]
        for node in (node for function in functions for node in ast.walk(function)):
            if imported := imported_by(node):
                assert isinstance(node, ast.Import | ast.ImportFrom)
                has_comment = any("#" in line for line in lines[node.lineno - 2 : node.end_lineno])
                found[module, node.lineno] = FunctionImport(module, node.lineno, imported, has_comment)
    return tuple(found.values())


def row_of(module: str, rows: Iterable[str]) -> str | None:
    """Return the row of a table for a module."""
    return next((row for row in rows if module == row or module.startswith(f"{row}.")), None)


def has_reason(each: FunctionImport) -> bool:
    """Return whether a comment or a table has the reason for an import."""
    return (
        each.has_comment
        or row_of(each.module, REASONS) is not None
        or all(name.partition(".")[0] in OPTIONAL or row_of(name, IMPORTED) for name in each.imported)
    )


def test_each_has_a_reason() -> None:
    without = [f"{each.module}:{each.line}" for each in imports_in_functions() if not has_reason(each)]
    assert without == []


def test_each_avoids_an_import_at_the_start() -> None:
    useless = [
        f"{each.module}:{each.line}"
        for each in imports_in_functions()
        if {name for name in each.imported if name in sources()} and each.imported <= loaded_with(each.module)
    ]
    assert useless == [], "move the import to the top of the module: it is loaded anyway"


def test_each_row_is_needed() -> None:
    statements = imports_in_functions()
    assert {row_of(each.module, REASONS) for each in statements} - {None} == REASONS.keys()
    needed = {
        row_of(name, IMPORTED)
        for each in statements
        if not each.has_comment and row_of(each.module, REASONS) is None
        for name in each.imported
    }
    assert needed - {None} == IMPORTED.keys()
