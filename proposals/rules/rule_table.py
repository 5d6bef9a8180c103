"""Table of rules. A rule is a function that yields the problems of a proposal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple, Protocol, TypeVar

from opshift.checker.findings import Level
from opshift.model.errors import Place, UsageError
from opshift.model.rule_table import RuleTable, describe
from opshift.proposals.content.draft import InvalidFile
from opshift.proposals.content.findings import ProposalFinding
from opshift.proposals.content.folder import PROPOSAL, ProposalFolder

Gate = Literal["check", "accept"]
"""When a rule applies: in every check, or only on acceptance."""


class ProposalProblem(NamedTuple):
    """Violation of a rule, before it becomes a finding.

    Attributes:
        reason: description of the problem.
        file: file of the proposal.
        keys: path of the item in a YAML file.
        remedy: replaces the remedy of the rule if it is not empty.
        place: replaces the place of `file` and `keys` if it is not `None`.
    """

    reason: str
    file: str = PROPOSAL
    keys: tuple[int | str, ...] = ()
    remedy: str = ""
    place: Place | None = None


RuleCheck = Callable[..., Iterable[ProposalProblem]]

AnyRuleCheck = TypeVar("AnyRuleCheck", bound=RuleCheck)


class Subject(Protocol):
    """Stage of a proposal that rules check."""

    @property
    def folder(self) -> ProposalFolder:
        """Folder of the proposal."""
        ...


@dataclass(frozen=True)
class ProposalRule:
    """Rule for proposals.

    Attributes:
        id: identifier, such as `body.agrees`.
        level: severity of a violation.
        title: requirement in one sentence.
        about: rationale of the requirement; may be empty.
        source: document that the rule derives from.
        remedy: how to fix a violation.
        gate: when the rule applies.
        target_types: stages of the proposal that are checked.
        check: function that yields the problems of a subject.
    """

    id: str
    level: Level
    title: str
    about: str
    source: str
    remedy: str
    gate: Gate
    target_types: tuple[type, ...]
    check: RuleCheck

    def findings(self, subject: Subject) -> Iterable[ProposalFinding]:
        """Return the findings for a subject of the rule's class."""
        return [self._finding(problem, subject.folder) for problem in self.check(subject)]

    def _finding(self, problem: ProposalProblem, folder: ProposalFolder) -> ProposalFinding:
        place = problem.place or folder.place(problem.file, *problem.keys)
        return ProposalFinding(self.id, self.level, place, problem.reason, problem.remedy or self.remedy)


def format_problems(file: InvalidFile, name: str) -> Iterator[ProposalProblem]:
    """Return the problem of an invalid file if it has this name, else none."""
    if file.name == name:
        error = file.error
        yield ProposalProblem(error.reason, name, remedy=error.remedy, place=error.place)


_TABLE: RuleTable[ProposalRule] = RuleTable("opshift.proposals.rules")


def rule(
    name: str, level: Level, *, source: str, remedy: str, gate: Gate = "check"
) -> Callable[[AnyRuleCheck], AnyRuleCheck]:
    """Return a decorator that registers a function as a rule.

    The first line of its docstring becomes the title, the rest the rationale. The annotation of its first
    parameter determines the subject.

    Raises:
        DuplicateRule: a rule with this name exists.
    """

    def register(check: AnyRuleCheck) -> AnyRuleCheck:
        title, rationale, target_types = describe(check)
        added = ProposalRule(name, level, title, rationale, source, remedy, gate, target_types, check)
        _TABLE.add(name, added, check)
        return check

    return register


@cache
def rule_table() -> Mapping[str, ProposalRule]:
    """Return every rule by name, sorted.

    The modules of the package are discovered, so a new module needs no registration.

    Raises:
        UsageError: numpy, which the evidence rules need, is not installed.
    """
    try:
        return _TABLE.load()
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise UsageError("numpy is not installed", remedy="pip install 'opshift[verify]'") from error
