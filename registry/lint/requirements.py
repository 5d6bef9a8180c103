"""Rules for the requirements of an operator."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.registry.lint.rule_table import Problem, nearest, rule
from opshift.registry.models import Operator
from opshift.registry.requirements import InvalidRequirement, names_of, parse_requirement


@rule("requires.invalid", "write a comparison, such as `rank(X) >= 3`")
def requirement_syntax(operator: Operator) -> Iterator[Problem]:
    """Requirements are expressions about attributes and inputs that a version has."""
    known = sorted(set().union(*map(names_of, operator.versions)))
    texts = (*operator.requires, *(each for version in operator.versions for each in version.requires))
    for text in dict.fromkeys(texts):
        try:
            names = parse_requirement(text).names
        except InvalidRequirement as error:
            yield Problem(f"{text!r}: {error}", ("requires",))
            continue
        for name in sorted(names.difference(known)):
            yield Problem(
                f"{text!r} names {name!r}, which no version has", ("requires",), nearest(name, known)
            )
