"""What came out when a case was run."""

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
    """A case in the reference: its outputs, or why it has none."""

    case: Case
    outputs: Outputs | None
    failure: str = ""


@dataclass(frozen=True)
class Compared:
    """A case computed in two ways: whether both give the same, and if not how they differ.

    Attributes:
        case: what was run.
        verdict: `refused` is a conversion's answer, `not run` that of all runtimes.
        reason: how they differ, or why it was refused or not run.
    """

    case: Case
    verdict: Verdict
    reason: str = ""


def compared(case: Case, expected: Sequence[Any], found: Sequence[Any]) -> Compared:
    """How far the outputs of a case are from what they should be."""
    if len(expected) != len(found):
        return Compared(case, "differs", f"{len(found)} outputs, not {len(expected)}")
    for position, (one, other) in enumerate(zip(expected, found, strict=True)):
        formal = case.version.outputs[min(position, len(case.version.outputs) - 1)]
        each = compare(formal.name, [one], [other], case.example.tolerance)
        if each.reason:
            kind = "" if one is None else f" ({element_type_of(one)})"
            return Compared(case, "differs", f"{formal.name}{kind}: {each.reason}")
    return Compared(case, "agrees")
