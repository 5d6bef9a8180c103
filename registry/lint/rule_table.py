"""Table of lint rules: functions that yield the problems of an object of their parameter's type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from opshift.model.message_text import did_you_mean
from opshift.model.rule_table import RuleTable, describe

MAX_SHOWN = 15
"""Maximum number of names in one message."""

Keys = tuple[int | str, ...]
"""Path of keys and list positions to a value in an object, such as `("versions", 0, "step")`."""


class LintProblem(NamedTuple):
    """Violation of a rule at `keys` of the checked object; a `remedy` replaces the remedy of the rule."""

    reason: str
    keys: Keys = ()
    remedy: str = ""


Check = Callable[..., Iterable[LintProblem]]


@dataclass(frozen=True)
class LintRule:
    """A rule: `title` states the requirement, `check` yields the violations by an object of a target type.

    Rules without target types are checked by the code that reads files.
    """

    id: str
    title: str
    remedy: str
    target_types: tuple[type, ...]
    check: Check


def nearest(word: object, known: Iterable[str]) -> str:
    """Return a remedy with the names in `known` that are similar to a word, or else with the first names."""
    names = tuple(dict.fromkeys(known))
    shown = ", ".join(names[:MAX_SHOWN]) + (", ..." if len(names) > MAX_SHOWN else "")
    return did_you_mean(str(word), names, f"use one of {shown}" if names else "")


_TABLE: RuleTable[LintRule] = RuleTable("opshift.registry.lint")


def rule(name: str, remedy: str) -> Callable[[Check], Check]:
    """Register a function as a rule; the first line of its docstring is the requirement.

    Raises:
        DuplicateRule: another function has registered this id.
    """

    def register(check: Check) -> Check:
        title, _, target_types = describe(check)
        _TABLE.add(name, LintRule(name, title, remedy, target_types, check), check)
        return check

    return register


def requirement(name: str, title: str, remedy: str) -> None:
    """Register a rule without a function: the code that reads files checks the requirement."""

    def check(_: object) -> tuple[()]:
        return ()

    _TABLE.add(name, LintRule(name, title, remedy, (), check), check)


@cache
def rule_table() -> Mapping[str, LintRule]:
    """Return all rules by id, sorted; cached, because it imports every module with rules."""
    return _TABLE.load()


@cache
def rules_for(target: type) -> tuple[LintRule, ...]:
    """Return the rules for objects of a class; cached, because it is called for every operator version."""
    return tuple(each for each in rule_table().values() if target in each.target_types)
