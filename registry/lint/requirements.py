"""Rules for the requirements of an operator."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.registry.lint.rule_table import Problem, rule
from opshift.registry.models import Operator
from opshift.registry.requirements import InvalidRequirement, parse_requirement


@rule("requires.invalid", "write a comparison, such as `rank(X) >= 3`")
def requirement_syntax(operator: Operator) -> Iterator[Problem]:
    """Requirements are expressions about attributes and inputs.

    A name that no version has is not a mistake: a set of operators may contain some of the versions only.
    """
    texts = (*operator.requires, *(each for version in operator.versions for each in version.requires))
    for text in dict.fromkeys(texts):
        try:
            parse_requirement(text)
        except InvalidRequirement as error:
            yield Problem(f"{text!r}: {error}", ("requires",))
