"""The table of rules: a rule is a function that tells what is wrong with what its parameter names."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType, UnionType
from typing import Any, TypeVar, get_args, get_type_hints

from opshift.converter.legality.findings import Finding, Flaw, Level
from opshift.registry.errors import OpshiftError

Flaws = Iterable[str | Flaw]
Judge = TypeVar("Judge", bound=Callable[[Any], Flaws])


@dataclass(frozen=True)
class Rule:
    """One rule of the specification.

    Attributes:
        id: its name, as `node.input-count`.
        level: how grave it is to break it.
        title: what it asks for, in one sentence.
        source: where it is written: a section of ONNX's IR.md, Versioning.md or ExternalData.md, or a
            message of onnx.proto.
        remedy: what to do where it is broken.
        subjects: the classes of what it judges.
        judge: the flaws of one such thing.
    """

    id: str
    level: Level
    title: str
    source: str
    remedy: str
    subjects: tuple[type, ...]
    judge: Callable[[Any], Flaws]

    def finding(self, subject: Any, flaw: str | Flaw) -> Finding:
        """The finding that tells of a flaw."""
        reason, remedy, place = flaw if isinstance(flaw, Flaw) else (flaw, "", "")
        return Finding(self.id, self.level, place or subject.place, reason, remedy or self.remedy)


_registered: dict[str, Rule] = {}


class DuplicateRule(OpshiftError):
    """Two functions claim one name."""


def rule(name: str, level: Level, *, source: str, remedy: str) -> Callable[[Judge], Judge]:
    """Register a function as a rule; it judges what its parameter's type says, its docstring is the title.

    Raises:
        DuplicateRule: there is a rule of this name already.
    """

    def register(judge: Judge) -> Judge:
        if name in _registered:
            raise DuplicateRule(f"{name} is the name of two rules")
        title = inspect.cleandoc(judge.__doc__ or "").partition("\n")[0]
        _registered[name] = Rule(name, level, title, source, remedy, _subjects(judge), judge)
        return judge

    return register


def _subjects(judge: Callable[[Any], Flaws]) -> tuple[type, ...]:
    hint = next(iter(get_type_hints(judge).values()))
    return get_args(hint) if isinstance(hint, UnionType) else (hint,)


@cache
def rule_table() -> Mapping[str, Rule]:
    """Every rule of this package by name, sorted; modules are found, not listed."""
    package = importlib.import_module("opshift.converter.legality")
    for module in pkgutil.iter_modules(package.__path__, "opshift.converter.legality."):
        importlib.import_module(module.name)
    return MappingProxyType(dict(sorted(_registered.items())))


@cache
def rules_of(subject: type) -> tuple[Rule, ...]:
    """The rules that judge a class of things."""
    return tuple(each for each in rule_table().values() if subject in each.subjects)
