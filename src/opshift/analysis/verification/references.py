"""Python references: functions that compute operators that no runtime implements."""

import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from numbers import Integral
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from opshift.model.errors import OpshiftError, Place, UsageError, path_argument
from opshift.model.extensions import FAILURES, error_line, file_lock, module_name, run_file
from opshift.model.operator_ids import OperatorId, canonical_domain

Reference = Callable[..., object]

AnyReference = TypeVar("AnyReference", bound=Reference)

_registered: dict[OperatorId, Reference] = {}

REFERENCES: Mapping[OperatorId, Reference] = MappingProxyType(_registered)
"""The references of all modules imported so far, by operator version."""


class DuplicateReference(OpshiftError):
    """Two functions are registered for the same operator version."""


def reference(op_type: str, *versions: int, domain: str) -> Callable[[AnyReference], AnyReference]:
    """Register a function that computes some versions of an operator.

    The function gets the inputs as positional arrays, `None` for an omitted input, and attributes by name:
    numbers, strings, arrays, lists of them, or `None` if an attribute has neither a value nor a default. It
    returns an array of the type that the definition declares, or a tuple of arrays.

    Raises:
        DuplicateReference: another function is registered for a version.
        UsageError: a name is not text, a version is not a positive integer, or no version is passed.
    """
    names: tuple[object, ...] = (op_type, domain)
    is_text = all(isinstance(each, str) and each for each in names)
    if not is_text or not versions or not all(map(_is_version, versions)):
        reason = f"expected a name, versions and a domain, got {op_type!r}, {versions!r} and {domain!r}"
        raise UsageError(reason, remedy='register it as in @reference("Scale", 1, 2, domain="com.acme")')
    operators = [OperatorId(canonical_domain(domain), op_type, int(version)) for version in versions]

    def register(function: AnyReference) -> AnyReference:
        for operator in operators:
            other = _registered.get(operator, function)
            # A module that is imported again replaces the functions that it registered before.
            if (other.__module__, other.__qualname__) != (function.__module__, function.__qualname__):
                modules = f"{other.__module__} and {function.__module__}"
                raise DuplicateReference(f"{operator} has two references, in {modules}")
        _registered.update(dict.fromkeys(operators, function))
        return function

    return register


def _is_version(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) > 0


def load_references(source: Path | str) -> None:
    """Import a module with references, such as `acme.references`, or run a Python file or a folder of them.

    A file with a function `reference` and `OPERATOR = "com.acme.Blend:1"` registers the function for
    this operator version. `opshift proposal accept` writes such files.

    Raises:
        UsageError: `source` is not a path or name, does not exist, or cannot be executed.
        DuplicateReference: two functions are registered for the same operator version.
    """
    _load_references(path_argument("source", source), str(source))


@cache
def _load_references(path: Path, source: str) -> None:
    files = _python_files(path)
    current = path
    try:
        for current in files:
            with file_lock(module_name(current)):
                run_file(current)
                _register_function_of(module_name(current))
        if not files:
            import_module(source)
    except OpshiftError:
        raise
    except FAILURES as error:
        place = Place(str(current), error_line(error, current) if files else 0)
        remedy = "name an importable module, or a Python file or a folder of them"
        raise UsageError(f"{type(error).__name__}: {error}", place=place, remedy=remedy) from error


def _python_files(path: Path) -> list[Path]:
    """Return the file at a path, or the Python files of a folder; an empty list for a module name."""
    if path.is_dir():
        return sorted(path.glob("[!_]*.py"))
    return [path] if path.suffix == ".py" or path.is_file() else []


OPERATOR_NAME = "OPERATOR"
"""Variable of a reference file that names the operator version which its function `reference` computes."""


def _register_function_of(module: str) -> None:
    names = vars(sys.modules[module])
    if OPERATOR_NAME in names and "reference" in names:
        operator = OperatorId.parse(names[OPERATOR_NAME])
        reference(operator.op_type, operator.since_version, domain=operator.domain)(names["reference"])
