"""Outcomes of running cases, and their comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from opshift.converter.verification.arrays import element_type_of
from opshift.converter.verification.compare import compare
from opshift.proposals.evidence.cases import Case
from opshift.proposals.evidence.running import Outputs

Verdict = Literal["agrees", "differs", "refused", "not run"]


@dataclass(frozen=True)
class Outcome:
    """Outputs of a case, or the reason why running it failed."""

    case: Case
    outputs: Outputs | None
    failure: str = ""


@dataclass(frozen=True)
class Compared:
    """Comparison of two computations of a case.

    Attributes:
        case: the case.
        verdict: whether the outputs agree; `refused` if a conversion was refused, `not run` if no installed
            runtime supports the model.
        reason: description of the difference, or the reason for not running.
    """

    case: Case
    verdict: Verdict
    reason: str = ""


def compared(case: Case, expected: Sequence[Any], found: Sequence[Any]) -> Compared:
    """Compare the outputs of a case with the expected ones, up to the first difference."""
    if len(expected) != len(found):
        return Compared(case, "differs", f"expected {len(expected)} outputs, got {len(found)}")
    for position, (expected_value, found_value) in enumerate(zip(expected, found, strict=True)):
        # All further outputs belong to a variadic last one.
        formal = case.version.outputs[min(position, len(case.version.outputs) - 1)]
        result = compare(formal.name, [expected_value], [found_value], case.example.tolerance)
        if result.reason:
            type_text = "" if expected_value is None else f" ({element_type_of(expected_value)})"
            return Compared(case, "differs", f"{formal.name}{type_text}: {result.reason}")
    return Compared(case, "agrees")
