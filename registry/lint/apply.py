"""Apply the lint rules to operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opshift.model.errors import Place
from opshift.registry.errors import DefinitionFinding, InvalidDefinition
from opshift.registry.lint.rule_table import LintProblem, rules_for
from opshift.registry.lint.steps import Direction, directions
from opshift.registry.models import Operator, OperatorVersion

Problems = Iterator[tuple[str, LintProblem]]
"""Pairs of a rule id and a problem; the keys of the problem start at the top of the operator's file."""


DRAFT_RULES = frozenset(
    {
        "body.valid",
        "name.identifier",
        "shape.unknown",
        "step.missing",
        "step.refuted",
        "step.verb",
        "type.unused",
    }
)
"""Rules that a draft (see `load_operator`) may violate: rules for proposals report these mistakes, too."""


def operator_problems(operator: Operator) -> Problems:
    """Yield the violations of lint rules by an operator, its versions and the steps between them."""
    yield from version_problems(dict(enumerate(operator.versions)))
    for rule in rules_for(Operator):
        for problem in rule.check(operator):
            yield rule.id, problem


def consistent(operator: Operator) -> Operator:
    """Return the operator; raise InvalidDefinition if it violates a rule that is not in `DRAFT_RULES`."""
    place = Place(node=f"{operator.domain}.{operator.name}")
    findings = [
        DefinitionFinding.of_rule(rule, place, f"{'.'.join(map(str, keys))}: {reason}", remedy)
        for rule, (reason, keys, remedy) in operator_problems(operator)
        if rule not in DRAFT_RULES
    ]
    if findings:
        raise InvalidDefinition(findings)
    return operator


def version_problems(versions: Mapping[int, OperatorVersion]) -> Problems:
    """Yield the violations of lint rules by versions, and by the steps between adjacent versions.

    `versions` maps positions in the operator's file to versions. Rules in `known_mistakes` are skipped.
    """
    for position, version in versions.items():
        subjects: list[tuple[type, object]] = [(OperatorVersion, version)]
        previous = versions.get(position - 1)
        if previous and previous.since_version < version.since_version:
            subjects += [(Direction, each) for each in directions(previous, version)]
        for kind, subject in subjects:
            for rule in rules_for(kind):
                if rule.id not in version.known_mistakes:
                    for problem in rule.check(subject):
                        yield rule.id, problem._replace(keys=("versions", position, *problem.keys))
