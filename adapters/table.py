"""The table of adapters: which function takes an operator from one version to the next, or back."""

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
    """The step that an adapter takes: an operator, the opset it leaves and the one it arrives at."""

    domain: str
    op_type: str
    source: int
    target: int

    def __str__(self) -> str:
        return f"{self.domain}.{self.op_type} {self.source} -> {self.target}"


Adapter = Callable[["Node", "Rewriter"], None]
_registered: dict[Pair, Adapter] = {}


class DuplicateAdapter(OpshiftError):
    """Two functions claim one step."""


def adapter(
    op_types: str | tuple[str, ...], source: int, target: int, *, domain: str = DEFAULT_DOMAIN
) -> Callable[[Adapter], Adapter]:
    """Register a function as the step of `op_types` from version `source` to version `target`.

    The function reads its node, asks the rewriter for facts, and emits what takes the node's place;
    it changes nothing itself. It raises `CannotConvert` before it emits anything.

    Raises:
        DuplicateAdapter: the step has a function already.
    """

    def register(function: Adapter) -> Adapter:
        for op_type in (op_types,) if isinstance(op_types, str) else op_types:
            pair = Pair(domain, op_type, source, target)
            if pair in _registered:
                other = _registered[pair]
                raise DuplicateAdapter(f"{pair} is claimed by {_named(other)} and {_named(function)}")
            _registered[pair] = function
        return function

    return register


def registered() -> Mapping[Pair, Adapter]:
    """The adapters of the modules that are imported."""
    return MappingProxyType(_registered)


@contextmanager
def registering() -> Iterator[None]:
    """What is registered inside is there until the end, and gone then."""
    adapter_table()
    before = dict(_registered)
    try:
        yield
    finally:
        _registered.clear()
        _registered.update(before)


@cache
def adapter_table() -> Mapping[Pair, Adapter]:
    """Every adapter of this package, and of those that are installed; modules are found, not listed."""
    from opshift.adapters.extensions import load_installed

    package = importlib.import_module("opshift.adapters")
    for module in pkgutil.iter_modules(package.__path__, "opshift.adapters."):
        importlib.import_module(module.name)
    load_installed()
    return MappingProxyType(_registered)


def _named(function: Adapter) -> str:
    return f"{function.__module__}.{getattr(function, '__name__', function)}"
