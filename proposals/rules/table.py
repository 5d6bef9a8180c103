"""The table of rules: a rule is a function that tells what is wrong with what its parameter names."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar, get_type_hints

from opshift.converter.errors import UsageError
from opshift.converter.legality.findings import Level
from opshift.proposals.findings import Finding
from opshift.proposals.folder import PROPOSAL
from opshift.registry.errors import OpshiftError, Place

Gate = Literal["check", "accept"]
"""When a rule counts: from the first check on, or only when the proposal is to be accepted."""


class Flaw(NamedTuple):
    """One way in which a proposal breaks a rule: what is wrong, in which file, at which keys."""

    reason: str
    file: str = PROPOSAL
    keys: tuple[int | str, ...] = ()
    remedy: str = ""


Judge = Callable[[Any], Iterable[Flaw]]
AnyJudge = TypeVar("AnyJudge", bound=Judge)


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        id: its name, as `body.agrees`.
        level: how grave it is to break it.
        title: what it asks for, in one sentence.
        about: what it is for.
        source: where it comes from.
        remedy: what to do where it is broken.
        gate: when it counts.
        subject: the class of what it judges.
        judge: the flaws of one such thing.
    """

    id: str
    level: Level
    title: str
    about: str
    source: str
    remedy: str
    gate: Gate
    subject: type
    judge: Judge

    def findings(self, subject: Any) -> Iterable[Finding]:
        """What is wrong with a thing of the rule's class."""
        return [
            self.finding(flaw, subject.folder.place(flaw.file, *flaw.keys)) for flaw in self.judge(subject)
        ]

    def finding(self, flaw: Flaw, place: Place) -> Finding:
        """The finding that tells of a flaw."""
        return Finding(self.id, self.level, place, flaw.reason, flaw.remedy or self.remedy)


_registered: dict[str, Rule] = {}


def rule(
    name: str, level: Level, *, source: str, remedy: str, gate: Gate = "check"
) -> Callable[[AnyJudge], AnyJudge]:
    """Register a function as a rule. Its docstring's first line is the title, the rest what it is for.

    Raises:
        OpshiftError: there is a rule of this name already.
    """

    def register(judge: AnyJudge) -> AnyJudge:
        if name in _registered:
            raise OpshiftError(f"{name} is the name of two rules")
        title, _, about = inspect.cleandoc(judge.__doc__ or "").partition("\n")
        subject = next(iter(get_type_hints(judge).values()))
        about = " ".join(about.split())
        _registered[name] = Rule(name, level, title, about, source, remedy, gate, subject, judge)
        return judge

    return register


@cache
def rule_table() -> Mapping[str, Rule]:
    """Every rule of this package by name, sorted; modules are found, not listed.

    Raises:
        UsageError: numpy is not installed, which those for evidence need.
    """
    package = importlib.import_module("opshift.proposals.rules")
    for module in pkgutil.iter_modules(package.__path__, "opshift.proposals.rules."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if error.name != "numpy":
                raise
            raise UsageError("numpy is not installed", remedy="pip install 'opshift[verify]'") from error
    return MappingProxyType(dict(sorted(_registered.items())))
