"""Table of adapters, and functions that load adapters from installed packages and from files."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from opshift.model.errors import OpshiftError, Place, UsageError, path_argument
from opshift.model.extensions import FAILURES, error_line, file_lock, module_name, run_file
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.rule_table import import_modules
from opshift.registry.installed import installed_entry_points

if TYPE_CHECKING:
    from opshift.adapters.core.rewriter import Rewriter
    from opshift.model.node import Node


class StepKey(NamedTuple):
    """Key of an adapter: operator, source version, and target version or an opset without the operator.

    `target` equals `source` for the decorators `function_body` and `expression`.
    """

    domain: str
    op_type: str
    source: int
    target: int

    def __str__(self) -> str:
        return f"{self.domain}.{self.op_type} {self.source} -> {self.target}"


Adapter = Callable[["Node", "Rewriter"], None]

_registered: dict[StepKey, Adapter] = {}

_errors: dict[StepKey, str] = {}


class DuplicateAdapter(OpshiftError):
    """Two functions are registered for the same step."""


def adapter(
    op_types: str | tuple[str, ...],
    source: int,
    target: int,
    *further: int,
    domain: str = DEFAULT_DOMAIN,
    error: str = "",
) -> Callable[[Adapter], Adapter]:
    """Register the decorated function as the adapter of `op_types` from version `source` to `target`.

    `target` may be an opset that lacks the operator. `further` versions add more steps: 1, 6, 7 register the
    adapter for 1 -> 6 and 6 -> 7. `error` is the error bound, such as "at most 2 units", of rewrites that
    require `allow="approximate"`.

    The function reads the node and the facts of the rewriter, and emits the replacement through the rewriter.
    It must not modify anything else. To refuse a node, it raises `CannotConvert` before it emits a node.

    Raises:
        DuplicateAdapter: another function is registered for the step.
        UsageError: an argument is invalid, or two successive versions are equal.
    """
    steps = tuple(pairwise((source, target, *further)))
    for start, end in steps:
        if start == end:
            remedy = "name two versions, or use @expression or @function_body for one version"
            raise UsageError(f"an adapter of {op_types} converts from {start} to itself", remedy=remedy)
    return _register(op_types, steps, domain, error)


def function_body(
    op_types: str | tuple[str, ...], *versions: int, domain: str = DEFAULT_DOMAIN
) -> Callable[[Adapter], Adapter]:
    """Register the decorated function to build the function bodies of `versions` from other operators.

    The function is called like an adapter, see `adapter`. If no function is registered for a version, the
    adapter to an opset that lacks the operator builds the body.

    Raises:
        DuplicateAdapter: another function is registered for a version.
    """
    return _register(op_types, zip(versions, versions, strict=True), domain)


def expression(
    op_types: str | tuple[str, ...], *versions: int, domain: str = DEFAULT_DOMAIN
) -> Callable[[Adapter], Adapter]:
    """Register the decorated function to express nodes of `versions` by other operators (`Options.without`).

    Use `function_body` for operators that ONNX defines as functions, and this decorator for all others.

    Raises:
        DuplicateAdapter: another function is registered for a version.
    """
    return _register(op_types, zip(versions, versions, strict=True), domain)


def _register(
    op_types: str | tuple[str, ...], steps: Iterable[tuple[int, int]], domain: str, error: str = ""
) -> Callable[[Adapter], Adapter]:
    names, steps = (op_types,) if isinstance(op_types, str) else op_types, tuple(steps)
    _require_steps(names, steps, domain)
    pairs = [StepKey(domain, op_type, *step) for op_type, step in product(names, steps)]

    def register(function: Adapter) -> Adapter:
        for pair in pairs:
            if pair in _registered:
                functions = " and ".join(map(_qualified_name, (_registered[pair], function)))
                raise DuplicateAdapter(f"{pair} has two adapters: {functions}")
            _registered[pair] = function
            _errors[pair] = error
        return function

    return register


def _require_steps(names: object, steps: Sequence[tuple[int, int]], domain: object) -> None:
    """Raise UsageError unless operator names, versions and domain of a decorator are valid."""
    texts = (*names, domain) if isinstance(names, tuple | list) and names else (names,)
    numbers = [version for step in steps for version in step]
    if not all(isinstance(each, str) and each for each in texts) or not numbers:
        reason = (
            f"expected names of operators, versions and a domain, got {names!r}, {numbers} and {domain!r}"
        )
    # the target 0 is the opset before version 1
    elif not all(type(start) is type(end) is int and start > 0 <= end for start, end in steps):
        reason = f"expected versions as positive integers, got {', '.join(map(repr, numbers))}"
    else:
        return
    raise UsageError(reason, remedy='register it as in @adapter("Scale", 1, 2, domain="com.acme")')


def error_bound(step: StepKey) -> str:
    """Return the error bound of the approximate rewrites of a step, or `""` if the step has none."""
    return _errors.get(step, "")


def registered_adapters() -> Mapping[StepKey, Adapter]:
    """Return the adapters of all modules imported so far, as a read-only view."""
    return MappingProxyType(_registered)


@contextmanager
def temporary_adapters() -> Iterator[None]:
    """Context manager that restores at exit the adapters that were registered at entry."""
    # Load all adapters first: a module that is first imported in the context would lose its adapters.
    adapter_table()
    before, errors = dict(_registered), dict(_errors)
    try:
        yield
    finally:
        _registered.clear()
        _registered.update(before)
        _errors.clear()
        _errors.update(errors)


def unregister(domain: str, op_type: str, version: int) -> None:
    """Remove the adapters of an operator from and to a version, within `temporary_adapters`."""
    for key in list(_registered):
        if key[:2] == (domain, op_type) and version in key[2:]:
            del _registered[key]
            _errors.pop(key, None)


@cache
def adapter_table() -> Mapping[StepKey, Adapter]:
    """Import the adapters of this package and of installed packages; return a view of all adapters."""
    built_in_adapters()
    load_installed_adapters()
    return MappingProxyType(_registered)


def built_in_adapters() -> Mapping[StepKey, Adapter]:
    """Import the adapter modules of this package, and return their adapters."""
    package = "opshift.adapters.ops"
    import_modules(package)
    every = list(_registered.items())  # a copy, because other threads may load files with adapters
    return {pair: each for pair, each in every if each.__module__.startswith(f"{package}.")}


def _qualified_name(function: Adapter) -> str:
    return f"{function.__module__}.{getattr(function, '__name__', function)}"


ENTRY_POINT_GROUP: Final = "opshift.adapters"
"""Entry point group of modules with adapters."""


class UnusableAdapters(OpshiftError):
    """External adapters cannot be loaded; `place` is the file or entry point."""


def load_installed_adapters() -> None:
    """Import the modules that installed packages name as entry points of the group `opshift.adapters`.

    Raises:
        UnusableAdapters: a module cannot be imported.
        DuplicateAdapter: two functions are registered for the same step.
    """
    for entry_point in installed_entry_points(ENTRY_POINT_GROUP):
        try:
            entry_point.load()
        except OpshiftError:
            raise
        except FAILURES as error:
            place = f"{entry_point.name} = {entry_point.value}"
            remedy = "correct or uninstall the package"
            raise UnusableAdapters(f"{type(error).__name__}: {error}", place=place, remedy=remedy) from error


def load_adapters(path: Path | str) -> tuple[str, ...]:
    """Load adapters from a Python file, or from all Python files of a folder except those named `_*`.

    Each file is executed as a separate module, and a file with adapters only once per process.

    Returns:
        The names of the modules.

    Raises:
        UnusableAdapters: there is no file, or a file cannot be executed.
        DuplicateAdapter: two functions are registered for the same step.
        UsageError: `path` is empty or not a path.
    """
    source = path_argument("path", path)
    # Register the built-in adapters first, so that the error about a duplicate names the external file.
    adapter_table()
    files = sorted(source.glob("[!_]*.py")) if source.is_dir() else [source] if source.is_file() else []
    if not files:
        raise UnusableAdapters(
            "found no Python file with adapters",
            place=Place(str(path)),
            remedy="pass a .py file or a folder with .py files",
        )
    return tuple(_import_file(file) for file in files)


def _import_file(file: Path) -> str:
    name = module_name(file)
    with file_lock(name):
        if _adapters_in(name):
            return name
        try:
            run_file(file)
        except BaseException as error:
            for key in _adapters_in(name):
                del _registered[key]
                _errors.pop(key, None)
            if not isinstance(error, FAILURES) or isinstance(error, OpshiftError):
                raise
            place = Place(str(file), error_line(error, file))
            reason, remedy = f"{type(error).__name__}: {error}", "correct the file"
            raise UnusableAdapters(reason, place=place, remedy=remedy) from error
    return name


def _adapters_in(module: str) -> list[StepKey]:
    # a copy of the table, because other threads may import modules with adapters
    return [key for key, function in list(_registered.items()) if function.__module__ == module]
