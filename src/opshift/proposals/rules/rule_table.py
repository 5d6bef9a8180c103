"""Table of the rules for proposals. A rule is a function that yields the problems of a proposal."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from opshift.checker.findings import Level
from opshift.model.errors import UsageError
from opshift.model.message_text import count_text
from opshift.model.rule_table import RuleTable, describe
from opshift.proposals.content.draft import Draft, InvalidFile
from opshift.proposals.content.findings import ProposalFinding, ProposalProblem

ADDING = "ONNX, Adding New Operator"
CONTRIBUTING = "CONTRIBUTING.md, Add an operator version"
GUIDE = "docs/proposals.md"
IR = "ONNX, IR specification"
PREVIEW = "ONNX, Experimental and preview operators"

Gate = Literal["check", "accept"]
"""When a rule applies: in every check, or only on acceptance."""

Problems = Iterator[ProposalProblem]

RuleCheck = Callable[..., Problems]


@dataclass(frozen=True)
class ProposalRule:
    """Rule: `title` is the requirement, `about` its reason; `check` yields the problems of a proposal."""

    id: str
    level: Level
    title: str
    about: str
    source: str
    remedy: str
    gate: Gate
    unless: tuple[str, ...]
    target_types: tuple[type, ...]
    check: RuleCheck

    def findings(self, subject: Draft | InvalidFile) -> list[ProposalFinding]:
        """Return the findings of this rule for an object of a target type."""
        return [
            ProposalFinding(self.id, self.level, each.place, each.reason, each.remedy or self.remedy)
            for each in self.check(subject)
        ]

    def is_explained_by(self, names: Iterable[str]) -> bool:
        """Return whether `names` contains another rule whose name starts with a prefix in `unless`."""
        return any(each.startswith(self.unless) and each != self.id for each in names)


MAX_OTHERS = 3
"""Maximum number of further cases that a finding names."""


def first_of(problems: Iterable[tuple[str, ProposalProblem]]) -> Problems:
    """Yield the first problem, with the names of other cases: one mistake usually affects many cases."""
    found = list(problems)
    for name, first in found[:1]:
        others = list(dict.fromkeys(each for each, _ in found if each != name))
        shown = [*others[:MAX_OTHERS], *(["..."] if others[MAX_OTHERS:] else [])]
        more = f" (and {count_text(len(others), 'more case')}: {', '.join(shown)})" if others else ""
        yield first._replace(reason=f"{first.reason}{more}")


_TABLE: RuleTable[ProposalRule] = RuleTable("opshift.proposals.rules")


def rule(
    name: str, level: Level, source: str, remedy: str, *, gate: Gate = "check", unless: tuple[str, ...] = ()
) -> Callable[[RuleCheck], RuleCheck]:
    """Return a decorator that registers a function as a rule.

    The first line of the docstring becomes the title, the rest the rationale. The annotation of the first
    parameter determines the target types. `unless` lists prefixes of rule names: if another rule with such a
    prefix reports an error, the findings of this rule count as its consequences, and are dropped.

    Raises:
        DuplicateRule: another function has registered this name.
    """

    def register(check: RuleCheck) -> RuleCheck:
        title, rationale, target_types = describe(check)
        added = ProposalRule(name, level, title, rationale, source, remedy, gate, unless, target_types, check)
        _TABLE.add(name, added, check)
        return check

    return register


@cache
def rule_table() -> Mapping[str, ProposalRule]:
    """Return every rule by name, sorted.

    Raises:
        UsageError: numpy, which the evidence rules need, is not installed.
    """
    try:
        return _TABLE.load()
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise UsageError("numpy is not installed", remedy="pip install 'opshift[verify]'") from error
