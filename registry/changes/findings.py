"""Changes that a policy or a mode does not allow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any, NamedTuple

from opshift.registry.changes.classify import Classified
from opshift.registry.changes.waivers import Waiver


class Finding(NamedTuple):
    """A change that is not allowed, with its operator version and the reason."""

    operator: str
    """The operator version, such as `ai.onnx.Clip:6`."""
    change: Classified
    reason: str
    remedy: str
    waiver: Waiver | None = None
    """The waiver that covers the finding; an expired one has no effect."""
    is_waived: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON output."""
        return {
            "operator": self.operator,
            **self.change.as_dict(),
            "reason": self.reason,
            "remedy": self.remedy,
            "waiver": self.waiver and self.waiver.model_dump(mode="json"),
            "waived": self.is_waived,
        }


def waive(findings: Iterable[Finding], waivers: Iterable[Waiver], today: date) -> Iterator[Finding]:
    """Yield the findings, each with the waiver that covers it; the waiver that expires last is preferred."""
    by_expiry = sorted(waivers, key=lambda each: each.until, reverse=True)
    for finding in findings:
        covering = (each for each in by_expiry if each.covers(finding.change.rule, finding.operator))
        waiver = next(covering, None)
        is_waived = waiver is not None and not waiver.is_expired(today)
        yield finding._replace(waiver=waiver, is_waived=is_waived)


def unused(findings: Iterable[Finding], waivers: Iterable[Waiver]) -> list[Waiver]:
    """Return the waivers that cover no finding."""
    listed = list(findings)
    return [
        waiver
        for waiver in waivers
        if not any(waiver.covers(each.change.rule, each.operator) for each in listed)
    ]
