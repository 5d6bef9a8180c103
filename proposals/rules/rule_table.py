"""Table of rules. A rule is a function that yields the problems of a proposal."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar, get_type_hints

from opshift.checker.findings import Level
from opshift.model.errors import OpshiftError, Place, UsageError
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


RuleCheck = Callable[[Any], Iterable[ProposalProblem]]

AnyRuleCheck = TypeVar("AnyRuleCheck", bound=RuleCheck)


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
        subject: stage of the proposal that is checked.
        judge: function that yields the problems of a subject.
    """

    id: str
    level: Level
    title: str
    about: str
    source: str
    remedy: str
    gate: Gate
    subject: type
    check: RuleCheck

    def findings(self, subject: Any) -> Iterable[ProposalFinding]:
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


_rules: dict[str, ProposalRule] = {}


def rule(
    name: str, level: Level, *, source: str, remedy: str, gate: Gate = "check"
) -> Callable[[AnyRuleCheck], AnyRuleCheck]:
    """Return a decorator that registers a function as a rule.

    The first line of its docstring becomes the title, the rest the rationale. The annotation of its first
    parameter determines the subject.

    Raises:
        OpshiftError: a rule with this name already exists.
    """

    def register(judge: AnyRuleCheck) -> AnyRuleCheck:
        if name in _rules:
            raise OpshiftError(f"duplicate rule {name!r}")
        title, _, about = inspect.cleandoc(judge.__doc__ or "").partition("\n")
        subject = next(iter(get_type_hints(judge).values()))
        about = " ".join(about.split())
        _rules[name] = ProposalRule(name, level, title, about, source, remedy, gate, subject, judge)
        return judge

    return register


@cache
def rule_table() -> Mapping[str, ProposalRule]:
    """Return every rule by name, sorted.

    The modules of the package are discovered, so a new module needs no registration.

    Raises:
        UsageError: numpy, which the evidence rules need, is not installed.
    """
    package = importlib.import_module("opshift.proposals.rules")
    for module in pkgutil.iter_modules(package.__path__, "opshift.proposals.rules."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if error.name != "numpy":
                raise
            raise UsageError("numpy is not installed", remedy="pip install 'opshift[verify]'") from error
    return MappingProxyType(dict(sorted(_rules.items())))
