"""Defaults of attributes in adapters equal the defaults in the definitions."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from opshift import default_registry

pytestmark = pytest.mark.every_case

ROOT = Path(__file__).parents[2]
EQUIVALENT = {("linear", "bilinear")}
"""Defaults of a later and an earlier version with the same meaning."""

MODULES = sorted((ROOT / "adapters" / "ops").rglob("*.py"))


class Default(NamedTuple):
    """A default that a function passes to `node.attribute`, and the operator version that it reads."""

    place: str
    attribute: str
    found: Any
    defined: Any


def _evaluate(expression: ast.expr, scope: dict[str, Any]) -> Any:
    """Return the value of an expression of literals and names of a module."""
    return eval(ast.unparse(expression), dict(scope))


def _decorated(
    tree: ast.Module, scope: dict[str, Any]
) -> Iterator[tuple[ast.FunctionDef, tuple[str, ...], int, str]]:
    """Yield the functions with a decorator `adapter`, its operators, source version and domain."""
    for function in tree.body:
        for call in getattr(function, "decorator_list", ()):
            if not (isinstance(call, ast.Call) and getattr(call.func, "id", "") == "adapter"):
                continue
            if any(isinstance(each, ast.Starred) for each in call.args):
                continue
            names, source, *_ = (_evaluate(each, scope) for each in call.args)
            domains = [_evaluate(each.value, scope) for each in call.keywords if each.arg == "domain"]
            assert isinstance(function, ast.FunctionDef)
            operators = (names,) if isinstance(names, str) else tuple(names)
            yield function, operators, source, domains[0] if domains else ""


def _reads(function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr, int]]:
    """Yield the attributes that a function reads with a default."""
    for call in ast.walk(function):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            continue
        is_read = call.func.attr == "attribute" and getattr(call.func.value, "id", "") == "node"
        if is_read and len(call.args) == 2 and isinstance(call.args[0], ast.Constant):
            yield str(call.args[0].value), call.args[1], call.lineno


def _callees(function: ast.FunctionDef, functions: dict[str, ast.FunctionDef]) -> Iterator[ast.FunctionDef]:
    """Yield a function and the functions of its module that it calls, directly or not."""
    found, pending = {function.name}, [function]
    while pending:
        each = pending.pop()
        yield each
        for name in ast.walk(each):
            if isinstance(name, ast.Name) and name.id in functions and name.id not in found:
                found.add(name.id)
                pending.append(functions[name.id])


def _defaults(path: Path) -> Iterator[Default]:
    tree = ast.parse(path.read_text())
    parts = path.relative_to(ROOT).with_suffix("").parts
    module = importlib.import_module(".".join(("opshift", *parts)))
    functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
    for function, names, source, domain in _decorated(tree, vars(module)):
        for callee in _callees(function, functions):
            for attribute, expression, line in _reads(callee):
                try:
                    found = _evaluate(expression, vars(module))
                except NameError:
                    continue  # it depends on local variables
                for name in names:
                    version = default_registry().at(name, source, domain)
                    definition = version and version.attributes.get(attribute)
                    if definition and definition.default is not None and found is not None:
                        place = f"{path.relative_to(ROOT)}:{line} {name} {source}"
                        yield Default(place, attribute, found, definition.default)


def _is_equal(found: Any, defined: Any) -> bool:
    if isinstance(found, bytes):
        found = found.decode()
    if isinstance(defined, bytes):
        defined = defined.decode()
    if (found, defined) in EQUIVALENT:
        return True
    if isinstance(found, float) and isinstance(defined, int | float):
        return bool(found == pytest.approx(defined, rel=1e-6, abs=0))
    return bool(found == defined)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_defaults_equal_the_definitions(path: Path) -> None:
    wrong = {each for each in _defaults(path) if not _is_equal(each.found, each.defined)}
    assert not wrong


def test_finds_defaults() -> None:
    assert sum(len(list(_defaults(path))) for path in MODULES) > 200
