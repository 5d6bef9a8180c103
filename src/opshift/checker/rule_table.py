"""Table of rules. A rule is a function that yields the problems of its argument, such as a CheckedNode."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Protocol, TypeVar

from opshift.checker.findings import Finding, Level, Problem
from opshift.model.rule_table import RuleTable, describe

NAMES = "IR: Names Within a Graph"

SIGNATURE = "IR: Nodes; the operator's definition"
"""`NAMES` and `SIGNATURE` are the sources of several rules."""

Problems = Iterable[str | Problem]

Check = TypeVar("Check", bound=Callable[..., Problems])


class CheckTarget(Protocol):
    """Object that a rule checks, such as a CheckedNode."""

    @property
    def location(self) -> str:
        """Location of the object, for findings."""
        ...


@dataclass(frozen=True)
class Rule:
    """Rule of the specification: `check` yields the problems of an object with one of the target types.

    `source` is usually a section of ONNX's IR.md or Versioning.md, or a message of onnx.proto.
    """

    id: str
    level: Level
    title: str
    source: str
    remedy: str
    target_types: tuple[type, ...]
    check: Callable[..., Problems]

    def to_finding(self, target: CheckTarget, problem: str | Problem) -> Finding:
        """Return the finding for a problem of an object."""
        reason, remedy, place = problem if isinstance(problem, Problem) else (problem, "", "")
        return Finding(self.id, self.level, place or target.location, reason, remedy or self.remedy)


_TABLE: RuleTable[Rule] = RuleTable("opshift.checker.rules")


def rule(name: str, level: Level, source: str, remedy: str) -> Callable[[Check], Check]:
    """Return a decorator that registers a function as a rule for objects of its parameter's types.

    The first line of the function's docstring states the requirement. A `Problem` can replace `remedy`.

    Raises:
        DuplicateRule: a rule with this id exists.
    """

    def register(check: Check) -> Check:
        title, _, target_types = describe(check)
        _TABLE.add(name, Rule(name, level, title, source, remedy, target_types, check), check)
        return check

    return register


@cache
def rule_table() -> Mapping[str, Rule]:
    """Return all rules by id, sorted; cached, because it imports every module with rules."""
    return _TABLE.load()


@cache
def rules_for(target: type) -> tuple[Rule, ...]:
    """Return the rules for objects of a class; cached, because it is called for every object of a model."""
    return tuple(entry for entry in rule_table().values() if target in entry.target_types)
