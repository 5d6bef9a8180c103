"""Table of adapters: the function that rewrites an operator from one version to another."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from opshift.registry.errors import OpshiftError
from opshift.registry.names import DEFAULT_DOMAIN

if TYPE_CHECKING:
    from opshift.adapters.node import Node
    from opshift.adapters.rewriter import Rewriter


class Pair(NamedTuple):
    """Key of an adapter: the operator, its source version and its target version."""

    domain: str
    op_type: str
    source: int
    target: int

    def __str__(self) -> str:
        return f"{self.domain}.{self.op_type} {self.source} -> {self.target}"


Adapter = Callable[["Node", "Rewriter"], None]
_registered: dict[Pair, Adapter] = {}


class DuplicateAdapter(OpshiftError):
    """Two functions are registered for the same step."""


def adapter(
    op_types: str | tuple[str, ...], source: int, target: int, *, domain: str = DEFAULT_DOMAIN
) -> Callable[[Adapter], Adapter]:
    """Register a function as the step of `op_types` from version `source` to version `target`.

    The function reads the node and the facts of the rewriter, and emits the replacement through the rewriter.
    It must not modify anything else. It raises `CannotConvert` before it emits anything.

    Raises:
        DuplicateAdapter: another function is registered for the step.
    """

    def register(function: Adapter) -> Adapter:
        for op_type in (op_types,) if isinstance(op_types, str) else op_types:
            pair = Pair(domain, op_type, source, target)
            if pair in _registered:
                other = _registered[pair]
                raise DuplicateAdapter(
                    f"{pair} has two adapters: {_qualified_name(other)} and {_qualified_name(function)}"
                )
            _registered[pair] = function
        return function

    return register


def registered() -> Mapping[Pair, Adapter]:
    """Return the adapters of all modules imported so far, as a read-only view."""
    return MappingProxyType(_registered)


@contextmanager
def registering() -> Iterator[None]:
    """Unregister at exit the adapters that are registered within the context."""
    # Load the built-in adapters first: otherwise the reset at the end would drop them for good.
    adapter_table()
    before = dict(_registered)
    try:
        yield
    finally:
        _registered.clear()
        _registered.update(before)


@cache
def adapter_table() -> Mapping[Pair, Adapter]:
    """Return all adapters of this package and of installed packages, after importing their modules."""
    from opshift.adapters.extensions import load_installed

    package = importlib.import_module("opshift.adapters")
    for module in pkgutil.iter_modules(package.__path__, "opshift.adapters."):
        importlib.import_module(module.name)
    load_installed()
    return MappingProxyType(_registered)


def _qualified_name(function: Adapter) -> str:
    return f"{function.__module__}.{getattr(function, '__name__', function)}"
