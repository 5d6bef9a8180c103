"""Table of rules: functions that the modules of a package register with a decorator."""

import inspect
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import MappingProxyType, UnionType
from typing import Generic, NamedTuple, TypeVar, get_args, get_type_hints

from opshift.model.errors import OpshiftError

AnyRule = TypeVar("AnyRule")

Function = Callable[..., Iterable[object]]


class DuplicateRule(OpshiftError):
    """Two rules have the same name."""


class RuleTable(Generic[AnyRule]):
    """Table of rules by name; the modules of a package add the rules."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._rules: dict[str, AnyRule] = {}
        self._functions: dict[str, Function] = {}
        self.registered: Mapping[str, AnyRule] = MappingProxyType(self._rules)
        """The rules of the modules that have been imported so far."""

    def add(self, name: str, rule: AnyRule, function: Function) -> None:
        """Add the rule that a function implements.

        Raises:
            DuplicateRule: another function implements a rule with this name.
        """
        other = self._functions.get(name, function)
        # A file that is executed again replaces the rules that it added before.
        if (other.__module__, other.__qualname__) != (function.__module__, function.__qualname__):
            places = " and ".join(f"{each.__module__}.{each.__qualname__}" for each in (other, function))
            raise DuplicateRule(f"rule {name!r} is defined by both {places}", remedy="rename one of them")
        self._rules[name], self._functions[name] = rule, function

    def remove(self, name: str) -> None:
        """Remove the rule with this name; raise KeyError if there is none."""
        del self._rules[name], self._functions[name]

    def load(self) -> Mapping[str, AnyRule]:
        """Import all modules of the package, and return all rules, sorted by name."""
        import_modules(self._package)
        return MappingProxyType(dict(sorted(self._rules.items())))


class Description(NamedTuple):
    """Description of a rule, read from its function."""

    title: str
    rationale: str
    target_types: tuple[type, ...]


def describe(function: Function) -> Description:
    """Return the first line and the rest of a function's docstring, and the types of its first parameter."""
    title, _, rationale = inspect.cleandoc(function.__doc__ or "").partition("\n")
    hint = next(iter(get_type_hints(function).values()))
    target_types = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    return Description(title, " ".join(rationale.split()), target_types)


def import_modules(package: str) -> None:
    """Import all modules of a package and its subpackages, which registers the functions in them."""
    for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
        import_module(module.name)
