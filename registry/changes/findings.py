"""Findings, which are changes that a policy or compatibility mode forbids, and waivers that permit them."""

from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field, field_validator

from opshift.model.plain_data import Json
from opshift.registry.changes.classes import CHANGE_RULES
from opshift.registry.changes.classify import ClassifiedChange
from opshift.registry.frozen import Frozen
from opshift.registry.record import from_file_content
from opshift.registry.yaml_files import load_yaml


class Waiver(Frozen):
    """Permission for one operator to violate one rule until the end of a day."""

    rule: str
    operator: str
    """`ai.onnx.Clip` for all versions, `ai.onnx.Clip:6` for one."""
    reason: Annotated[str, Field(min_length=10)]
    until: date

    @field_validator("rule")
    @classmethod
    def _check_rule(cls, rule: str) -> str:
        if rule not in CHANGE_RULES:
            raise ValueError(f"unknown rule {rule!r}")
        return rule

    def covers(self, rule: str, operator: str) -> bool:
        """Return whether the waiver applies to a rule and an operator version, even if it is expired."""
        return rule == self.rule and self.operator in (operator, operator.rpartition(":")[0])

    def is_expired(self, today: date) -> bool:
        """Return whether `today` is later than the last day of the waiver, `until`."""
        return today > self.until


class ChangeFinding(NamedTuple):
    """A change that is not allowed, with its operator version and the reason."""

    operator: str
    """The operator version, such as `ai.onnx.Clip:6`."""
    change: ClassifiedChange
    reason: str
    remedy: str
    waiver: Waiver | None = None
    """The waiver that covers the finding; an expired waiver is listed, but has no effect."""
    is_waived: bool = False

    def as_dict(self) -> dict[str, Json]:
        """Return plain data for JSON output."""
        return {
            "operator": self.operator,
            **self.change.as_dict(),
            "reason": self.reason,
            "remedy": self.remedy,
            "waiver": None if self.waiver is None else self.waiver.model_dump(mode="json"),
            "waived": self.is_waived,
        }


def apply_waivers(
    findings: Iterable[ChangeFinding], waivers: Iterable[Waiver], today: date
) -> Iterator[ChangeFinding]:
    """Yield each finding with its waiver; if several waivers cover it, the one that expires last is used."""
    by_expiry = sorted(waivers, key=lambda each: each.until, reverse=True)
    for finding in findings:
        covering = (each for each in by_expiry if each.covers(finding.change.rule, finding.operator))
        waiver = next(covering, None)
        is_waived = waiver is not None and not waiver.is_expired(today)
        yield finding._replace(waiver=waiver, is_waived=is_waived)


def find_unused_waivers(findings: Iterable[ChangeFinding], waivers: Iterable[Waiver]) -> list[Waiver]:
    """Return the waivers that cover no finding."""
    found = [(each.change.rule, each.operator) for each in findings]
    return [waiver for waiver in waivers if not any(waiver.covers(*each) for each in found)]


def load_waivers(path: Path) -> tuple[Waiver, ...]:
    """Read a YAML list of waivers; raise `DefinitionError` if it is invalid or names an unknown rule."""
    return from_file_content(tuple[Waiver, ...], load_yaml(path) or [], path)
